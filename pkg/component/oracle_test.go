package component_test

import (
	"math"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
)

// proves is the contract's answer to "is it proven ready?", written from its
// text (sections 4.1 to 4.3) and not from the code under test. It works on the
// object as it was decoded, and shares nothing with the package.
func proves(c v1alpha1.Component, object map[string]any, outcomes []bool) bool {
	metadata, _ := object["metadata"].(map[string]any)
	status, _ := object["status"].(map[string]any)
	generation, ok := whole(metadata["generation"])
	if !ok || generation < 1 || metadata["deletionTimestamp"] != nil {
		return false
	}
	list, isList := status["conditions"].([]any)
	if len(list) > 256 || !isList && status["conditions"] != nil {
		return false
	}
	wanted := asked(c, list)
	top := status["observedGeneration"]
	if n, ok := whole(top); top != nil && (!ok || n != generation) {
		return false
	}
	reported := 0
	for _, w := range wanted {
		entries := ofType(list, w.kind)
		if len(entries) == 0 {
			if !w.mayBeMissing {
				return false
			}
			continue
		}
		reported++
		if len(entries) > 1 || entries[0]["status"] != w.status {
			return false
		}
		own := entries[0]["observedGeneration"]
		if n, ok := whole(own); own == nil && top == nil || own != nil && (!ok || n != generation) {
			return false
		}
	}
	if reported == 0 && (top == nil || len(c.Expressions) == 0) {
		return false
	}
	if vetoes := ofType(list, "Upgradeable"); len(vetoes) > 1 || len(vetoes) == 1 && vetoes[0]["status"] != "True" {
		return false
	}
	for i := range c.Expressions {
		if !outcomes[i] {
			return false
		}
	}
	return true
}

type wantedCondition struct {
	kind         string
	status       any
	mayBeMissing bool
}

func asked(c v1alpha1.Component, list []any) []wantedCondition {
	var wanted []wantedCondition
	for _, r := range c.Conditions {
		wanted = append(wanted, wantedCondition{r.Type, string(r.Status), r.WhenMissing == "Ignore"})
	}
	switch {
	case wanted != nil:
		return wanted
	case len(ofType(list, "Available")) > 0:
		return []wantedCondition{{"Available", "True", false}, {"Progressing", "False", false}, {"Degraded", "False", false}}
	}
	return []wantedCondition{{"Ready", "True", false}, {"Reconciling", "False", true}, {"Stalled", "False", true}}
}

func ofType(list []any, kind string) []map[string]any {
	var found []map[string]any
	for _, entry := range list {
		if m, ok := entry.(map[string]any); ok && m["type"] == kind {
			found = append(found, m)
		}
	}
	return found
}

func whole(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), v == math.Floor(v) && v > -1e15 && v < 1e15
	}
	return 0, false
}
