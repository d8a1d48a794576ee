package conditions

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Merge returns the wanted conditions sorted by type, each with the transition
// time of its predecessor in previous when the status is the same, and with now
// when it is not. Conditions that are not wanted are dropped: what nobody
// evaluated in this pass says nothing about the present.
func Merge(previous, wanted []metav1.Condition, now metav1.Time) []metav1.Condition {
	merged := slices.Clone(wanted)
	for i := range merged {
		merged[i].LastTransitionTime = now
		for _, old := range previous {
			if old.Type == merged[i].Type && old.Status == merged[i].Status && !old.LastTransitionTime.IsZero() {
				merged[i].LastTransitionTime = old.LastTransitionTime
			}
		}
	}
	slices.SortFunc(merged, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return merged
}
