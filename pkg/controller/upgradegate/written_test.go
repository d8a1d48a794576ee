package upgradegate

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
)

func version(v string) *v1alpha1.UpgradeGate {
	return &v1alpha1.UpgradeGate{ObjectMeta: metav1.ObjectMeta{UID: "uid", ResourceVersion: v}}
}

func TestWhatWasWrittenCountsUntilTheCacheShowsIt(t *testing.T) {
	var w written
	two, three := version("2"), version("3")
	require.Equal(t, "1", w.newest(version("1")).ResourceVersion, "nothing was written")
	w.note("1", two)
	require.Same(t, two, w.newest(version("1")))
	w.note("2", three)
	require.Same(t, three, w.newest(version("1")))
	require.Same(t, three, w.newest(version("2")))
	require.Equal(t, "3", w.newest(version("3")).ResourceVersion, "a live read is ahead of the cache")
	require.Same(t, three, w.newest(version("2")), "the cache still lags")
	require.Equal(t, "4", w.newest(version("4")).ResourceVersion, "somebody else wrote since")
	require.Equal(t, "1", w.newest(version("1")).ResourceVersion, "what is settled is forgotten")
}

func TestTheEchoOfAnOwnWriteIsNoNews(t *testing.T) {
	var o ownWrites
	require.False(t, o.made(version("1")))
	o.note(version("2"))
	require.True(t, o.made(version("2")))
	require.False(t, o.made(version("3")), "somebody else wrote since")
	o.forget(version("2"))
	require.False(t, o.made(version("2")))
}

func TestALaggingCacheCausesNoSecondWrite(t *testing.T) {
	w := newWorld(t)
	g := w.gate("platform", 0, "a")
	w.both("a", stale())
	w.pass()
	lagging := w.stored("platform")
	lagging.Status = v1alpha1.UpgradeGateStatus{}
	lagging.ResourceVersion = g.ResourceVersion
	m := w.reconciler.memory[g.UID]
	newest := m.written.newest(lagging)
	require.Equal(t, w.stored("platform").ResourceVersion, newest.ResourceVersion)
	require.NotEmpty(t, newest.Status.Conditions)
}
