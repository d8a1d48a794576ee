package judge

import (
	"sort"
	"time"
)

// Key identifies an object across its versions.
type Key struct {
	Group, Kind, Namespace, Name string
}

// Revision is one stored state of one object.
type Revision struct {
	Key Key
	// RV is the resourceVersion: the revision of etcd at which this state was
	// stored. One etcd counts all kinds together, so that they can be compared.
	RV int64
	// Seen is when the recorder heard of it.
	Seen time.Time
	// Object is the stored object; nil when this revision is its deletion.
	Object map[string]any
}

// Write is one write that the operator sent, with the answer.
type Write struct {
	Key         Key
	Verb        string
	Subresource string
	// Code is the HTTP status of the answer; 0 when the operator gave up waiting.
	Code int
	// Before is the newest resourceVersion of the object that is known to have
	// existed when the write was sent; 0 when none is.
	Before int64
	// RV is the resourceVersion in the answer; 0 when the write was refused.
	RV int64
}

// History is everything that happened in one scenario.
type History struct {
	// Namespace is the operator's.
	Namespace string
	// Revisions of the OperatorConditions, gates and components.
	Revisions []Revision
	// Writes of the operator, in the order of their answers.
	Writes []Write
}

const (
	olmGroup  = "operators.coreos.com"
	olmKind   = "OperatorCondition"
	gateGroup = "upgradegate.io"
	gateKind  = "UpgradeGate"
)

// Prepare sorts the revisions; every rule relies on that order.
func (h *History) Prepare() {
	sort.SliceStable(h.Revisions, func(i, j int) bool { return h.Revisions[i].RV < h.Revisions[j].RV })
}

// at returns the last revision of key at or before rv; nil when there was none,
// or when the object was gone.
func (h *History) at(key Key, rv int64) *Revision {
	var found *Revision
	for i := range h.Revisions {
		r := &h.Revisions[i]
		if r.RV > rv {
			break
		}
		if r.Key == key {
			found = r
		}
	}
	if found == nil || found.Object == nil {
		return nil
	}
	return found
}

// of returns all revisions of one kind in the operator's namespace, by object.
func (h *History) of(group, kind string) map[Key][]*Revision {
	out := map[Key][]*Revision{}
	for i := range h.Revisions {
		r := &h.Revisions[i]
		if r.Key.Group == group && r.Key.Kind == kind && r.Key.Namespace == h.Namespace {
			out[r.Key] = append(out[r.Key], r)
		}
	}
	return out
}

// gatesAt returns the gates of the operator's namespace that existed at rv.
func (h *History) gatesAt(rv int64) []*Revision {
	var out []*Revision
	for key := range h.of(gateGroup, gateKind) {
		if r := h.at(key, rv); r != nil {
			out = append(out, r)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Key.Name < out[j].Key.Name })
	return out
}

// written returns the writes of the operator that the API server accepted, by
// object and revision.
func (h *History) written() map[Key]map[int64]bool {
	out := map[Key]map[int64]bool{}
	for _, w := range h.Writes {
		if w.RV == 0 {
			continue
		}
		if out[w.Key] == nil {
			out[w.Key] = map[int64]bool{}
		}
		out[w.Key][w.RV] = true
	}
	return out
}

// heldAt returns what OLM holds at rv of the version that works then: of the
// OperatorConditions, that to which an operator wrote last; nil when none did.
func (h *History) heldAt(rv int64) *Revision {
	var last *Write
	for i := range h.Writes {
		w := &h.Writes[i]
		if w.Key.Kind == olmKind && w.RV > 0 && w.RV <= rv {
			last = w
		}
	}
	if last == nil {
		return nil
	}
	return h.at(last.Key, rv)
}

// dig follows a path of field names; nil when it leads nowhere.
func dig(v any, path ...string) any {
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[p]
	}
	return v
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// number reads a whole number, however the decoder represented it.
func number(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case float64:
		return int64(n), n == float64(int64(n))
	}
	return 0, false
}

// entries returns the maps in the list at path; anything else in it is left out.
func entries(v any, path ...string) []map[string]any {
	list, _ := dig(v, path...).([]any)
	var out []map[string]any
	for _, e := range list {
		if m, ok := e.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// ofType returns the entries with that type.
func ofType(list []map[string]any, conditionType string) []map[string]any {
	var out []map[string]any
	for _, e := range list {
		if text(e["type"]) == conditionType {
			out = append(out, e)
		}
	}
	return out
}
