package judge

import "fmt"

// proven says whether object proves that it reconciled its current generation
// successfully, as the gate's component asks for it, and if not why.
//
// Expressions are not evaluated: the scenarios expect their outcome literally.
func proven(component, object map[string]any) (bool, string) {
	if object == nil {
		return false, "does not exist"
	}
	if dig(object, "metadata", "deletionTimestamp") != nil {
		return false, "is being deleted"
	}
	generation, ok := number(dig(object, "metadata", "generation"))
	if !ok {
		return false, "has no generation"
	}
	reported := entries(object, "status", "conditions")
	required := requirements(component, reported)
	if why := observed(object, generation, required, reported); why != "" {
		return false, why
	}
	for _, r := range required {
		if why := holds(r, reported, generation); why != "" {
			return false, why
		}
	}
	for _, own := range ofType(reported, "Upgradeable") {
		if status := text(own["status"]); status != "True" {
			return false, "says Upgradeable=" + status
		}
	}
	return true, ""
}

// requirement is one condition that must hold.
type requirement struct {
	conditionType, status string
	mayBeMissing          bool
}

func requirements(component map[string]any, reported []map[string]any) []requirement {
	if listed := entries(component, "conditions"); len(listed) > 0 {
		var out []requirement
		for _, c := range listed {
			out = append(out, requirement{text(c["type"]), text(c["status"]), text(c["whenMissing"]) == "Ignore"})
		}
		return out
	}
	if len(ofType(reported, "Available")) > 0 {
		return []requirement{{"Available", "True", false}, {"Progressing", "False", false}, {"Degraded", "False", false}}
	}
	return []requirement{{"Ready", "True", false}, {"Reconciling", "False", true}, {"Stalled", "False", true}}
}

// observed says what is wrong with the generation that the status claims to
// describe; empty when nothing is. Every generation that is reported must be the
// current one, and there must be one: for the status as a whole, or for each
// required condition.
func observed(object map[string]any, generation int64, required []requirement, reported []map[string]any) string {
	top := dig(object, "status", "observedGeneration")
	if top != nil {
		if n, ok := number(top); !ok || n != generation {
			return fmt.Sprintf("observed generation %v, has %d", top, generation)
		}
		return ""
	}
	for _, r := range required {
		for _, c := range ofType(reported, r.conditionType) {
			if c["observedGeneration"] == nil {
				return "reports no observed generation for " + r.conditionType
			}
		}
	}
	if len(reported) == 0 {
		return "reports no conditions"
	}
	return ""
}

func holds(r requirement, reported []map[string]any, generation int64) string {
	found := ofType(reported, r.conditionType)
	switch {
	case len(found) == 0 && r.mayBeMissing:
		return ""
	case len(found) == 0:
		return "does not report " + r.conditionType
	case len(found) > 1:
		return "reports " + r.conditionType + " twice"
	case text(found[0]["status"]) != r.status:
		return fmt.Sprintf("says %s=%v", r.conditionType, found[0]["status"])
	}
	if own := found[0]["observedGeneration"]; own != nil {
		if n, ok := number(own); !ok || n != generation {
			return fmt.Sprintf("observed generation %v for %s, has %d", own, r.conditionType, generation)
		}
	}
	return ""
}
