package judge

import (
	"fmt"
	"time"
)

// seenTolerance is how much later than the operator the recorder may hear of a
// component's recovery without the settle window counting as too short.
const seenTolerance = 500 * time.Millisecond

// neverOpenWithoutProof checks every revision in which the operator told OLM
// True: each gate of the namespace had said so before, in its status, and every
// required component was proven when the operator said it.
func neverOpenWithoutProof(h *History) []string {
	var out []string
	mine := h.written()
	for key, revisions := range h.of(olmGroup, olmKind) {
		var lastTrue int64
		for _, r := range revisions {
			if !mine[key][r.RV] || announced(r) != "True" {
				continue
			}
			for _, gate := range h.gatesAt(r.RV) {
				for _, why := range opened(h, r, gate, lastTrue) {
					out = append(out, fmt.Sprintf("revision %d told OLM True, but gate %s %s", r.RV, gate.Key.Name, why))
				}
			}
			lastTrue = r.RV
		}
	}
	return out
}

// announced is the status of the Upgradeable entry that OLM would copy last.
func announced(r *Revision) string {
	list := ofType(entries(r.Object, "spec", "conditions"), "Upgradeable")
	if len(list) == 0 {
		return ""
	}
	return text(list[len(list)-1]["status"])
}

// opened says what is wrong with an announcement at revision oc, as far as one
// gate goes. lastTrue is the revision of the announcement before.
func opened(h *History, oc, gate *Revision, lastTrue int64) []string {
	write := openingWrite(h, gate)
	if write == nil {
		return []string{"did not say Upgradeable=True at that time"}
	}
	var out []string
	if dig(write.Object, "spec", "hold") != nil {
		out = append(out, "was held")
	}
	if dig(write.Object, "metadata", "deletionTimestamp") != nil {
		out = append(out, "was being deleted")
	}
	// A status that an earlier announcement rested on proves nothing for this
	// one: the components may have changed in between.
	moments := []int64{oc.RV}
	if write.RV > lastTrue {
		moments = append(moments, write.RV)
	}
	for _, component := range entries(gate.Object, "spec", "components") {
		if component["optional"] == true {
			continue
		}
		if why := provenAtOneOf(h, gate, component, moments); why != "" {
			out = append(out, fmt.Sprintf("requires %v, which %s", component["name"], why))
		}
	}
	if announcedBefore(h, oc) != "True" {
		out = append(out, tooEarly(h, oc, gate)...)
	}
	return out
}

// openingWrite is the first of the unbroken run of revisions, up to the given
// one, in which the gate says Upgradeable=True; nil when it does not, or when
// that was said of an older spec.
func openingWrite(h *History, gate *Revision) *Revision {
	var first *Revision
	for _, r := range h.of(gateGroup, gateKind)[gate.Key] {
		if r.RV > gate.RV {
			break
		}
		switch {
		case r.Object == nil || gateSays(r, "Upgradeable") != "True":
			first = nil
		case first == nil:
			first = r
		}
	}
	if first == nil {
		return nil
	}
	said, _ := number(dig(first.Object, "status", "observedGeneration"))
	has, _ := number(dig(first.Object, "metadata", "generation"))
	if said != has {
		return nil
	}
	return first
}

func gateSays(r *Revision, conditionType string) string {
	list := ofType(entries(r.Object, "status", "conditions"), conditionType)
	if len(list) != 1 {
		return ""
	}
	return text(list[0]["status"])
}

func provenAtOneOf(h *History, gate *Revision, component map[string]any, moments []int64) string {
	var last string
	for _, rv := range moments {
		ok, why := proven(component, objectAt(h, gate, component, rv))
		if ok {
			return ""
		}
		last = why
	}
	return last
}

func objectAt(h *History, gate *Revision, component map[string]any, rv int64) map[string]any {
	if r := h.at(target(gate, component, false), rv); r != nil {
		return r.Object
	}
	if r := h.at(target(gate, component, true), rv); r != nil {
		return r.Object
	}
	return nil
}

// target is the object that a component names.
func target(gate *Revision, component map[string]any, clusterScoped bool) Key {
	resource := dig(component, "resource")
	group, _ := splitAPIVersion(text(dig(resource, "apiVersion")))
	key := Key{Group: group, Kind: text(dig(resource, "kind")), Name: text(dig(resource, "name"))}
	if clusterScoped {
		return key
	}
	if key.Namespace = text(dig(resource, "namespace")); key.Namespace == "" {
		key.Namespace = gate.Key.Namespace
	}
	return key
}

func splitAPIVersion(s string) (group, version string) {
	for i := range s {
		if s[i] == '/' {
			return s[:i], s[i+1:]
		}
	}
	return "", s
}

// announcedBefore is what OLM held before revision oc.
func announcedBefore(h *History, oc *Revision) string {
	if before := h.at(oc.Key, oc.RV-1); before != nil {
		return announced(before)
	}
	return ""
}

// tooEarly checks the settle window: when OLM is told True after something else,
// each required component has been proven for at least minReadySeconds.
func tooEarly(h *History, oc, gate *Revision) []string {
	seconds, _ := number(dig(gate.Object, "spec", "minReadySeconds"))
	if seconds == 0 {
		return nil
	}
	from := oc.Seen.Add(-time.Duration(seconds)*time.Second + seenTolerance)
	var out []string
	for _, component := range entries(gate.Object, "spec", "components") {
		if component["optional"] == true {
			continue
		}
		key := target(gate, component, false)
		for i := range h.Revisions {
			r := &h.Revisions[i]
			if r.Key != key || r.RV > oc.RV {
				continue
			}
			// What held at the start of the window was seen before it, and is
			// followed by a revision inside, if it ended there.
			if ok, why := proven(component, r.Object); !ok && lastedInto(h, r, from) {
				out = append(out, fmt.Sprintf("opened within its %d s: %v %s", seconds, component["name"], why))
			}
		}
	}
	return out
}

// lastedInto reports whether the state of revision r still held after moment.
func lastedInto(h *History, r *Revision, moment time.Time) bool {
	for i := range h.Revisions {
		next := &h.Revisions[i]
		if next.Key == r.Key && next.RV > r.RV {
			return next.Seen.After(moment)
		}
	}
	return true
}
