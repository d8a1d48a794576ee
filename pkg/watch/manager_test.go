package watch_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/conditions"
	"github.com/upgrade-gate/upgrade-gate/pkg/watch"
)

func ready() map[string]any {
	return map[string]any{
		"observedGeneration": int64(1),
		"conditions":         []any{map[string]any{"type": "Ready", "status": "True"}},
	}
}

func TestOnlyWantedObjectsAreKept(t *testing.T) {
	c := newCluster(t)
	for i := range 30 {
		c.create("Widget", fmt.Sprintf("w-%d", i))
	}
	c.report("Widget", "w-3", ready())
	h := start(t, plane.Config, ages)
	h.Want([]component.Target{c.target("Widget", "w-3"), c.target("Widget", "w-7"), c.target("Widget", "none")})

	got := h.becomes(c.target("Widget", "w-3"), component.AccessFound)
	require.Equal(t, int64(1), got.Snapshot.Generation)
	require.Equal(t, conditions.Number{State: conditions.NumberPresent, Value: 1}, got.Snapshot.ObservedGeneration)
	require.Nil(t, got.Snapshot.Object)
	require.Equal(t, component.AccessFound, h.access(c.target("Widget", "w-7")))
	require.Equal(t, component.Reading{Access: component.AccessAbsent}, h.Read(t.Context(), c.target("Widget", "none")))
	require.Equal(t, component.Reading{}, h.Read(t.Context(), c.target("Widget", "w-4")))
	require.Equal(t, 2, h.Held())

	c.create("Widget", "w-30")
	c.create("Widget", "none")
	h.becomes(c.target("Widget", "none"), component.AccessFound)
	require.Equal(t, 3, h.Held())
}

func TestChangedIsCalledForWhatIsKeptOnly(t *testing.T) {
	c := newCluster(t)
	c.create("Widget", "w")
	c.create("Widget", "other")
	c.report("Widget", "w", ready())
	h := start(t, plane.Config, ages)
	h.Want([]component.Target{c.target("Widget", "w")})
	before := h.becomes(c.target("Widget", "w"), component.AccessFound).Snapshot
	// The call follows the answer it is about.
	require.Eventually(t, func() bool { return h.calls.Load() == 1 }, patience, tick)

	for i := range 5 {
		status := ready()
		status["lastHeartbeat"] = fmt.Sprintf("2026-01-02T03:04:0%dZ", i)
		c.report("Widget", "w", status)
		c.report("Widget", "other", status)
	}
	c.create("Widget", "another")
	c.delete("Widget", "other")
	status := ready()
	status["observedGeneration"] = int64(2)
	c.report("Widget", "w", status)

	require.Eventually(t, func() bool { return h.Read(t.Context(), c.target("Widget", "w")).Snapshot != before }, patience, tick)
	require.Eventually(t, func() bool { return h.calls.Load() == 2 }, patience, tick)
	require.Equal(t, int64(2), h.Read(t.Context(), c.target("Widget", "w")).Snapshot.ObservedGeneration.Value)
}

func TestADeletedAndRecreatedObjectIsAnother(t *testing.T) {
	c := newCluster(t)
	object := c.create("Widget", "w")
	object.SetFinalizers([]string{"test.example.com/hold"})
	object, err := c.of("Widget").Update(t.Context(), object, metav1.UpdateOptions{})
	require.NoError(t, err)
	h := start(t, plane.Config, ages)
	target := c.target("Widget", "w")
	h.Want([]component.Target{target})
	first := h.becomes(target, component.AccessFound)
	require.Equal(t, object.GetUID(), first.Snapshot.UID)

	c.delete("Widget", "w")
	require.Eventually(t, func() bool { return h.Read(t.Context(), target).Snapshot.Terminating }, patience, tick)
	object, err = c.of("Widget").Get(t.Context(), "w", metav1.GetOptions{})
	require.NoError(t, err)
	object.SetFinalizers(nil)
	_, err = c.of("Widget").Update(t.Context(), object, metav1.UpdateOptions{})
	require.NoError(t, err)
	h.becomes(target, component.AccessAbsent)

	again := c.create("Widget", "w")
	second := h.becomes(target, component.AccessFound)
	require.Equal(t, again.GetUID(), second.Snapshot.UID)
	require.NotEqual(t, first.Snapshot.UID, second.Snapshot.UID)
	require.False(t, second.Snapshot.Terminating)
}

func TestNamespacesFollowTheScopeOfTheKind(t *testing.T) {
	c := newCluster(t)
	c.create("Widget", "w")
	region := "r-" + c.namespace
	c.create("Region", region)
	h := start(t, plane.Config, ages)
	explicit, cluster, misplaced := c.target("Widget", "w"), c.target("Region", region), c.target("Region", region)
	explicit.Namespace, explicit.DefaultNamespace = c.namespace, "elsewhere"
	misplaced.Namespace = c.namespace
	nowhere := component.Target{GVK: gvk("Widget"), Name: "w"}
	h.Want([]component.Target{c.target("Widget", "w"), explicit, cluster, misplaced, nowhere})

	h.becomes(c.target("Widget", "w"), component.AccessFound)
	require.Equal(t, component.AccessFound, h.access(explicit))
	h.becomes(cluster, component.AccessFound)
	require.Equal(t, component.Reading{
		Access: component.AccessMisplaced,
		Detail: "Region of test.example.com/v1 is cluster-scoped; remove namespace from the component's reference",
	}, h.Read(t.Context(), misplaced))
	require.Equal(t, component.Reading{
		Access: component.AccessMisplaced,
		Detail: "Widget of test.example.com/v1 is namespaced; add namespace to the component's reference",
	}, h.Read(t.Context(), nowhere))

	t.Run("a kind with nothing but misplaced references", func(t *testing.T) {
		h.Want([]component.Target{misplaced})
		h.becomes(misplaced, component.AccessMisplaced)
		require.Positive(t, h.calls.Load())
	})
}

func TestAKindThatCannotBeWatchedSaysSo(t *testing.T) {
	h := start(t, plane.Config, ages)
	target := component.Target{GVK: schema.GroupVersionKind{Group: "authorization.k8s.io", Version: "v1", Kind: "SubjectAccessReview"}, Name: "x"}
	h.Want([]component.Target{target})
	require.Equal(t, "SubjectAccessReview of authorization.k8s.io/v1 cannot be watched, because its API offers only: create; name another object",
		h.becomes(target, component.AccessFailed).Detail)
}

func TestWantMayChangeWithoutAGap(t *testing.T) {
	c := newCluster(t)
	c.create("Widget", "a")
	c.create("Widget", "b")
	h := start(t, plane.Config, ages)
	a, b, whole := c.target("Widget", "a"), c.target("Widget", "b"), c.target("Widget", "a")
	whole.Whole = true
	h.Want([]component.Target{a})
	first := h.becomes(a, component.AccessFound).Snapshot
	seen := h.records(a)

	h.Want([]component.Target{b, a})
	h.becomes(b, component.AccessFound)
	require.Same(t, first, h.Read(t.Context(), a).Snapshot, "an unchanged object has a new snapshot")

	h.Want([]component.Target{a, b})
	require.Equal(t, 1, h.Sessions(), "the same set in another order is read again")
	h.Want([]component.Target{a, b, a})
	require.Equal(t, 1, h.Sessions(), "the same set with a repetition is read again")

	h.Want([]component.Target{a, b, whole})
	require.Equal(t, map[string]any{"size": int64(1)}, h.becomes(whole, component.AccessFound).Snapshot.Object["spec"])
	require.NotContains(t, seen(), component.AccessUnread)

	h.Want([]component.Target{b})
	require.Equal(t, component.AccessUnread, h.access(a))
	h.becomes(b, component.AccessFound)
	h.Want(nil)
	require.Equal(t, component.AccessUnread, h.access(b))
	require.Equal(t, 0, h.Held())
}

func TestAnAddedObjectThatCannotBeReadYetDoesNotDisturbOthers(t *testing.T) {
	c := newCluster(t)
	c.create("Widget", "a")
	c.create("Widget", "b")
	config, w := through(plane.Config, "widgets")
	h := start(t, config, 0)
	a, b := c.target("Widget", "a"), c.target("Widget", "b")
	h.Want([]component.Target{a})
	h.becomes(a, component.AccessFound)

	w.mu.Lock()
	w.cut = answers(500, "InternalError")
	w.mu.Unlock()
	h.Want([]component.Target{a, b})
	require.Eventually(t, func() bool { _, refused := w.counts(); return refused > 0 }, patience, tick)
	require.Equal(t, component.AccessFound, h.access(a))
	require.Equal(t, component.AccessUnread, h.access(b))
	w.mu.Lock()
	w.cut = nil
	w.mu.Unlock()
	h.clock.Step(watch.DefaultRetryInterval - time.Second)
	require.Eventually(t, func() bool { return h.access(b) == component.AccessFound }, patience, tick)
	require.Equal(t, component.AccessFound, h.access(a))
}

func TestStopLeavesNothingBehind(t *testing.T) {
	c := newCluster(t)
	c.create("Widget", "w")
	config, w := through(plane.Config, "gadgets")
	w.breakWith(silent)
	h := start(t, config, ages)
	h.Want([]component.Target{c.target("Widget", "w"), c.target("Gadget", "g"), {GVK: gvk("Nothing"), Name: "n"}})
	h.becomes(c.target("Widget", "w"), component.AccessFound)
	require.Contains(t, stacks(), "watch.(*session)")

	h.stop()
	require.False(t, strings.Contains(stacks(), "watch.(*session).run"), "Start did not wait")
	require.False(t, strings.Contains(stacks(), "watch.(*session).begin"), "Start did not wait")
	// A request that client-go cancelled is not waited for by client-go.
	require.Eventually(t, func() bool { return !strings.Contains(stacks(), "watch.(*session)") }, patience, tick)
	calls := h.calls.Load()
	c.delete("Widget", "w")
	h.Want([]component.Target{c.target("Gadget", "other")})
	require.Equal(t, component.AccessUnread, h.access(c.target("Widget", "w")))
	require.Equal(t, component.AccessUnread, h.access(c.target("Gadget", "other")))
	require.Equal(t, calls, h.calls.Load())
	require.EqualError(t, h.Start(t.Context()), "watch: the Manager was started twice")
}

func TestStartWaitsForRequestsThatAreUnderWay(t *testing.T) {
	c := newCluster(t)
	config, w := through(plane.Config, "gadgets")
	release := make(chan struct{})
	w.breakWith(func(r *http.Request) (*http.Response, error) {
		<-release
		return nil, r.Context().Err()
	})
	h := start(t, config, ages)
	h.Want([]component.Target{c.target("Gadget", "g")})
	require.Eventually(t, func() bool { _, refused := w.counts(); return refused > 0 }, patience, tick)
	stopped := make(chan struct{})
	go func() {
		h.stop()
		close(stopped)
	}()
	require.Eventually(t, func() bool { return h.Sessions() == 0 }, patience, tick)
	require.Never(t, func() bool {
		select {
		case <-stopped:
			return true
		default:
			return false
		}
	}, 5*tick, tick)
	close(release)
	<-stopped
}

func stacks() string {
	buffer := make([]byte, 4<<20)
	return string(buffer[:runtime.Stack(buffer, true)])
}

func TestAManagerWithoutClientsDoesNotStart(t *testing.T) {
	m := watch.New(watch.Config{})
	require.True(t, m.NeedLeaderElection())
	m.Want([]component.Target{{GVK: gvk("Widget"), Name: "w"}})
	require.Equal(t, component.Reading{}, m.Read(t.Context(), component.Target{GVK: gvk("Widget"), Name: "w"}))
	require.EqualError(t, m.Start(t.Context()), "watch: Config.Client and Config.Discovery are required")
}
