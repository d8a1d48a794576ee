package upgradegate

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
)

func TestOpeningWritesTheStatusFirstAndTellsOLMLast(t *testing.T) {
	w := newWorld(t)
	w.gate("platform", 0, "a", "b")
	w.both("a", green(3))
	w.both("b", green(1))
	_, effects := w.pass()
	require.Equal(t, []string{"status True AllComponentsReady", "olm True AllComponentsReady"}, effects)
}

func TestClosingTellsOLMFirstAndWritesTheStatusLast(t *testing.T) {
	w := opened(t)
	w.both("a", stale())
	_, effects := w.pass()
	require.Equal(t, []string{"olm False ComponentsNotReady", "status False ComponentsNotReady"}, effects)
}

// opened is a world with the gate platform over a and b, open and at rest.
func opened(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.gate("platform", 0, "a", "b")
	w.both("a", green(3))
	w.both("b", green(1))
	w.pass()
	w.pass()
	require.Equal(t, "True AllComponentsReady", w.condition("platform", v1alpha1.ConditionUpgradeable))
	require.Equal(t, "True Acknowledged", w.condition("platform", v1alpha1.ConditionPublished))
	w.journal.take()
	return w
}

func TestAPassThatFindsNothingNewWritesNothing(t *testing.T) {
	w := opened(t)
	before := w.stored("platform").ResourceVersion
	for range 5 {
		w.clock.Step(time.Minute)
		_, effects := w.pass()
		require.Empty(t, effects)
	}
	require.Equal(t, before, w.stored("platform").ResourceVersion)
}

func TestAnOpenGateIsProvedAnewAfterTenMinutes(t *testing.T) {
	w := opened(t)
	w.live.put("a", stale())
	w.clock.Step(proofLifetime - time.Second)
	_, effects := w.pass()
	require.Empty(t, effects, "memory is trusted until then")
	w.clock.Step(time.Second)
	_, effects = w.pass()
	require.Equal(t, []string{"olm False ComponentsNotReady", "status False ComponentsNotReady"}, effects)
}

func TestMemoryAloneNeverOpens(t *testing.T) {
	cases := map[string]component.Reading{
		"the live object is stale":            stale(),
		"the live object is gone":             {Access: component.AccessAbsent},
		"the live read is forbidden":          {Access: component.AccessForbidden},
		"the live read fails":                 {Access: component.AccessFailed},
		"the live read times out":             {Access: component.AccessTimedOut},
		"the kind is gone":                    {Access: component.AccessKindNotInstalled},
		"nobody answered the live read":       {},
		"the live read says found and is nil": {Access: component.AccessFound},
	}
	for name, reading := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.gate("platform", 0, "a", "b")
			w.both("a", green(1))
			w.memory.put("b", green(1))
			w.live.put("b", reading)
			result, effects := w.pass()
			require.Len(t, effects, 2)
			require.Contains(t, effects[0], "olm False")
			require.NotContains(t, effects[1], "True")
			require.Equal(t, unconfirmed, result.RequeueAfter, "a read that failed once wakes nobody")

			w.live.put("b", green(1))
			_, effects = w.pass()
			require.Equal(t, []string{"status True AllComponentsReady", "olm True AllComponentsReady"}, effects)
		})
	}
}

func TestOneUnreadableComponentDoesNotHideAnother(t *testing.T) {
	w := newWorld(t)
	w.gate("platform", 0, "a", "b")
	w.both("a", component.Reading{Access: component.AccessForbidden, Detail: "no right"})
	veto := green(1)
	veto.Snapshot.Generation = 2
	w.both("b", veto)
	w.pass()
	require.Equal(t,
		"2 of 2 required components not ready: a: Forbidden (no right); b: ObservedGenerationStale (generation 2, observed 1)",
		w.olm.held.Entry.Message)
}

func TestALostLockOnTheStatusLeavesOLMUntold(t *testing.T) {
	for name, conflicts := range map[string]int{"once": 1, "five times": 5} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.gate("platform", 0, "a")
			w.both("a", green(1))
			w.failStatus = func(n int) error {
				if n > conflicts {
					return nil
				}
				return apierrors.NewConflict(schema.GroupResource{Resource: "upgradegates"}, "platform", errors.New("changed"))
			}
			for range conflicts {
				result, effects := w.pass()
				require.Empty(t, effects)
				require.Equal(t, again, result.RequeueAfter)
			}
			_, effects := w.pass()
			require.Equal(t, []string{"status True AllComponentsReady", "olm True AllComponentsReady"}, effects)
		})
	}
}

func TestAFailedStatusWriteNeverOpensAndNeverKeepsOpen(t *testing.T) {
	failure := errors.New("the disk is full")
	w := newWorld(t)
	w.gate("platform", 0, "a")
	w.both("a", green(1))
	w.failStatus = func(int) error { return failure }
	_, err := w.reconciler.Reconcile(t.Context(), reconcile.Request{})
	require.ErrorIs(t, err, failure)
	require.Empty(t, w.journal.take())

	w.failStatus = nil
	w.pass()
	w.both("a", stale())
	w.failStatus = func(int) error { return failure }
	_, err = w.reconciler.Reconcile(t.Context(), reconcile.Request{})
	require.ErrorIs(t, err, failure)
	require.Equal(t, []string{"olm False ComponentsNotReady"}, w.journal.take(), "OLM is told although the status cannot be written")
}

func TestAStatusWriteThatLandsAndIsReportedAsFailedDoesNotOpen(t *testing.T) {
	w := newWorld(t)
	g := w.gate("platform", 0, "a")
	w.both("a", green(1))
	w.failStatus = func(int) error {
		// The gate moved on while the answer was lost.
		moved := w.stored(g.Name)
		moved.Spec.Hold = &v1alpha1.Hold{Message: "freeze"}
		require.NoError(t, w.client.Update(t.Context(), moved))
		w.failStatus = nil
		return nil
	}
	w.pass()
	_, effects := w.pass()
	require.Equal(t, []string{"olm False Held", "status False Held"}, effects)
}

func TestSomebodyWhoWritesToOLMDuringTheOpeningWins(t *testing.T) {
	w := newWorld(t)
	w.gate("platform", 0, "a")
	w.both("a", green(1))
	// The refresh at the start of the process has been.
	w.reconciler.start = w.clock.Now()
	w.olm.onRefresh = func() {
		w.olm.onRefresh = nil
		w.olm.write(gate.Announcement{Reason: v1alpha1.ReasonInitializing})
	}
	w.olm.write(gate.Announcement{Reason: v1alpha1.ReasonComponentsNotReady})
	w.journal.take()
	result, effects := w.pass()
	require.Equal(t, []string{"olm False Initializing", "status True AllComponentsReady", "olm conflict"}, effects)
	require.Equal(t, again, result.RequeueAfter)
	_, effects = w.pass()
	require.Equal(t, []string{"olm True AllComponentsReady"}, effects)
}

func TestAnOpeningThatTookTooLongIsMadeAnew(t *testing.T) {
	w := newWorld(t)
	w.gate("platform", 0, "a")
	w.both("a", green(1))
	w.live.onRead = func(string) { w.clock.Step(openingLimit + time.Second) }
	_, effects := w.pass()
	require.Equal(t, []string{"status True AllComponentsReady"}, effects, "the process may have been paused: the evidence is old")
	w.live.onRead = nil
	_, effects = w.pass()
	require.Equal(t, []string{"olm True AllComponentsReady"}, effects)
}

func TestAGateCreatedDuringTheOpeningCounts(t *testing.T) {
	w := newWorld(t)
	w.gate("platform", 0, "a")
	w.both("a", green(1))
	w.olm.onRefresh = func() {
		w.olm.onRefresh = nil
		if len(w.reconciler.memory) == 1 {
			w.gate("second", 0, "b")
			w.both("b", stale())
		}
	}
	// The first refresh belongs to the start of the process.
	w.reconciler.start = w.clock.Now()
	_, effects := w.pass()
	require.Equal(t, "olm False ComponentsNotReady", effects[0])
	require.NotContains(t, effects, "olm True AllComponentsReady")
}

func TestTheSettleWindow(t *testing.T) {
	w := newWorld(t)
	w.gate("platform", 30, "a", "b")
	w.both("a", green(1))
	w.both("b", green(1))
	result, effects := w.pass()
	require.Equal(t, []string{"olm False Settling", "status False Settling"}, effects)
	require.Equal(t, 30*time.Second, result.RequeueAfter)

	w.clock.Step(20 * time.Second)
	w.both("b", stale())
	_, effects = w.pass()
	require.Equal(t, []string{"olm False ComponentsNotReady", "status False ComponentsNotReady"}, effects)

	w.both("b", green(1))
	w.pass()
	w.clock.Step(29 * time.Second)
	result, effects = w.pass()
	require.Empty(t, effects)
	require.Equal(t, time.Second, result.RequeueAfter)
	w.clock.Step(time.Second)
	_, effects = w.pass()
	require.Equal(t, []string{"status True AllComponentsReady", "olm True AllComponentsReady"}, effects)
}

func TestARestartDoesNotFlapAHealthyGate(t *testing.T) {
	w := newWorld(t)
	w.gate("platform", 30, "a")
	w.both("a", green(1))
	w.pass()
	w.clock.Step(30 * time.Second)
	w.pass()
	w.pass()
	w.journal.take()
	w.restart()
	_, effects := w.pass()
	require.Empty(t, effects)
	require.Equal(t, "True AllComponentsReady", w.condition("platform", v1alpha1.ConditionUpgradeable))
}

func TestANewLeaderLeavesOLMAloneUntilItHasReadEverything(t *testing.T) {
	w := opened(t)
	w.restart()
	w.memory.put("b", component.Reading{})
	result, effects := w.pass()
	require.Empty(t, effects)
	require.Equal(t, startGrace, result.RequeueAfter)

	t.Run("but not for longer than the grace", func(t *testing.T) {
		w.clock.Step(startGrace)
		_, effects := w.pass()
		require.Equal(t, []string{"olm False Initializing", "status False Initializing"}, effects)
	})
}

func TestANewLeaderThatKnowsOfABadComponentClosesAtOnce(t *testing.T) {
	w := opened(t)
	w.restart()
	w.both("a", stale())
	w.memory.put("b", component.Reading{})
	_, effects := w.pass()
	require.Equal(t, []string{"olm False ComponentsNotReady", "status False ComponentsNotReady"}, effects)
}

func TestANewLeaderDoesNotAnnounceHalfOfWhatItWillKnow(t *testing.T) {
	w := newWorld(t)
	w.gate("platform", 0, "a", "b")
	w.both("a", stale())
	w.olm.write(gate.Announcement{Reason: v1alpha1.ReasonInitializing})
	w.journal.take()
	_, effects := w.pass()
	require.Empty(t, effects, "OLM holds False already, and b was not read yet")
	w.both("b", green(1))
	_, effects = w.pass()
	require.Equal(t, []string{"olm False ComponentsNotReady", "status False ComponentsNotReady"}, effects)
	require.NotContains(t, w.olm.held.Entry.Message, "b:")
}

func TestALaterUnreadComponentClosesAtOnce(t *testing.T) {
	w := opened(t)
	w.memory.put("b", component.Reading{})
	_, effects := w.pass()
	require.Equal(t, []string{"olm False Initializing", "status False Initializing"}, effects)
}
