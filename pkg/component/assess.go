package component

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/conditions"
)

// Assess judges one component from one observation of it.
//
// The rules are tried in the order of docs/judging.md and the first that applies
// wins. Assess never fails: what could not be read is Unknown, what was read but
// does not prove that the current generation was reconciled is False.
func Assess(c v1alpha1.Component, o Observation) Assessment {
	required := requirements(c, o)
	rules := []func() verdict{
		func() verdict { return judgeAccess(c, o.Reading) },
		func() verdict { return judgeObservedGeneration(required, o) },
		func() verdict { return judgeAmbiguity(required, o) },
		func() verdict { return judgePresence(c, required, o) },
		func() verdict { return judgeConditionGenerations(required, o) },
		func() verdict { return judgeUnknown(required, o) },
		func() verdict { return judgeVeto(o) },
		func() verdict { return judgeStatus(required, o) },
		func() verdict { return judgeExpressions(c, o) },
	}
	won := verdict{ready: metav1.ConditionTrue, reason: v1alpha1.ReasonReady, fact: "ready at its current generation"}
	for _, rule := range rules {
		if v := rule(); v.reason != "" {
			won = v
			break
		}
	}
	return describe(c, o, won)
}

// describe adds to the verdict what the observation says about the component.
func describe(c v1alpha1.Component, o Observation, v verdict) Assessment {
	a := Assessment{
		Name: c.Name, Optional: c.Optional, Ready: v.ready, Reason: v.reason,
		Fact: conditions.Line(v.fact, MaxMessage), Quote: conditions.Line(v.quote, MaxMessage),
		Object: objectOf(c, o.Snapshot), Proof: v1alpha1.ProofGeneration, Available: v.ready, Degraded: metav1.ConditionUnknown,
	}
	if v.reason == v1alpha1.ReasonInitializing {
		a.Progressing = true
	}
	if o.Access != AccessFound || o.Snapshot == nil {
		if o.Access == AccessAbsent || o.Access == AccessKindNotInstalled {
			a.Degraded = metav1.ConditionFalse
		}
		return a
	}
	a.UID, a.Generation = o.Snapshot.UID, o.Snapshot.Generation
	a.ObservedGeneration = reportedGeneration(requirements(c, o), o.Snapshot)
	list := o.Snapshot.Conditions
	switch available, count := list.Find("Available"); {
	case count == 1:
		a.Available = metav1.ConditionStatus(available.Status)
	case count > 1:
		a.Available = metav1.ConditionUnknown
	}
	a.Progressing = v.reason == v1alpha1.ReasonObservedGenerationStale || v.reason == v1alpha1.ReasonTerminating ||
		says(list, "Progressing", "True") || says(list, "Reconciling", "True")
	a.Degraded = degradation(list)
	return a
}

// degradation is True when the component says that it is Degraded or Stalled,
// and Unknown when it says neither that it is nor that it is not.
func degradation(list conditions.List) metav1.ConditionStatus {
	if says(list, "Degraded", "True") || says(list, "Stalled", "True") {
		return metav1.ConditionTrue
	}
	undecided := list.Unreadable || list.Overflow ||
		says(list, "Degraded", "Unknown", "") || says(list, "Stalled", "Unknown", "")
	if undecided {
		return metav1.ConditionUnknown
	}
	return metav1.ConditionFalse
}

// objectOf names the object as group/Kind namespace/name. The namespace is left
// out while it is not known: whether a kind is namespaced shows only in an
// object of it.
func objectOf(c v1alpha1.Component, s *Snapshot) string {
	if c.Resource == nil {
		return ""
	}
	kind := c.Resource.Kind
	if group, _, found := strings.Cut(c.Resource.APIVersion, "/"); found {
		kind = group + "/" + kind
	}
	namespace := c.Resource.Namespace
	if s != nil {
		namespace = s.Namespace
	}
	if namespace == "" {
		return kind + " " + c.Resource.Name
	}
	return kind + " " + namespace + "/" + c.Resource.Name
}

// says reports whether any entry of the type has one of the statuses.
func says(list conditions.List, conditionType string, statuses ...string) bool {
	return slices.ContainsFunc(list.Items, func(c conditions.Condition) bool {
		return c.Type == conditionType && slices.Contains(statuses, c.Status)
	})
}

// reportedGeneration is the lowest generation that the status claims to
// describe, 0 when it claims none.
func reportedGeneration(required []v1alpha1.ConditionRequirement, s *Snapshot) int64 {
	lowest := s.ObservedGeneration
	for _, r := range required {
		c, _ := s.Conditions.Find(r.Type)
		if n := c.ObservedGeneration; n.Positive() && (!lowest.Positive() || n.Value < lowest.Value) {
			lowest = n
		}
	}
	if !lowest.Positive() {
		return 0
	}
	return lowest.Value
}

// requirements are the conditions that must hold: those of the spec, else those
// that follow from what the object reports.
func requirements(c v1alpha1.Component, o Observation) []v1alpha1.ConditionRequirement {
	if len(c.Conditions) > 0 {
		return c.Conditions
	}
	if o.Snapshot != nil {
		if _, count := o.Snapshot.Conditions.Find("Available"); count > 0 {
			return []v1alpha1.ConditionRequirement{
				{Type: "Available", Status: metav1.ConditionTrue},
				{Type: "Progressing", Status: metav1.ConditionFalse},
				{Type: "Degraded", Status: metav1.ConditionFalse},
			}
		}
	}
	return []v1alpha1.ConditionRequirement{
		{Type: "Ready", Status: metav1.ConditionTrue},
		{Type: "Reconciling", Status: metav1.ConditionFalse, WhenMissing: v1alpha1.WhenMissingIgnore},
		{Type: "Stalled", Status: metav1.ConditionFalse, WhenMissing: v1alpha1.WhenMissingIgnore},
	}
}

// judgeAccess covers everything that is decided before the object's status
// counts: rows 1 to 4 of the table.
func judgeAccess(c v1alpha1.Component, r Reading) verdict {
	switch r.Access {
	case AccessForbidden:
		return unknown(v1alpha1.ReasonForbidden, "%s", detail(r, "the API server refuses the read"))
	case AccessFailed:
		return unknown(v1alpha1.ReasonProbeFailed, "%s", detail(r, "the read failed"))
	case AccessTimedOut:
		return unknown(v1alpha1.ReasonProbeTimedOut, "%s", detail(r, "no answer in time"))
	case AccessMisplaced:
		return notReady(v1alpha1.ReasonInvalidSpec, "%s", detail(r, "the reference cannot be right"))
	case AccessKindNotInstalled:
		return notReady(v1alpha1.ReasonKindNotInstalled, "%s", detail(r, "the kind is not installed"))
	case AccessAbsent:
		return notReady(v1alpha1.ReasonNotFound, "%s", absence(c))
	case AccessFound:
		if r.Snapshot == nil {
			return unknown(v1alpha1.ReasonProbeFailed, "the read returned nothing")
		}
		if r.Snapshot.Terminating {
			return notReady(v1alpha1.ReasonTerminating, "the object is being deleted")
		}
		return verdict{}
	default:
		return unknown(v1alpha1.ReasonInitializing, "not read yet")
	}
}

func detail(r Reading, otherwise string) string {
	if r.Detail == "" {
		return otherwise
	}
	return conditions.Line(r.Detail, conditions.MaxForeignText)
}

func absence(c v1alpha1.Component) string {
	if c.Resource == nil || c.Resource.Namespace == "" {
		return "the object does not exist: create it, or correct the component's reference"
	}
	return fmt.Sprintf("the object does not exist: create it, or correct the component's reference; check that namespace %s exists",
		c.Resource.Namespace)
}
