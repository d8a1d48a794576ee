package upgradegate

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
)

func TestWithoutAGate(t *testing.T) {
	cases := map[string]struct {
		policy gate.Policy
		want   string
	}{
		"there is nothing to protect":            {gate.Policy{}, "olm True NoGateDeclared"},
		"--require-gate keeps the brake on":      {gate.Policy{RequireGate: true}, "olm False GateRequired"},
		"the override command changes no reason": {gate.Policy{RequireGate: true, Override: "kubectl"}, "olm False GateRequired"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.reconciler.Policy = c.policy
			_, effects := w.pass()
			require.Equal(t, []string{c.want}, effects)
		})
	}
}

func TestAnExplicitEmptyListIsOpenAndSaysSo(t *testing.T) {
	w := newWorld(t)
	w.gate("platform", 10)
	_, effects := w.pass()
	require.Equal(t, []string{"status True NoComponents", "olm True NoComponents"}, effects)
}

func TestAnInvalidSpecIsClosedAndNamesTheField(t *testing.T) {
	w := newWorld(t)
	w.gate("platform", 0, "refused")
	_, effects := w.pass()
	require.Equal(t, []string{"olm False InvalidSpec", "status False InvalidSpec"}, effects)
	require.Equal(t, "False InvalidSpec", w.condition("platform", v1alpha1.ConditionReady))
	require.Contains(t, w.olm.held.Entry.Message, "UpgradeGate platform: spec.components[0]")
}

func TestAHeldGateIsClosedAndSaysWhy(t *testing.T) {
	w := opened(t)
	g := w.stored("platform")
	g.Spec.Hold = &v1alpha1.Hold{Message: "change freeze until Monday"}
	require.NoError(t, w.client.Update(t.Context(), g))
	_, effects := w.pass()
	require.Equal(t, []string{"olm False Held", "status False Held"}, effects)
	require.Equal(t, "held: change freeze until Monday", w.olm.held.Entry.Message)
	require.Equal(t, "True AllComponentsReady", w.condition("platform", v1alpha1.ConditionReady))
}

func TestAnOptionalComponentIsShownAndNeverCloses(t *testing.T) {
	w := newWorld(t)
	g := w.gate("platform", 0, "a", "extra")
	g.Spec.Components[1].Optional = true
	require.NoError(t, w.client.Update(t.Context(), g))
	w.both("a", green(1))
	w.both("extra", stale())
	_, effects := w.pass()
	require.Equal(t, []string{"status True AllComponentsReady", "olm True AllComponentsReady"}, effects)
	status := w.stored("platform").Status
	require.Equal(t, "1/1", status.ReadyComponents)
	require.Equal(t, v1alpha1.ReasonObservedGenerationStale, status.Components[1].Reason)
}

func TestOfSeveralGatesAllMustBeOpen(t *testing.T) {
	w := newWorld(t)
	w.gate("one", 0, "a")
	w.gate("two", 0, "b")
	w.both("a", green(1))
	w.both("b", stale())
	_, effects := w.pass()
	require.Equal(t, []string{"olm False ComponentsNotReady", "status True AllComponentsReady", "status False ComponentsNotReady"}, effects)
	require.Equal(t, "1 of 2 gates closed: 1 of 1 required components not ready: two/b: ObservedGenerationStale (generation 5, observed 4)",
		w.olm.held.Entry.Message)
	require.Equal(t, "False HeldByAnotherGate", w.condition("one", v1alpha1.ConditionPublished))

	w.both("b", green(1))
	_, effects = w.pass()
	require.Equal(t, "olm True AllComponentsReady", effects[len(effects)-1])
	w.pass()
	require.Equal(t, "True Acknowledged", w.condition("one", v1alpha1.ConditionPublished))
}

func TestADeletedGateIsClosedUntilItIsGone(t *testing.T) {
	w := opened(t)
	require.Contains(t, w.stored("platform").Finalizers, v1alpha1.GateFinalizer)
	require.NoError(t, w.client.Delete(t.Context(), w.stored("platform")))
	_, effects := w.pass()
	require.Equal(t, []string{"olm False GateBeingDeleted", "status False GateBeingDeleted"}, effects)
	err := w.client.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "platform"}, &v1alpha1.UpgradeGate{})
	require.True(t, apierrors.IsNotFound(err), "the finalizer is gone once OLM has been told")
	_, effects = w.pass()
	require.Equal(t, []string{"olm True NoGateDeclared"}, effects)
}

func TestADeletedGateStaysWhileOLMCannotBeTold(t *testing.T) {
	cases := map[string]gate.Publication{
		"because it cannot be read":    {Mode: v1alpha1.OLMModeV0, Problem: v1alpha1.ReasonForbidden},
		"because it cannot be written": {Mode: v1alpha1.OLMModeV0, Refusal: v1alpha1.ReasonForbidden},
	}
	for name, held := range cases {
		t.Run(name, func(t *testing.T) {
			w := opened(t)
			require.NoError(t, w.client.Delete(t.Context(), w.stored("platform")))
			w.olm.failClose = errors.New("forbidden")
			w.olm.held = held
			w.pass()
			require.Contains(t, w.stored("platform").Finalizers, v1alpha1.GateFinalizer)
			require.Equal(t, "False Forbidden", w.condition("platform", v1alpha1.ConditionPublished))
		})
	}
}

func TestWhoCannotBeToldIsShown(t *testing.T) {
	cases := map[string]struct {
		held gate.Publication
		want string
	}{
		"OLM v1":                     {gate.Publication{Mode: v1alpha1.OLMModeV1}, "False OLMv1"},
		"no OLM":                     {gate.Publication{Mode: v1alpha1.OLMModeNone}, "False NoOLM"},
		"nobody found out":           {gate.Publication{}, "Unknown Initializing"},
		"no right to publish":        {gate.Publication{Mode: v1alpha1.OLMModeV0, Problem: v1alpha1.ReasonForbidden}, "False Forbidden"},
		"no such OperatorCondition":  {gate.Publication{Mode: v1alpha1.OLMModeV0, Problem: v1alpha1.ReasonOperatorConditionNotFound}, "False OperatorConditionNotFound"},
		"the write is refused":       {gate.Publication{Mode: v1alpha1.OLMModeV0, Refusal: v1alpha1.ReasonPublishFailed}, "False PublishFailed"},
		"the API server is not well": {gate.Publication{Mode: v1alpha1.OLMModeV0, Problem: v1alpha1.ReasonPublishFailed}, "Unknown PublishFailed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.olm.held = c.held
			w.gate("platform", 0, "a")
			w.both("a", stale())
			w.olm.failClose = errors.New("cannot")
			if c.held.Problem+c.held.Refusal == "" {
				w.olm.failClose = nil
			}
			w.pass()
			require.Equal(t, "False ComponentsNotReady", w.condition("platform", v1alpha1.ConditionUpgradeable))
			w.olm.held = c.held
			w.pass()
			require.Equal(t, c.want, w.condition("platform", v1alpha1.ConditionPublished))
		})
	}
}

func TestAFrozenProcessWritesNothing(t *testing.T) {
	w := opened(t)
	w.olm.held.Frozen = true
	w.both("a", stale())
	before := w.stored("platform").ResourceVersion
	_, effects := w.pass()
	require.Empty(t, effects)
	require.Equal(t, before, w.stored("platform").ResourceVersion)
}

func TestAProcessWhoseDeploymentWasHandedOverWritesNoStatus(t *testing.T) {
	w := newWorld(t)
	g := w.gate("platform", 0, "a", "extra")
	g.Spec.Components[1].Optional = true
	require.NoError(t, w.client.Update(t.Context(), g))
	w.both("a", green(1))
	w.both("extra", green(1))
	w.pass()
	w.pass()
	before := w.stored("platform").ResourceVersion
	// OLM need not be told of this, so only the status would be written.
	w.both("extra", stale())
	w.owner.frozen = true
	_, effects := w.pass()
	require.Empty(t, effects)
	require.Equal(t, before, w.stored("platform").ResourceVersion)
}

func TestAnOverrideIsShownAndTheTruthIsStillPublished(t *testing.T) {
	w := opened(t)
	w.olm.held.Override = "True"
	w.both("a", stale())
	_, effects := w.pass()
	require.Equal(t, []string{"olm False ComponentsNotReady", "status False ComponentsNotReady"}, effects)
	require.Equal(t, "False Overridden", w.condition("platform", v1alpha1.ConditionPublished))
	require.Equal(t, "True", w.stored("platform").Status.OperatorCondition.Overridden)
}

func TestAChangedSpecIsJudgedAnewBeforeItsGenerationIsStamped(t *testing.T) {
	w := opened(t)
	g := w.stored("platform")
	g.Spec.Components[0].Resource.Name = "c"
	require.NoError(t, w.client.Update(t.Context(), g))
	w.both("c", stale())
	w.pass()
	stored := w.stored("platform")
	require.Equal(t, stored.Generation, stored.Status.ObservedGeneration)
	for _, c := range stored.Status.Conditions {
		require.Equal(t, stored.Generation, c.ObservedGeneration, c.Type)
	}
	require.Equal(t, "False ComponentsNotReady", w.condition("platform", v1alpha1.ConditionUpgradeable))
}

func TestEventsAreTransitionsOnly(t *testing.T) {
	w := opened(t)
	for len(w.events.Events) > 0 {
		<-w.events.Events
	}
	w.both("a", stale())
	w.pass()
	w.both("b", stale())
	w.pass()
	w.clock.Step(time.Minute)
	w.pass()
	require.Len(t, w.events.Events, 1)
	event := <-w.events.Events
	require.True(t, strings.HasPrefix(event, "Warning ComponentsNotReady"), event)
	w.both("a", green(3))
	w.both("b", green(1))
	w.pass()
	w.pass()
	require.Len(t, w.events.Events, 1)
	event = <-w.events.Events
	require.True(t, strings.HasPrefix(event, "Normal AllComponentsReady"), event)
}
