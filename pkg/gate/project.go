package gate

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/conditions"
)

// Report is what one gate's status is made of.
type Report struct {
	// Generation of the gate that was read at the start of the pass.
	Generation      int64
	Now             metav1.Time
	OperatorVersion string
	Input           Input
	Decision        Decision
	// Told is what OLM is to be told about all gates.
	Told Announcement
	// Held is what OLM holds.
	Held Publication
}

// Project turns a report into a status. Of the previous status only the
// transition times are used.
func Project(previous v1alpha1.UpgradeGateStatus, r Report) v1alpha1.UpgradeGateStatus {
	wanted := []metav1.Condition{
		readyCondition(r), availableCondition(r), progressingCondition(r), degradedCondition(r),
		{Type: v1alpha1.ConditionUpgradeable, Status: truth(r.Decision.Open), Reason: reasonOf(r.Decision), Message: r.Decision.Message},
		publishedCondition(r),
	}
	for i := range wanted {
		wanted[i].ObservedGeneration = r.Generation
		wanted[i].Message = conditions.Line(wanted[i].Message, MaxMessage)
	}
	return v1alpha1.UpgradeGateStatus{
		ObservedGeneration: r.Generation,
		Conditions:         conditions.Merge(previous.Conditions, wanted, r.Now),
		ReadyComponents:    fmt.Sprintf("%d/%d", ready(r.Input.Assessments), required(r.Input.Assessments)),
		OperatorVersion:    r.OperatorVersion,
		OperatorCondition: &v1alpha1.OperatorConditionStatus{
			Name: r.Held.Name, Mode: r.Held.Mode,
			Acknowledged: acknowledges(r.Held, r.Told), Overridden: r.Held.Override,
		},
		Components: projectComponents(previous.Components, r.Input.Assessments, r.Now),
	}
}

func reasonOf(d Decision) string {
	if d.Reason == "" {
		return v1alpha1.ReasonInitializing
	}
	return d.Reason
}

func truth(b bool) metav1.ConditionStatus {
	if b {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

func readyCondition(r Report) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reasonOf(r.Decision), Message: r.Decision.Message}
	if r.Input.Deleting || r.Input.Invalid != "" || !r.Input.Assessed {
		return c
	}
	blockers, of := blockersOf(r.Input.Assessments), required(r.Input.Assessments)
	switch {
	case len(blockers) > 0:
		d := blocked(blockers, of)
		c.Reason, c.Message = d.Reason, d.Message
		if !anyFalse(r.Input.Assessments) {
			c.Status = metav1.ConditionUnknown
		}
	case of == 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonNoComponents, "the gate lists no required component"
	default:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonAllComponentsReady
		c.Message = fmt.Sprintf("all %d required components are ready", of)
	}
	return c
}

func anyFalse(assessments []component.Assessment) bool {
	for _, a := range assessments {
		if !a.Optional && a.Ready == metav1.ConditionFalse {
			return true
		}
	}
	return false
}

// listRoom leaves, of MaxMessage, what the words before a list take.
const listRoom = MaxMessage - 32

// tally names the required components whose fact is True, False or unknown.
type tally struct {
	yes, no, unknown []Blocker
}

func count(assessments []component.Assessment, fact func(component.Assessment) metav1.ConditionStatus) tally {
	var t tally
	for _, a := range assessments {
		if a.Optional {
			continue
		}
		entry := Blocker{Name: a.Name, Reason: a.Reason}
		switch fact(a) {
		case metav1.ConditionTrue:
			t.yes = append(t.yes, entry)
		case metav1.ConditionFalse:
			t.no = append(t.no, entry)
		default:
			t.unknown = append(t.unknown, entry)
		}
	}
	return t
}

// judged reports whether there are assessments of a spec that can be used.
func judged(r Report) bool { return r.Input.Assessed && r.Input.Invalid == "" }

// unjudged is the condition of a gate whose components were not assessed.
func unjudged(r Report, conditionType string) (metav1.Condition, bool) {
	if judged(r) {
		return metav1.Condition{}, false
	}
	return metav1.Condition{
		Type: conditionType, Status: metav1.ConditionUnknown,
		Reason: reasonOf(r.Decision), Message: "the components were not judged",
	}, true
}

func availableCondition(r Report) metav1.Condition {
	if c, ok := unjudged(r, v1alpha1.ConditionAvailable); ok {
		return c
	}
	t := count(r.Input.Assessments, func(a component.Assessment) metav1.ConditionStatus { return a.Available })
	c := metav1.Condition{Type: v1alpha1.ConditionAvailable}
	switch {
	case len(t.no) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonComponentsUnavailable, "not available: "+spellOut(t.no, listRoom)
	case len(t.unknown) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, v1alpha1.ReasonComponentsUnknown, "cannot be judged: "+spellOut(t.unknown, listRoom)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonComponentsAvailable, "every required component is available"
	}
	return c
}

func progressingCondition(r Report) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse}
	t := count(r.Input.Assessments, func(a component.Assessment) metav1.ConditionStatus { return truth(a.Progressing) })
	switch {
	case r.Decision.Reason == v1alpha1.ReasonSettling || r.Decision.Reason == v1alpha1.ReasonInitializing || r.Decision.Reason == "":
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasonOf(r.Decision), r.Decision.Message
	case !judged(r):
		c.Reason, c.Message = reasonOf(r.Decision), "the components were not judged"
	case len(t.yes) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonComponentsProgressing, "rolling out: "+spellOut(t.yes, listRoom)
	default:
		c.Reason, c.Message = v1alpha1.ReasonComponentsSettled, "no required component is rolling out"
	}
	return c
}

func degradedCondition(r Report) metav1.Condition {
	if c, ok := unjudged(r, v1alpha1.ConditionDegraded); ok {
		return c
	}
	t := count(r.Input.Assessments, func(a component.Assessment) metav1.ConditionStatus { return a.Degraded })
	c := metav1.Condition{Type: v1alpha1.ConditionDegraded}
	switch {
	case len(t.yes) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonComponentsDegraded, "degraded: "+spellOut(t.yes, listRoom)
	case len(t.unknown) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, v1alpha1.ReasonComponentsUnknown, "cannot be judged: "+spellOut(t.unknown, listRoom)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonComponentsHealthy, "no required component is degraded"
	}
	return c
}

// acknowledges reports whether OLM acts on exactly this announcement.
func acknowledges(held Publication, told Announcement) bool {
	return held.Problem == "" && held.Acknowledged && held.Entry != nil && *held.Entry == told
}

func publishedCondition(r Report) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionPublished, Status: metav1.ConditionFalse}
	held := r.Held
	switch {
	case held.Mode == v1alpha1.OLMModeV1:
		c.Reason, c.Message = v1alpha1.ReasonOLMv1, "OLM v1 does not read OperatorConditions: nothing enforces this decision"
	case held.Mode == v1alpha1.OLMModeNone:
		c.Reason, c.Message = v1alpha1.ReasonNoOLM, "the operator was not installed by OLM: nothing enforces this decision"
	case held.Mode != v1alpha1.OLMModeV0:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, v1alpha1.ReasonInitializing, "it is not known yet whether OLM enforces this decision"
	case held.Problem == v1alpha1.ReasonPublishFailed:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, held.Problem, held.Detail
	case held.Problem != "":
		c.Reason, c.Message = held.Problem, held.Detail
	case held.Override != "":
		c.Reason = v1alpha1.ReasonOverridden
		c.Message = fmt.Sprintf("an administrator's override Upgradeable=%s in OperatorCondition %s outranks this decision", held.Override, held.Name)
	case held.Refusal != "" && !acknowledges(held, r.Told):
		c.Reason, c.Message = held.Refusal, "OLM could not be told: "+held.RefusalDetail
	case !acknowledges(held, r.Told) || r.Told.Open && !r.Decision.Open:
		c.Reason, c.Message = v1alpha1.ReasonAwaitingAcknowledgement, "OLM has not acknowledged this decision yet; if it stays so, OLM is down, or a Deployment that the CSV lists is missing or lacks the label olm.managed=true"
	case r.Decision.Open && !r.Told.Open:
		c.Reason, c.Message = v1alpha1.ReasonHeldByAnotherGate, "another gate of this namespace is closed, so OLM is told Upgradeable=False"
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonAcknowledged, "OLM holds this decision"
	}
	return c
}

// messageSpace is how many bytes all messages of components may take together: a
// status that outgrows the 1.5 MiB which etcd takes would never be written again.
const messageSpace = 512 * 1024

func projectComponents(previous []v1alpha1.ComponentStatus, assessments []component.Assessment, now metav1.Time) []v1alpha1.ComponentStatus {
	before := make(map[string]v1alpha1.ComponentStatus, len(previous))
	for _, p := range previous {
		before[p.Name] = p
	}
	var list []v1alpha1.ComponentStatus
	for _, a := range assessments {
		s := v1alpha1.ComponentStatus{
			Name: a.Name, Ready: a.Ready, Reason: a.Reason, Message: conditions.TruncateEncoded(a.Message(), messageSpace/len(assessments)), Object: a.Object,
			Generation: a.Generation, ObservedGeneration: a.ObservedGeneration,
			Optional: a.Optional, Proof: a.Proof, LastTransitionTime: now,
		}
		if s.Ready == "" {
			s.Ready = metav1.ConditionUnknown
		}
		if s.Reason == "" {
			s.Reason = v1alpha1.ReasonInitializing
		}
		if p, ok := before[a.Name]; ok && p.Ready == s.Ready && !p.LastTransitionTime.IsZero() {
			s.LastTransitionTime = p.LastTransitionTime
		}
		list = append(list, s)
	}
	return list
}
