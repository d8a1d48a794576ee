package conditions_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/upgrade-gate/upgrade-gate/pkg/conditions"
)

func TestMerge(t *testing.T) {
	before := metav1.NewTime(time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC))
	now := metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	for name, c := range map[string]struct {
		previous, wanted, want []metav1.Condition
	}{
		"the first time is now": {
			nil,
			[]metav1.Condition{{Type: "Ready", Status: "True"}},
			[]metav1.Condition{{Type: "Ready", Status: "True", LastTransitionTime: now}},
		},
		"the same status keeps its time, whatever else changes": {
			[]metav1.Condition{{Type: "Ready", Status: "True", Reason: "Old", Message: "old", ObservedGeneration: 1, LastTransitionTime: before}},
			[]metav1.Condition{{Type: "Ready", Status: "True", Reason: "New", Message: "new", ObservedGeneration: 2}},
			[]metav1.Condition{{Type: "Ready", Status: "True", Reason: "New", Message: "new", ObservedGeneration: 2, LastTransitionTime: before}},
		},
		"another status starts now": {
			[]metav1.Condition{{Type: "Ready", Status: "False", LastTransitionTime: before}},
			[]metav1.Condition{{Type: "Ready", Status: "True"}},
			[]metav1.Condition{{Type: "Ready", Status: "True", LastTransitionTime: now}},
		},
		"a time that was never set is now": {
			[]metav1.Condition{{Type: "Ready", Status: "True"}},
			[]metav1.Condition{{Type: "Ready", Status: "True"}},
			[]metav1.Condition{{Type: "Ready", Status: "True", LastTransitionTime: now}},
		},
		"the time of another type is not taken": {
			[]metav1.Condition{{Type: "Available", Status: "True", LastTransitionTime: before}},
			[]metav1.Condition{{Type: "Ready", Status: "True"}},
			[]metav1.Condition{{Type: "Ready", Status: "True", LastTransitionTime: now}},
		},
		"a time in what is wanted does not count": {
			nil,
			[]metav1.Condition{{Type: "Ready", Status: "True", LastTransitionTime: before}},
			[]metav1.Condition{{Type: "Ready", Status: "True", LastTransitionTime: now}},
		},
		"types that nobody wants are dropped, the rest is sorted": {
			[]metav1.Condition{{Type: "Reconciling", Status: "True", LastTransitionTime: before}},
			[]metav1.Condition{{Type: "Ready", Status: "True"}, {Type: "Available", Status: "True"}},
			[]metav1.Condition{{Type: "Available", Status: "True", LastTransitionTime: now}, {Type: "Ready", Status: "True", LastTransitionTime: now}},
		},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, conditions.Merge(c.previous, c.wanted, now)) })
	}
}

func TestMergeChangesNothingItWasGiven(t *testing.T) {
	wanted := []metav1.Condition{{Type: "Ready", Status: "True"}, {Type: "Available", Status: "True"}}
	previous := []metav1.Condition{{Type: "Stale", Status: "True"}}
	conditions.Merge(previous, wanted, metav1.Now())
	require.Equal(t, []metav1.Condition{{Type: "Ready", Status: "True"}, {Type: "Available", Status: "True"}}, wanted)
	require.Equal(t, []metav1.Condition{{Type: "Stale", Status: "True"}}, previous)
}
