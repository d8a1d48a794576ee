package olmdouble_test

import (
	"testing"
	"time"

	apiv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/upgrade-gate/upgrade-gate/test/olmdouble"
)

func condition(kind string, status metav1.ConditionStatus, generation int64, message string) metav1.Condition {
	return metav1.Condition{
		Type:               kind,
		Status:             status,
		ObservedGeneration: generation,
		Reason:             "Because",
		Message:            message,
		LastTransitionTime: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
	}
}

// The cases follow syncOperatorConditionStatus in operator-lifecycle-manager,
// pkg/controller/operators/operatorcondition_controller.go.
func TestCopy(t *testing.T) {
	for name, tc := range map[string]struct {
		generation    int64
		spec, status  []metav1.Condition
		want          []metav1.Condition
		wantUnchanged bool
	}{
		"an empty object gets no status": {
			generation: 1, wantUnchanged: true,
		},
		"the first entry is copied with the generation of the object": {
			generation: 3,
			spec:       []metav1.Condition{condition("Upgradeable", "False", 0, "m")},
			want:       []metav1.Condition{condition("Upgradeable", "False", 3, "m")},
		},
		"the observedGeneration of the writer is discarded": {
			generation: 3,
			spec:       []metav1.Condition{condition("Upgradeable", "True", 99, "m")},
			want:       []metav1.Condition{condition("Upgradeable", "True", 3, "m")},
		},
		"an entry with the same status at the current generation is skipped, even if its message differs": {
			generation:    3,
			spec:          []metav1.Condition{condition("Upgradeable", "True", 0, "new")},
			status:        []metav1.Condition{condition("Upgradeable", "True", 3, "old")},
			want:          []metav1.Condition{condition("Upgradeable", "True", 3, "old")},
			wantUnchanged: true,
		},
		"an entry at an older generation is copied again": {
			generation: 4,
			spec:       []metav1.Condition{condition("Upgradeable", "True", 0, "new")},
			status:     []metav1.Condition{condition("Upgradeable", "True", 3, "old")},
			want:       []metav1.Condition{condition("Upgradeable", "True", 4, "new")},
		},
		"an entry that left spec stays in status and goes stale": {
			generation:    4,
			status:        []metav1.Condition{condition("Upgradeable", "True", 3, "old")},
			want:          []metav1.Condition{condition("Upgradeable", "True", 3, "old")},
			wantUnchanged: true,
		},
		"of two entries of one type the later one stays in status": {
			generation: 2,
			spec: []metav1.Condition{
				condition("Upgradeable", "False", 0, "first"),
				condition("Upgradeable", "True", 0, "second"),
			},
			want: []metav1.Condition{condition("Upgradeable", "True", 2, "second")},
		},
		"Unknown and other types, whatever their case, are copied alike": {
			generation: 2,
			spec: []metav1.Condition{
				condition("upgradeable", "False", 0, "a"),
				condition("Upgradeable", "Unknown", 0, "b"),
			},
			want: []metav1.Condition{
				condition("upgradeable", "False", 2, "a"),
				condition("Upgradeable", "Unknown", 2, "b"),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			oc := &apiv2.OperatorCondition{}
			oc.Generation = tc.generation
			oc.Spec.Conditions, oc.Status.Conditions = tc.spec, tc.status
			before := oc.DeepCopy()
			status, changed := olmdouble.Copy(oc)
			require.Equal(t, tc.want, status)
			require.Equal(t, !tc.wantUnchanged, changed)
			require.Equal(t, before, oc, "Copy must not modify its input")
		})
	}
}

// The cases follow isOperatorUpgradeable in operator-lifecycle-manager,
// pkg/controller/operators/olm/operatorconditions.go.
func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		absent            bool
		overrides, status []metav1.Condition
		allowed           bool
		message           string
	}{
		"a missing object passes": {
			absent: true, allowed: true,
			status: []metav1.Condition{condition("Upgradeable", "False", 7, "m")},
		},
		"a missing entry passes": {
			allowed: true,
		},
		"an entry of another case is a missing entry": {
			allowed: true,
			status:  []metav1.Condition{condition("upgradeable", "False", 7, "m")},
		},
		"True passes": {
			allowed: true,
			status:  []metav1.Condition{condition("Upgradeable", "True", 7, "m")},
		},
		"Unknown passes": {
			allowed: true,
			status:  []metav1.Condition{condition("Upgradeable", "Unknown", 7, "m")},
		},
		"False blocks": {
			status:  []metav1.Condition{condition("Upgradeable", "False", 7, "1 of 3 not ready")},
			message: "operator is not upgradeable: the operator is not upgradeable: 1 of 3 not ready",
		},
		"True at an older generation blocks": {
			status:  []metav1.Condition{condition("Upgradeable", "True", 6, "m")},
			message: `operator is not upgradeable: the operatorcondition status "Upgradeable"="True" is outdated`,
		},
		"True at a newer generation blocks": {
			status:  []metav1.Condition{condition("Upgradeable", "True", 8, "m")},
			message: `operator is not upgradeable: the operatorcondition status "Upgradeable"="True" is outdated`,
		},
		"an override of True outranks a False": {
			allowed:   true,
			overrides: []metav1.Condition{condition("Upgradeable", "True", 0, "go")},
			status:    []metav1.Condition{condition("Upgradeable", "False", 7, "m")},
		},
		"an override of True outranks an outdated entry, whatever its own generation": {
			allowed:   true,
			overrides: []metav1.Condition{condition("Upgradeable", "True", 1, "go")},
			status:    []metav1.Condition{condition("Upgradeable", "False", 6, "m")},
		},
		"an override of False outranks a True": {
			overrides: []metav1.Condition{condition("Upgradeable", "False", 0, "freeze")},
			status:    []metav1.Condition{condition("Upgradeable", "True", 7, "m")},
			message:   "operator is not upgradeable: the operator is not upgradeable: freeze",
		},
		"an override of Unknown blocks": {
			overrides: []metav1.Condition{condition("Upgradeable", "Unknown", 0, "hm")},
			status:    []metav1.Condition{condition("Upgradeable", "True", 7, "m")},
			message:   "operator is not upgradeable: the operator is not upgradeable: hm",
		},
		"of two overrides the first counts": {
			overrides: []metav1.Condition{
				condition("Upgradeable", "False", 0, "first"),
				condition("Upgradeable", "True", 0, "second"),
			},
			message: "operator is not upgradeable: the operator is not upgradeable: first",
		},
		"an override of another type means nothing": {
			overrides: []metav1.Condition{condition("Other", "True", 0, "go")},
			status:    []metav1.Condition{condition("Upgradeable", "False", 7, "m")},
			message:   "operator is not upgradeable: the operator is not upgradeable: m",
		},
	} {
		t.Run(name, func(t *testing.T) {
			oc := &apiv2.OperatorCondition{}
			oc.Generation = 7
			oc.Spec.Overrides, oc.Status.Conditions = tc.overrides, tc.status
			allowed, message := olmdouble.Decide(oc, !tc.absent)
			require.Equal(t, tc.allowed, allowed)
			require.Equal(t, tc.message, message)
		})
	}
}
