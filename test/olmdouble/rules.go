package olmdouble

import (
	"fmt"

	apiv2 "github.com/operator-framework/api/pkg/operators/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Copy is what OLM makes of status.conditions, as in syncOperatorConditionStatus
// (operator-lifecycle-manager,
// pkg/controller/operators/operatorcondition_controller.go).
//
// Each condition of spec, in order, replaces that of its type in status, stamped
// with the object's generation whatever it carries itself; it is skipped when
// status has it with the same status at that generation. Nothing is ever removed:
// what is gone from spec stays in status with its old generation. changed is false
// when OLM would write nothing. oc is not modified.
//
// OLM gets this far only after it has found all of spec.deployments; see Run.
func Copy(oc *apiv2.OperatorCondition) (status []metav1.Condition, changed bool) {
	for _, condition := range oc.Status.Conditions {
		status = append(status, *condition.DeepCopy())
	}
	for _, condition := range oc.Spec.Conditions {
		copied := meta.FindStatusCondition(status, condition.Type)
		if copied != nil && copied.Status == condition.Status && copied.ObservedGeneration == oc.Generation {
			continue
		}
		condition.ObservedGeneration = oc.Generation
		meta.SetStatusCondition(&status, condition)
		changed = true
	}
	return status, changed
}

// Decide reports whether OLM lets the version that oc speaks for be replaced, and
// else what it says about it on the new ClusterServiceVersion, as in
// isOperatorUpgradeable (operator-lifecycle-manager,
// pkg/controller/operators/olm/operatorconditions.go). found is false when there
// is no OperatorCondition; oc is then not looked at.
//
// Absence, a missing entry, True and Unknown pass. The first override outranks
// everything, and is not judged by generation. oc is not modified.
func Decide(oc *apiv2.OperatorCondition, found bool) (allowed bool, message string) {
	if !found {
		return true, ""
	}
	if override := meta.FindStatusCondition(oc.Spec.Overrides, apiv2.Upgradeable); override != nil {
		if override.Status == metav1.ConditionTrue {
			return true, ""
		}
		return false, "operator is not upgradeable: the operator is not upgradeable: " + override.Message
	}
	condition := meta.FindStatusCondition(oc.Status.Conditions, apiv2.Upgradeable)
	if condition == nil {
		return true, ""
	}
	if condition.ObservedGeneration != oc.Generation {
		return false, fmt.Sprintf("operator is not upgradeable: the operatorcondition status %q=%q is outdated",
			condition.Type, condition.Status)
	}
	if condition.Status == metav1.ConditionFalse {
		return false, "operator is not upgradeable: the operator is not upgradeable: " + condition.Message
	}
	return true, ""
}
