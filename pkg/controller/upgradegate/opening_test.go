package upgradegate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/conditions"
	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
)

const opens = "olm True AllComponentsReady"

func TestWhatHappensWhileComponentsAreReadLiveCounts(t *testing.T) {
	cases := map[string]func(w *world){
		"a hold is added": func(w *world) {
			moved := w.stored("platform")
			moved.Spec.Hold = &v1alpha1.Hold{Message: "freeze"}
			require.NoError(w.t, w.client.Update(w.t.Context(), moved))
		},
		"a second gate comes whose component is stale": func(w *world) {
			w.gate("second", 0, "b")
			w.both("b", stale())
		},
		"the gate is deleted": func(w *world) {
			require.NoError(w.t, w.client.Delete(w.t.Context(), w.stored("platform")))
		},
		"a watch brings that the component turned bad": func(w *world) {
			w.memory.put("a", stale())
		},
	}
	for name, happens := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.gate("platform", 0, "a")
			w.both("a", green(1))
			// The statuses say open already, so that their locks prove nothing.
			w.olm.failOpen = errors.New("no answer")
			_, err := w.reconciler.Reconcile(t.Context(), reconcile.Request{})
			require.ErrorContains(t, err, "no answer")
			w.journal.take()
			w.olm.failOpen = nil
			w.live.onRead = func(string) {
				w.live.onRead = nil
				happens(w)
			}
			result, effects := w.pass()
			require.NotContains(t, effects, opens)
			require.Equal(t, again, result.RequeueAfter)
		})
	}
}

func TestARightToGetThatIsMissingCausesNoWritesForEver(t *testing.T) {
	w := newWorld(t)
	w.gate("platform", 10, "a")
	w.memory.put("a", green(1))
	w.live.put("a", component.Reading{Access: component.AccessForbidden, Detail: "no right to get"})
	w.pass()
	w.clock.Step(10 * time.Second)
	_, effects := w.pass()
	require.Equal(t, []string{"olm False ComponentsNotReady", "status Unknown Forbidden"}, shorten(w, effects))
	for range 5 {
		w.clock.Step(unconfirmed)
		result, effects := w.pass()
		require.Empty(t, effects)
		require.Equal(t, unconfirmed, result.RequeueAfter)
	}
}

// shorten replaces the status line by the component's own verdict.
func shorten(w *world, effects []string) []string {
	for i, e := range effects {
		if strings.HasPrefix(e, "status") {
			c := w.stored("platform").Status.Components[0]
			effects[i] = fmt.Sprintf("status %s %s", c.Ready, c.Reason)
		}
	}
	return effects
}

func TestALiveReadThatTimedOutDoesNotRestartTheSettleWindow(t *testing.T) {
	w := newWorld(t)
	w.gate("platform", 3600, "a")
	w.both("a", green(1))
	w.pass()
	w.clock.Step(time.Hour)
	w.live.put("a", component.Reading{Access: component.AccessTimedOut})
	_, effects := w.pass()
	require.NotContains(t, effects, opens)
	w.live.put("a", green(1))
	w.clock.Step(unconfirmed)
	_, effects = w.pass()
	require.Contains(t, effects, opens)
}

func TestALiveReadThatFoundItStaleRestartsTheSettleWindow(t *testing.T) {
	w := newWorld(t)
	w.gate("platform", 3600, "a")
	w.both("a", green(1))
	w.pass()
	w.clock.Step(time.Hour)
	w.live.put("a", stale())
	w.pass()
	w.live.put("a", green(1))
	_, effects := w.pass()
	require.Equal(t, []string{"olm False Settling", "status False Settling"}, effects)
}

// deafOnce is an OLM whose OperatorCondition cannot be read once.
type deafOnce struct {
	*fakeOLM
	deaf bool
}

func (o *deafOnce) Refresh(ctx context.Context) (gate.Publication, error) {
	if !o.deaf {
		o.held.Problem = ""
		return o.fakeOLM.Refresh(ctx)
	}
	o.deaf = false
	o.held.Problem = v1alpha1.ReasonPublishFailed
	return o.held, errors.New("no answer in time")
}

func TestAnOpeningThatCouldNotReadOLMOnceIsTriedAgainSoon(t *testing.T) {
	w := newWorld(t)
	w.gate("platform", 0, "a")
	w.both("a", stale())
	w.pass()
	w.both("a", green(1))
	w.reconciler.Publisher = &deafOnce{fakeOLM: w.olm, deaf: true}
	result, effects := w.pass()
	require.NotContains(t, effects, opens)
	require.Equal(t, unconfirmed, result.RequeueAfter)
	_, effects = w.pass()
	require.Contains(t, effects, opens)
}

func TestAProofThatEndsDuringAPassIsRenewedAtOnce(t *testing.T) {
	w := opened(t)
	w.clock.Step(proofLifetime - 50*time.Millisecond)
	w.olm.held.Override = "True"
	w.failStatus = func(int) error {
		w.clock.Step(100 * time.Millisecond)
		return nil
	}
	result, _ := w.pass()
	require.Equal(t, again, result.RequeueAfter)
}

func TestAMisspeltListOfComponentsIsRefused(t *testing.T) {
	w := newWorld(t)
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"component": []any{}}}}
	o.SetAPIVersion("upgradegate.io/v1alpha1")
	o.SetKind("UpgradeGate")
	o.SetNamespace(w.namespace)
	o.SetName("typo")
	err := w.client.Create(t.Context(), o)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "spec.components: Required value")
}

func TestAGateWithoutAListIsInvalid(t *testing.T) {
	w := newWorld(t)
	p := w.reconciler.newPass([]v1alpha1.UpgradeGate{{}}, w.clock.Now())
	p.judge(t.Context(), w.memory)
	require.False(t, p.told.Open)
	require.Equal(t, v1alpha1.ReasonInvalidSpec, p.told.Reason)
}

func TestADeletedGateNeedNotWaitForAnOperatorConditionThatIsGone(t *testing.T) {
	w := opened(t)
	require.NoError(t, w.client.Delete(t.Context(), w.stored("platform")))
	w.olm.failClose = errors.New("not found")
	w.olm.held = gate.Publication{Mode: v1alpha1.OLMModeV0, Problem: v1alpha1.ReasonOperatorConditionNotFound}
	w.pass()
	var list v1alpha1.UpgradeGateList
	require.NoError(t, w.client.List(t.Context(), &list))
	for _, g := range list.Items {
		require.NotEqual(t, w.namespace, g.Namespace, "the gate is gone")
	}
}

func TestTheStatusFitsIntoTheAPIServerWhateverComponentsSay(t *testing.T) {
	for _, fill := range []string{"x", "障", "<", "🔥", `\`} {
		t.Run(fill, func(t *testing.T) {
			w := newWorld(t)
			var names []string
			for i := range 500 {
				names = append(names, fmt.Sprintf("component-%03d", i))
			}
			w.gate("platform", 0, names...)
			for _, n := range names {
				r := green(1)
				r.Snapshot.Conditions.Items = []conditions.Condition{{Type: "Ready", Status: "False",
					Reason: strings.Repeat(fill, conditions.MaxForeignReason), Message: strings.Repeat(fill, conditions.MaxForeignText)}}
				w.both(n, r)
			}
			_, effects := w.pass()
			require.Equal(t, []string{"olm False ComponentsNotReady", "status False ComponentsNotReady"}, effects)
		})
	}
}
