package watch_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/upgrade-gate/upgrade-gate/pkg/component"
)

func TestAMissingRightIsNamedAndHeals(t *testing.T) {
	c := newCluster(t)
	c.create("Widget", "w")
	h := start(t, c.user(), ages)
	target := c.target("Widget", "w")
	h.Want([]component.Target{target})
	seen := h.records(target)
	require.Equal(t, "the operator may not list widgets.test.example.com in namespace "+c.namespace+
		"; grant it get, list and watch on widgets.test.example.com, for example with a ClusterRole labelled upgradegate.io/aggregate-to-operator: \"true\"",
		h.becomes(target, component.AccessForbidden).Detail)

	c.grant(c.namespace, "get", "list")
	require.Eventually(t, func() bool {
		h.clock.Step(time.Second)
		return h.Read(t.Context(), target).Detail == "the operator may not watch widgets.test.example.com in namespace "+c.namespace+
			"; grant it get, list and watch on widgets.test.example.com, for example with a ClusterRole labelled upgradegate.io/aggregate-to-operator: \"true\""
	}, patience, tick)
	require.NotContains(t, seen(), component.AccessFound, "what may be listed and not watched came and went")

	// Rights in one namespace suffice while all wanted objects are there.
	c.grant(c.namespace, "watch")
	h.becomes(target, component.AccessFound)

	elsewhere := target
	elsewhere.Namespace = c.newNamespace()
	h.Want([]component.Target{target, elsewhere})
	require.Equal(t, "the operator may not list widgets.test.example.com in the whole cluster"+
		"; grant it get, list and watch on widgets.test.example.com, for example with a ClusterRole labelled upgradegate.io/aggregate-to-operator: \"true\"",
		h.becomes(elsewhere, component.AccessForbidden).Detail)
	h.Want([]component.Target{target})
	h.becomes(target, component.AccessFound)
}

func TestAKindMayComeAndGo(t *testing.T) {
	c := newCluster(t)
	c.create("Widget", "w")
	h := start(t, plane.Config, ages)
	sprocket, widget := c.target("Sprocket", "s"), c.target("Widget", "w")
	h.Want([]component.Target{sprocket, widget})
	h.becomes(widget, component.AccessFound)
	seen := h.records(widget)
	require.Equal(t, "the API server does not serve Sprocket of test.example.com/v1; install the CRD that defines it, or correct apiVersion and kind",
		h.becomes(sprocket, component.AccessKindNotInstalled).Detail)

	c.install("Sprocket")
	first := c.create("Sprocket", "s")
	require.Equal(t, first.GetUID(), h.becomes(sprocket, component.AccessFound).Snapshot.UID)

	c.uninstall("Sprocket")
	h.becomes(sprocket, component.AccessKindNotInstalled)

	c.install("Sprocket")
	h.becomes(sprocket, component.AccessAbsent)
	second := c.create("Sprocket", "s")
	require.Equal(t, second.GetUID(), h.becomes(sprocket, component.AccessFound).Snapshot.UID)
	c.uninstall("Sprocket")

	require.Equal(t, component.AccessFound, h.access(widget))
	for _, access := range seen() {
		require.Equal(t, component.AccessFound, access, "another kind was affected")
	}
}

func TestAKindThatGivesNoAnswerTimesOut(t *testing.T) {
	c := newCluster(t)
	c.create("Gadget", "g")
	config, w := through(plane.Config, "gadgets")
	w.breakWith(silent)
	h := start(t, config, 0)
	target := c.target("Gadget", "g")
	h.Want([]component.Target{target})
	require.Eventually(t, func() bool { _, refused := w.counts(); return refused > 0 }, patience, tick)
	h.clock.Step(9 * time.Second)
	require.Equal(t, component.Reading{}, h.Read(t.Context(), target))
	require.Zero(t, h.calls.Load())

	h.clock.Step(time.Second)
	require.Eventually(t, func() bool { return h.calls.Load() == 1 }, patience, tick)
	require.Equal(t, component.Reading{
		Access: component.AccessTimedOut, Detail: "no answer in time to: list and watch Gadget of test.example.com/v1",
	}, h.Read(t.Context(), target))
	h.stop()
}

func TestAnErrorOfOneKindDoesNotAffectAnother(t *testing.T) {
	c := newCluster(t)
	c.create("Gadget", "g")
	c.create("Widget", "w")
	config, w := through(plane.Config, "gadgets")
	w.breakWith(answers(500, "InternalError"))
	h := start(t, config, ages)
	gadget, widget := c.target("Gadget", "g"), c.target("Widget", "w")
	h.Want([]component.Target{gadget, widget})
	h.becomes(widget, component.AccessFound)
	seen := h.records(widget)
	want := component.Reading{
		Access: component.AccessFailed,
		Detail: "the API server answered InternalError to: list gadgets.test.example.com in namespace " + c.namespace + "; the operator's log has the whole answer",
	}
	require.Equal(t, want, h.becomes(gadget, component.AccessFailed))

	// The same error with other words is no change.
	require.Eventually(t, func() bool { return h.calls.Load() >= 2 }, patience, tick)
	calls := h.calls.Load()
	_, refused := w.counts()
	require.Eventually(t, func() bool {
		h.clock.Step(time.Second)
		_, now := w.counts()
		return now >= refused+6
	}, patience, tick)
	require.Equal(t, want, h.Read(t.Context(), gadget))
	require.Equal(t, calls, h.calls.Load())

	w.mend()
	h.becomes(gadget, component.AccessFound)
	for _, access := range seen() {
		require.Equal(t, component.AccessFound, access)
	}
}

func TestALostWatchServesWhatItKnewForAWhile(t *testing.T) {
	c := newCluster(t)
	c.create("Gadget", "g")
	config, w := through(plane.Config, "gadgets")
	h := start(t, config, 0)
	target := c.target("Gadget", "g")
	h.Want([]component.Target{target})
	first := h.becomes(target, component.AccessFound).Snapshot
	require.Eventually(t, func() bool { return h.calls.Load() == 1 }, patience, tick)

	t.Run("a watch that ends is resumed and nobody is told", func(t *testing.T) {
		requests, _ := w.counts()
		w.mend()
		require.Eventually(t, func() bool {
			h.clock.Step(100 * time.Millisecond)
			now, _ := w.counts()
			return now > requests
		}, patience, tick)
		c.report("Gadget", "g", ready())
		require.Eventually(t, func() bool { return h.Read(t.Context(), target).Snapshot != first }, patience, tick)
		require.Eventually(t, func() bool { return h.calls.Load() == 2 }, patience, tick)
	})

	// However long a watch has been fine, the time begins when it is lost.
	h.clock.Step(time.Hour)
	known := h.Read(t.Context(), target).Snapshot
	w.breakWith(answers(503, "ServiceUnavailable"))
	require.Eventually(t, func() bool {
		h.clock.Step(100 * time.Millisecond)
		_, refused := w.counts()
		return refused >= 2
	}, patience, tick)
	require.Same(t, known, h.Read(t.Context(), target).Snapshot)
	require.EqualValues(t, 2, h.calls.Load())

	h.clock.Step(10 * time.Second)
	require.Equal(t,
		"the API server answered ServiceUnavailable to: list gadgets.test.example.com in namespace "+c.namespace+"; the operator's log has the whole answer",
		h.becomes(target, component.AccessFailed).Detail)

	w.mend()
	require.Same(t, known, h.becomes(target, component.AccessFound).Snapshot)
}

func TestAWithdrawnRightToWatchClosesForGood(t *testing.T) {
	c := newCluster(t)
	c.create("Gadget", "g")
	config, w := through(plane.Config, "gadgets")
	h := start(t, config, ages)
	target := c.target("Gadget", "g")
	h.Want([]component.Target{target})
	h.becomes(target, component.AccessFound)

	forbidden := answers(403, "Forbidden")
	w.breakWith(func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("watch") == "true" {
			return forbidden(r)
		}
		return w.inner.RoundTrip(r)
	})
	h.becomes(target, component.AccessForbidden)
	seen := h.records(target)
	_, refused := w.counts()
	require.Eventually(t, func() bool {
		h.clock.Step(time.Second)
		_, now := w.counts()
		return now >= refused+9
	}, patience, tick)
	require.NotContains(t, seen(), component.AccessFound, "a list without a watch was taken for knowledge")
	require.Equal(t, component.AccessForbidden, h.access(target))
}
