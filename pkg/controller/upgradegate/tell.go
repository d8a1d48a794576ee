package upgradegate

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
)

// tell reports transitions: one event and one log line each time that the gate
// opens or closes, and an event when an override appears or goes.
func (r *Reconciler) tell(object *v1alpha1.UpgradeGate, before, after v1alpha1.UpgradeGateStatus) {
	if c := transition(before, after, v1alpha1.ConditionUpgradeable); c != nil {
		action, kind := "Close", corev1.EventTypeWarning
		if c.Status == metav1.ConditionTrue {
			action, kind = "Open", corev1.EventTypeNormal
		}
		r.Events.Eventf(object, nil, kind, c.Reason, action, "%s", c.Message)
		r.Log.Info("gate "+map[string]string{"Open": "opened", "Close": "closed"}[action],
			"gate", object.Name, "reason", c.Reason, "message", c.Message)
	}
	if overridden(before) != overridden(after) {
		published := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionPublished)
		r.Events.Eventf(object, nil, corev1.EventTypeWarning, published.Reason, "Publish", "%s", published.Message)
	}
}

func overridden(s v1alpha1.UpgradeGateStatus) string {
	if s.OperatorCondition == nil {
		return ""
	}
	return s.OperatorCondition.Overridden
}

// transition returns the condition as it is after, if its status changed.
func transition(before, after v1alpha1.UpgradeGateStatus, conditionType string) *metav1.Condition {
	old := meta.FindStatusCondition(before.Conditions, conditionType)
	c := meta.FindStatusCondition(after.Conditions, conditionType)
	if c == nil || old != nil && old.Status == c.Status {
		return nil
	}
	return c
}

// ForeignWrite reports that somebody else wrote our entry of the
// OperatorCondition, as an event on every gate. The publisher repairs it.
func (r *Reconciler) ForeignWrite(ctx context.Context, found gate.Announcement) {
	r.Metrics.foreignWrites.Inc()
	var list v1alpha1.UpgradeGateList
	if err := r.Client.List(ctx, &list, client.InNamespace(r.Namespace)); err != nil {
		r.Log.V(1).Info("cannot list gates to report a foreign write", "error", err.Error())
		return
	}
	for i := range list.Items {
		r.Events.Eventf(&list.Items[i], nil, corev1.EventTypeWarning, v1alpha1.ReasonForeignWrite, "Repair",
			"somebody else wrote Upgradeable=%s to the OperatorCondition", found.Status())
	}
}
