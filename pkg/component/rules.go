package component

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/conditions"
)

// upgradeable is the condition by which a component itself asks not to be
// upgraded; it always counts.
const upgradeable = "Upgradeable"

// judgeObservedGeneration is rows 5 to 7: does the status claim to describe the
// current generation? A number in the status outranks those of the conditions,
// which are compared later, each with the object's generation.
func judgeObservedGeneration(required []v1alpha1.ConditionRequirement, o Observation) verdict {
	observed := o.Snapshot.ObservedGeneration
	switch {
	case observed.State == conditions.NumberInvalid:
		return notReady(v1alpha1.ReasonObservedGenerationMissing, "status.observedGeneration is not a generation")
	case observed.State == conditions.NumberAbsent:
		return judgeConditionsCarryGeneration(required, o)
	case !observed.Positive():
		return notReady(v1alpha1.ReasonObservedGenerationMissing, "status.observedGeneration is 0")
	}
	return compareGenerations("", observed.Value, o.Snapshot.Generation)
}

// judgeConditionsCarryGeneration applies when status.observedGeneration is
// absent: then each required condition that is reported must carry its own, for
// one that does not could be left from an older generation.
func judgeConditionsCarryGeneration(required []v1alpha1.ConditionRequirement, o Observation) verdict {
	proven := false
	for _, r := range required {
		c, count := o.Snapshot.Conditions.Find(r.Type)
		if count == 0 {
			continue
		}
		if !c.ObservedGeneration.Positive() {
			return notReady(v1alpha1.ReasonObservedGenerationMissing,
				"neither status nor condition %s reports an observedGeneration", r.Type)
		}
		proven = true
	}
	if !proven {
		return notReady(v1alpha1.ReasonObservedGenerationMissing, "the status reports no observedGeneration")
	}
	return verdict{}
}

// compareGenerations compares for equality, never for "at least": a number that
// is ahead was written for another history of the object.
func compareGenerations(where string, observed, generation int64) verdict {
	fact := fmt.Sprintf("generation %d, observed %d%s", generation, observed, where)
	switch {
	case observed < generation:
		return notReady(v1alpha1.ReasonObservedGenerationStale, "%s", fact)
	case observed > generation:
		return notReady(v1alpha1.ReasonObservedGenerationAhead, "%s", fact)
	}
	return verdict{}
}

// judgeAmbiguity is row 8.
func judgeAmbiguity(required []v1alpha1.ConditionRequirement, o Observation) verdict {
	list := o.Snapshot.Conditions
	if list.Overflow {
		return notReady(v1alpha1.ReasonConditionAmbiguous, "status.conditions has more than %d entries", conditions.MaxForeign)
	}
	for _, r := range required {
		if _, count := list.Find(r.Type); count > 1 {
			return notReady(v1alpha1.ReasonConditionAmbiguous, "condition %s is reported more than once", r.Type)
		}
	}
	if _, count := list.Find(upgradeable); count > 1 {
		return notReady(v1alpha1.ReasonConditionAmbiguous, "condition %s is reported more than once", upgradeable)
	}
	return verdict{}
}

// judgePresence is row 9.
func judgePresence(c v1alpha1.Component, required []v1alpha1.ConditionRequirement, o Observation) verdict {
	if o.Snapshot.Conditions.Unreadable {
		return notReady(v1alpha1.ReasonConditionMissing, "status.conditions is not a list")
	}
	// Something must say that the component is well: where every condition may
	// be missing, and all are, only an expression can.
	evidence := len(c.Expressions) > 0
	for _, r := range required {
		_, count := o.Snapshot.Conditions.Find(r.Type)
		switch {
		case count > 0:
			evidence = true
		case r.WhenMissing == v1alpha1.WhenMissingIgnore:
		case len(c.Conditions) == 0 && r.Type == "Ready":
			return notReady(v1alpha1.ReasonConditionMissing,
				"the status reports neither Available nor Ready: name the conditions that matter in the component's conditions")
		default:
			return notReady(v1alpha1.ReasonConditionMissing, "condition %s is not reported", r.Type)
		}
	}
	if !evidence {
		return notReady(v1alpha1.ReasonConditionMissing, "none of the component's conditions is reported")
	}
	return verdict{}
}

// judgeConditionGenerations is row 10.
func judgeConditionGenerations(required []v1alpha1.ConditionRequirement, o Observation) verdict {
	for _, r := range required {
		c, _ := o.Snapshot.Conditions.Find(r.Type)
		n := c.ObservedGeneration
		switch {
		case n.State == conditions.NumberAbsent:
			continue
		case n.State == conditions.NumberInvalid:
			return notReady(v1alpha1.ReasonObservedGenerationMissing, "observedGeneration of condition %s is not a generation", r.Type)
		case !n.Positive():
			return notReady(v1alpha1.ReasonObservedGenerationMissing, "observedGeneration of condition %s is 0", r.Type)
		}
		if v := compareGenerations(" by condition "+r.Type, n.Value, o.Snapshot.Generation); v.reason != "" {
			return v
		}
	}
	return verdict{}
}

// judgeUnknown is row 11.
func judgeUnknown(required []v1alpha1.ConditionRequirement, o Observation) verdict {
	for _, conditionType := range append(typesOf(required), upgradeable) {
		c, count := o.Snapshot.Conditions.Find(conditionType)
		if count == 0 || c.Status == "True" || c.Status == "False" {
			continue
		}
		if c.Status == "" {
			return unknown(v1alpha1.ReasonConditionUnknown, "the status of condition %s is not True, False or Unknown", conditionType)
		}
		return unknown(v1alpha1.ReasonConditionUnknown, "%s is Unknown", conditionType).quoting(c)
	}
	return verdict{}
}

func typesOf(required []v1alpha1.ConditionRequirement) []string {
	types := make([]string, 0, len(required)+1)
	for _, r := range required {
		types = append(types, r.Type)
	}
	return types
}

// judgeVeto is row 12.
func judgeVeto(o Observation) verdict {
	if c, _ := o.Snapshot.Conditions.Find(upgradeable); c.Status == "False" {
		return notReady(v1alpha1.ReasonComponentNotUpgradeable, "the component says Upgradeable=False").quoting(c)
	}
	return verdict{}
}

// judgeStatus is row 13.
func judgeStatus(required []v1alpha1.ConditionRequirement, o Observation) verdict {
	for _, r := range required {
		c, count := o.Snapshot.Conditions.Find(r.Type)
		if count == 0 {
			continue
		}
		// A requirement that nobody filled in is met by nothing.
		if r.Status != metav1.ConditionTrue && r.Status != metav1.ConditionFalse {
			return notReady(v1alpha1.ReasonConditionNotMet, "no status is required of condition %s", r.Type)
		}
		if c.Status != string(r.Status) {
			return notReady(v1alpha1.ReasonConditionNotMet, "%s is %s, wanted %s", r.Type, c.Status, r.Status).quoting(c)
		}
	}
	return verdict{}
}

// judgeExpressions is row 14. An outcome that is missing has failed.
func judgeExpressions(c v1alpha1.Component, o Observation) verdict {
	for i, e := range c.Expressions {
		if i >= len(o.Expressions) || !o.Expressions[i].Evaluated {
			return unknown(v1alpha1.ReasonExpressionFailed, "expression %d was not evaluated", i+1)
		}
		outcome := o.Expressions[i]
		if outcome.Failure != "" {
			v := unknown(v1alpha1.ReasonExpressionFailed, "expression %d cannot be evaluated", i+1)
			v.quote = outcome.Failure
			return v
		}
		if !outcome.True {
			v := notReady(v1alpha1.ReasonExpressionFalse, "expression %d is false", i+1)
			if e.Message == "" {
				v.quote = e.Rule
				return v
			}
			// The message is the gate's, not the component's, so OLM may be told.
			v.fact += ": " + conditions.Line(e.Message, conditions.MaxForeignText)
			return v
		}
	}
	return verdict{}
}
