package judge

import (
	"fmt"
	"reflect"
	"regexp"
	"unicode/utf8"
)

// noWriteWithoutChange: no write repeats what is stored already. The API server
// stores nothing then and answers with the revision that it has.
func noWriteWithoutChange(h *History) []string {
	var out []string
	newest, doubt := map[Key]int64{}, afterDoubt(h)
	for _, w := range h.Writes {
		watched := w.Key.Group == olmGroup || w.Key.Group == gateGroup
		if !watched || w.RV == 0 {
			continue
		}
		after := h.at(w.Key, w.RV)
		// Removing the last finalizer of a deleted object stores nothing either.
		if after == nil || dig(after.Object, "metadata", "deletionTimestamp") != nil {
			continue
		}
		what := fmt.Sprintf("%s of %s %s at revision %d", w.Verb, w.Key.Kind, w.Key.Name, w.RV)
		switch before := h.at(w.Key, w.RV-1); {
		case w.RV <= max(newest[w.Key], w.Before):
			out = append(out, what+": that revision was there before")
		case before != nil && after.RV == w.RV && sameBut(before, after) && !doubt[w.RV]:
			out = append(out, what+" changes nothing")
		}
		newest[w.Key] = max(newest[w.Key], w.RV)
	}
	return out
}

// afterDoubt returns the revisions in which the operator wrote to OLM after a
// write of which it could not know whether it had arrived. Only a write that
// stores a new revision, if with nothing but a new time in it, makes sure that
// the other one does not arrive later.
func afterDoubt(h *History) map[int64]bool {
	out := map[int64]bool{}
	doubt := false
	for _, w := range h.Writes {
		if w.Key.Kind != olmKind {
			continue
		}
		if doubt && w.RV > 0 {
			out[w.RV] = true
		}
		doubt = w.RV == 0 && (w.Code == 0 || w.Code >= 500)
	}
	return out
}

// sameBut compares two states without what a write changes by itself.
func sameBut(a, b *Revision) bool {
	return reflect.DeepEqual(withoutTraces(a.Object), withoutTraces(b.Object))
}

// withoutTraces copies v without resourceVersion, managedFields and transition
// times: a write that changes nothing but these says nothing new.
func withoutTraces(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			if key != "resourceVersion" && key != "managedFields" && key != "lastTransitionTime" {
				out[key] = withoutTraces(value)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = withoutTraces(v[i])
		}
		return out
	}
	return v
}

// transitionTimes: a transition time moves only together with its status.
func transitionTimes(h *History) []string {
	var out []string
	mine, doubt := h.written(), afterDoubt(h)
	compare := func(key Key, before, after *Revision, id, status string, path ...string) {
		old := map[string]map[string]any{}
		for _, e := range entries(before.Object, path...) {
			old[text(e[id])] = e
		}
		for _, e := range entries(after.Object, path...) {
			was, known := old[text(e[id])]
			if known && was[status] == e[status] && was["lastTransitionTime"] != e["lastTransitionTime"] {
				out = append(out, fmt.Sprintf("revision %d of %s %s: %s stays %v, and its lastTransitionTime moves",
					after.RV, key.Kind, key.Name, text(e[id]), e[status]))
			}
		}
	}
	each := func(group, kind string, check func(key Key, before, after *Revision)) {
		for key, revisions := range h.of(group, kind) {
			for i := 1; i < len(revisions); i++ {
				if mine[key][revisions[i].RV] && !doubt[revisions[i].RV] && revisions[i].Object != nil && revisions[i-1].Object != nil {
					check(key, revisions[i-1], revisions[i])
				}
			}
		}
	}
	each(gateGroup, gateKind, func(key Key, before, after *Revision) {
		compare(key, before, after, "type", "status", "status", "conditions")
		compare(key, before, after, "name", "ready", "status", "components")
	})
	each(olmGroup, olmKind, func(key Key, before, after *Revision) {
		compare(key, before, after, "type", "status", "spec", "conditions")
	})
	return out
}

// boundedStatus: each condition and each component of a gate's status has a
// valid reason and a message that fits.
func boundedStatus(h *History) []string {
	var out []string
	for key, revisions := range h.of(gateGroup, gateKind) {
		for _, r := range revisions {
			said := append(entries(r.Object, "status", "conditions"), entries(r.Object, "status", "components")...)
			for _, e := range said {
				who := text(e["type"]) + text(e["name"])
				if !reasonPattern.MatchString(text(e["reason"])) {
					out = append(out, fmt.Sprintf("revision %d of gate %s: reason %q of %s is not valid", r.RV, key.Name, text(e["reason"]), who))
				}
				if n := utf8.RuneCountInString(text(e["message"])); n > maxStatusMessage {
					out = append(out, fmt.Sprintf("revision %d of gate %s: the message of %s has %d characters", r.RV, key.Name, who, n))
				}
				if text(e["reason"]) == "ComponentsNotReady" && success.MatchString(text(e["message"])) {
					out = append(out, fmt.Sprintf("revision %d of gate %s calls components not ready with a text of success: %q", r.RV, key.Name, text(e["message"])))
				}
			}
		}
	}
	return out
}

// success matches what nobody should read below a False.
var success = regexp.MustCompile(`(?i)success|completed`)

// onlyOwnObjects: the operator never creates or deletes an OperatorCondition,
// never writes its status, which is OLM's, and writes nothing outside of its
// own namespace but a gate's status.
func onlyOwnObjects(h *History) []string {
	var out []string
	for _, w := range h.Writes {
		what := fmt.Sprintf("%s of %s %s/%s %s", w.Verb, w.Key.Kind, w.Key.Namespace, w.Key.Name, w.Subresource)
		switch {
		case w.Key.Kind == olmKind && w.Verb != "update" && w.Verb != "patch":
			out = append(out, what+": OLM makes and removes OperatorConditions")
		case w.Key.Kind == olmKind && w.Subresource != "":
			out = append(out, what+": the status is OLM's")
		case w.Key.Namespace != h.Namespace && w.Key.Kind != gateKind && w.Key.Kind != "Event":
			out = append(out, what+": not the operator's namespace")
		}
	}
	return out
}
