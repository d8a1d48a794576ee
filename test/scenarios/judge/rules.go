package judge

import (
	"fmt"
	"reflect"
	"regexp"
	"sort"
	"unicode/utf8"
)

const (
	maxAnnouncement  = 2000
	maxStatusMessage = 1024
)

// reasonPattern is what the OperatorCondition CRD accepts. A write that it
// refuses would leave the previous value, perhaps True, in force.
var reasonPattern = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// Check returns what the history shows to be wrong, sorted; nothing when every
// promise was kept.
func Check(h History) []string {
	h.Prepare()
	var out []string
	for _, rule := range []func(*History) []string{
		oneClearAnnouncement, nothingElseTouched, neverOpenWithoutProof, closeFirst, closedUntilGone,
		noWriteWithoutChange, transitionTimes, boundedStatus, onlyOwnObjects,
	} {
		out = append(out, rule(&h)...)
	}
	sort.Strings(out)
	return out
}

// oneClearAnnouncement: what the operator tells OLM is one entry, True or False,
// with a valid reason and a bounded message; and a gate that is closed because
// of its components names one of them with its cause.
func oneClearAnnouncement(h *History) []string {
	var out []string
	mine := h.written()
	for key, revisions := range h.of(olmGroup, olmKind) {
		for _, r := range revisions {
			if r.Object == nil || !mine[key][r.RV] {
				continue
			}
			list := ofType(entries(r.Object, "spec", "conditions"), "Upgradeable")
			if len(list) != 1 {
				out = append(out, fmt.Sprintf("revision %d has %d Upgradeable entries", r.RV, len(list)))
				continue
			}
			for _, why := range unclear(h, r, list[0]) {
				out = append(out, fmt.Sprintf("revision %d told OLM %v/%v: %s", r.RV, list[0]["status"], list[0]["reason"], why))
			}
		}
	}
	return out
}

func unclear(h *History, r *Revision, entry map[string]any) []string {
	var out []string
	status, reason, message := text(entry["status"]), text(entry["reason"]), text(entry["message"])
	if status != "True" && status != "False" {
		out = append(out, "OLM lets anything but False pass")
	}
	if !reasonPattern.MatchString(reason) {
		out = append(out, "the reason is not valid")
	}
	if message == "" {
		out = append(out, "no message")
	}
	if n := utf8.RuneCountInString(message); n > maxAnnouncement {
		out = append(out, fmt.Sprintf("the message has %d characters", n))
	}
	if status == "False" && reason == "ComponentsNotReady" && !namesCause(h, r.RV, message) {
		out = append(out, fmt.Sprintf("the message names no component with its cause: %q", message))
	}
	return out
}

// namesCause looks for "component: Reason". The gate may have changed since the
// operator looked, so that any component that a gate ever had will do.
func namesCause(h *History, rv int64, message string) bool {
	for _, revisions := range h.of(gateGroup, gateKind) {
		for _, r := range revisions {
			if r.RV > rv {
				break
			}
			for _, component := range entries(r.Object, "spec", "components") {
				named := regexp.MustCompile(`(^|[^-a-z0-9])` + regexp.QuoteMeta(text(component["name"])) + `: [A-Z][A-Za-z]+`)
				if named.MatchString(message) {
					return true
				}
			}
		}
	}
	return false
}

// nothingElseTouched: the operator changes its own entry and nothing else of the
// OperatorCondition.
func nothingElseTouched(h *History) []string {
	var out []string
	mine := h.written()
	for key, revisions := range h.of(olmGroup, olmKind) {
		for i, r := range revisions {
			if i == 0 || r.Object == nil || revisions[i-1].Object == nil || !mine[key][r.RV] {
				continue
			}
			if !reflect.DeepEqual(withoutOwnEntry(revisions[i-1].Object), withoutOwnEntry(r.Object)) {
				out = append(out, fmt.Sprintf("revision %d of OperatorCondition %s changes more than the operator's own entry", r.RV, key.Name))
			}
		}
	}
	return out
}

func withoutOwnEntry(object map[string]any) map[string]any {
	spec, _ := dig(object, "spec").(map[string]any)
	out := map[string]any{
		"labels": dig(object, "metadata", "labels"), "annotations": dig(object, "metadata", "annotations"),
		"owners": dig(object, "metadata", "ownerReferences"), "finalizers": dig(object, "metadata", "finalizers"),
		"status": dig(object, "status"),
	}
	for field, value := range spec {
		out["spec."+field] = value
	}
	var others []map[string]any
	for _, e := range entries(object, "spec", "conditions") {
		if text(e["type"]) != "Upgradeable" {
			others = append(others, e)
		}
	}
	out["spec.conditions"] = others
	return out
}

// closeFirst: a gate's status turns False only after OLM has been told. Where the
// attempt to tell it failed just before, the status may go ahead.
func closeFirst(h *History) []string {
	var out []string
	failed := false
	gates := h.of(gateGroup, gateKind)
	for _, w := range h.Writes {
		if w.Key.Kind == olmKind {
			failed = w.RV == 0
		}
		if w.Key.Kind != gateKind || w.RV == 0 || failed || !closes(gates[w.Key], w.RV) {
			continue
		}
		if held := h.heldAt(w.RV); held != nil && announced(held) == "True" {
			out = append(out, fmt.Sprintf("revision %d closes gate %s while OLM still holds True", w.RV, w.Key.Name))
		}
	}
	return out
}

// closes reports whether the gate's Upgradeable went from True to False in the
// revision rv.
func closes(revisions []*Revision, rv int64) bool {
	for i, r := range revisions {
		if r.RV == rv {
			return i > 0 && gateSays(revisions[i-1], "Upgradeable") == "True" && gateSays(r, "Upgradeable") == "False"
		}
	}
	return false
}

// closedUntilGone: OLM has been told False before a gate that was being deleted
// is let go.
func closedUntilGone(h *History) []string {
	var out []string
	for key, revisions := range h.of(gateGroup, gateKind) {
		for i, r := range revisions {
			if i == 0 || r.Object != nil || revisions[i-1].Object == nil ||
				dig(revisions[i-1].Object, "metadata", "deletionTimestamp") == nil {
				continue
			}
			if held := h.heldAt(r.RV); held != nil && announced(held) == "True" {
				out = append(out, fmt.Sprintf("gate %s was let go at revision %d while OLM held True", key.Name, r.RV))
			}
		}
	}
	return out
}

// Agree says whether, at the end, the gates and OLM hold the same decision;
// empty when they do.
func Agree(h History) string {
	h.Prepare()
	if len(h.Revisions) == 0 {
		return "nothing was recorded"
	}
	end := h.Revisions[len(h.Revisions)-1].RV
	open, gates := true, h.gatesAt(end)
	for _, g := range gates {
		said, _ := number(dig(g.Object, "status", "observedGeneration"))
		has, _ := number(dig(g.Object, "metadata", "generation"))
		if said != has {
			return fmt.Sprintf("the status of gate %s describes generation %d, not %d", g.Key.Name, said, has)
		}
		open = open && gateSays(g, "Upgradeable") == "True"
	}
	held := h.heldAt(end)
	if held == nil || announced(held) == "" || len(gates) == 0 || (announced(held) == "True") == open {
		return ""
	}
	return fmt.Sprintf("OperatorCondition %s says Upgradeable=%s, and all %d gates together say open=%t",
		held.Key.Name, announced(held), len(gates), open)
}
