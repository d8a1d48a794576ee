package watch_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/watch"
)

func live(t *testing.T, config *rest.Config, timeout time.Duration) *watch.Live {
	t.Helper()
	objects, found := clientsFor(t, config)
	return watch.NewLive(watch.LiveConfig{Client: objects, Discovery: found, Timeout: timeout})
}

func TestLiveReadsTheObjectAsItIsNow(t *testing.T) {
	c := newCluster(t)
	created := c.create("Widget", "w")
	l := live(t, plane.Config, patience)
	target := c.target("Widget", "w")
	first := l.Read(t.Context(), target)
	require.Equal(t, component.AccessFound, first.Access)
	require.Equal(t, created.GetUID(), first.Snapshot.UID)
	require.Nil(t, first.Snapshot.Object)

	c.report("Widget", "w", ready())
	target.Whole = true
	second := l.Read(t.Context(), target)
	require.EqualValues(t, 1, second.Snapshot.ObservedGeneration.Value)
	require.Equal(t, map[string]any{"size": int64(1)}, second.Snapshot.Object["spec"])

	c.delete("Widget", "w")
	require.Equal(t, component.Reading{Access: component.AccessAbsent}, l.Read(t.Context(), target))
}

func TestLiveTellsWhyItCannotRead(t *testing.T) {
	c := newCluster(t)
	c.create("Gadget", "g")
	region := "r-" + c.namespace
	c.create("Region", region)
	misplaced := c.target("Region", region)
	misplaced.Namespace = c.namespace
	failing, failure := through(plane.Config, "gadgets")
	failure.breakWith(answers(500, "InternalError"))
	hanging, hang := through(plane.Config, "gadgets")
	hang.breakWith(silent)
	nobody := rest.CopyConfig(plane.Config)
	nobody.Host = "https://127.0.0.1:1"
	stranger := rest.AnonymousClientConfig(plane.Config)
	for name, test := range map[string]struct {
		config  *rest.Config
		timeout time.Duration
		target  component.Target
		want    component.Reading
	}{
		"an object that does not exist": {plane.Config, patience, c.target("Gadget", "none"), component.Reading{Access: component.AccessAbsent}},
		"a kind that is not installed": {plane.Config, patience, c.target("Nothing", "n"), component.Reading{
			Access: component.AccessKindNotInstalled,
			Detail: "the API server does not serve Nothing of test.example.com/v1; install the CRD that defines it, or correct apiVersion and kind",
		}},
		"a namespace for a cluster-scoped kind": {plane.Config, patience, misplaced, component.Reading{
			Access: component.AccessMisplaced,
			Detail: "Region of test.example.com/v1 is cluster-scoped; remove namespace from the component's reference",
		}},
		"a user without rights": {c.user(), patience, c.target("Gadget", "g"), component.Reading{
			Access: component.AccessForbidden,
			Detail: "the operator may not get gadgets.test.example.com in namespace " + c.namespace +
				"; grant it get, list and watch on gadgets.test.example.com, for example with a ClusterRole labelled upgradegate.io/aggregate-to-operator: \"true\"",
		}},
		"a user who may not even discover": {stranger, patience, c.target("Gadget", "g"), component.Reading{
			Access: component.AccessForbidden,
			Detail: "the operator may not discover test.example.com/v1; grant it the ClusterRole system:discovery",
		}},
		"an error of the API server": {failing, patience, c.target("Gadget", "g"), component.Reading{
			Access: component.AccessFailed,
			Detail: "the API server answered InternalError to: get gadgets.test.example.com in namespace " + c.namespace + "; the operator's log has the whole answer",
		}},
		"no answer": {hanging, 2 * time.Second, c.target("Gadget", "g"), component.Reading{
			Access: component.AccessTimedOut,
			Detail: "no answer in time to: get gadgets.test.example.com in namespace " + c.namespace,
		}},
		"no API server": {nobody, patience, c.target("Gadget", "g"), component.Reading{
			Access: component.AccessFailed,
			Detail: "the API server could not be reached to: discover test.example.com/v1; the operator's log says why",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := live(t, test.config, test.timeout)
			began := time.Now()
			require.Equal(t, test.want, l.Read(t.Context(), test.target))
			require.Equal(t, test.want, l.Read(t.Context(), test.target), "the second read differs")
			require.Less(t, time.Since(began), patience/2)
		})
	}
}

func TestACancelledLiveReadIsNoAnswer(t *testing.T) {
	c := newCluster(t)
	c.create("Gadget", "g")
	l := live(t, plane.Config, patience)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	want := component.Reading{Access: component.AccessFailed, Detail: "the read was cancelled"}
	require.Equal(t, want, l.Read(ctx, c.target("Gadget", "g")))
	require.Equal(t, component.AccessFound, l.Read(t.Context(), c.target("Gadget", "g")).Access)
	require.Equal(t, want, l.Read(ctx, c.target("Gadget", "g")))
}

func TestLiveNoticesThatAKindCameAndWent(t *testing.T) {
	c := newCluster(t)
	config, w := through(plane.Config, "v1") // discovery included
	l := live(t, config, patience)
	target := c.target("Cog", "c")
	require.Equal(t, component.AccessKindNotInstalled, l.Read(t.Context(), target).Access)
	c.install("Cog")
	require.Equal(t, component.AccessAbsent, l.Read(t.Context(), target).Access)
	c.create("Cog", "c")
	require.Equal(t, component.AccessFound, l.Read(t.Context(), target).Access)
	before, _ := w.counts()
	require.Equal(t, component.AccessFound, l.Read(t.Context(), target).Access)
	after, _ := w.counts()
	require.Equal(t, before+1, after, "one read takes one request")
	c.uninstall("Cog")
	require.Equal(t, component.AccessKindNotInstalled, l.Read(t.Context(), target).Access)
	require.Equal(t, component.AccessKindNotInstalled, l.Read(t.Context(), target).Access)
}
