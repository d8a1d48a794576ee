package olm

import (
	"encoding/json"
	"time"

	apiv2 "github.com/operator-framework/api/pkg/operators/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
)

// document is one OperatorCondition as the API server returned it.
//
// It stays in raw JSON values. A typed round trip would rewrite the entries of
// others (times in another notation, an explicit observedGeneration of 0), and a
// time that the CRD admits and metav1.Time does not, such as one with a small t,
// would keep us from reading the object, and so from closing, at all.
type document struct {
	object *unstructured.Unstructured
}

// entry is one condition of a list. The zero entry says nothing.
type entry struct {
	status, reason, message string
	// since is lastTransitionTime as it was written.
	since string
	// observed is the condition's own observedGeneration; 0 when it has none.
	observed int64
}

// blank is an empty OperatorCondition of that name, to read into.
func blank(key types.NamespacedName) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(apiv2.GroupVersion.WithKind("OperatorCondition"))
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	return object
}

// items is the list at path; nil when there is none.
func (d document) items(path ...string) []any {
	value, found, err := unstructured.NestedFieldNoCopy(d.object.Object, path...)
	if err != nil || !found {
		return nil
	}
	list, _ := value.([]any)
	return list
}

// entries are the conditions of exactly that type at path, in their order. A
// type in another case is another type, for OLM as well.
func (d document) entries(kind string, path ...string) []entry {
	var entries []entry
	for _, item := range d.items(path...) {
		if typeOf(item) == kind {
			entries = append(entries, decode(item))
		}
	}
	return entries
}

func typeOf(item any) string {
	fields, _ := item.(map[string]any)
	kind, _ := fields["type"].(string)
	return kind
}

func decode(item any) entry {
	fields, _ := item.(map[string]any)
	var e entry
	e.status, _ = fields["status"].(string)
	e.reason, _ = fields["reason"].(string)
	e.message, _ = fields["message"].(string)
	e.since, _ = fields["lastTransitionTime"].(string)
	e.observed, _ = fields["observedGeneration"].(int64)
	return e
}

func (e entry) encode(kind string) map[string]any {
	return map[string]any{
		"type":               kind,
		"status":             e.status,
		"reason":             e.reason,
		"message":            e.message,
		"lastTransitionTime": e.since,
	}
}

// same reports whether both say the same, whenever they said it.
func (e entry) same(other entry) bool {
	return e.status == other.status && e.reason == other.reason && e.message == other.message
}

// change is a request to give the list exactly one entry of a type.
type change struct {
	kind string
	want entry
	now  time.Time
	// always asks for a write even if nothing differs; see doubt.
	always bool
}

// patch is the merge patch that makes c true, bound to the resource version of
// d; nil when there is nothing to do.
//
// The list of conditions is atomic in the CRD, so all of it is sent, with the
// entries of others as they were read. Overrides are not sent at all.
func (d document) patch(c change) ([]byte, error) {
	found := d.entries(c.kind, "spec", "conditions")
	if len(found) == 1 && found[0].same(c.want) && !c.always {
		return nil, nil
	}
	c.want.since = c.since(found)
	list := make([]any, 0, len(found)+1)
	placed := false
	for _, item := range d.items("spec", "conditions") {
		if typeOf(item) != c.kind {
			list = append(list, item)
			continue
		}
		if !placed {
			list = append(list, c.want.encode(c.kind))
			placed = true
		}
	}
	if !placed {
		list = append(list, c.want.encode(c.kind))
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": d.object.GetResourceVersion()},
		"spec":     map[string]any{"conditions": list},
	})
}

// since is the transition time to write: the one that is there while the status
// stays, provided that the API server will take it again. Of several entries the
// last counts, because OLM copies them in order. A write that must happen anyway
// needs a time that is not there yet, or the API server would not count it as one.
func (c change) since(found []entry) string {
	var there entry
	if n := len(found); n > 0 {
		there = found[n-1]
	}
	now := c.now.UTC()
	if c.always {
		if now.Format(time.RFC3339Nano) == there.since {
			now = now.Add(time.Nanosecond)
		}
		return now.Format(time.RFC3339Nano)
	}
	if _, err := time.Parse(time.RFC3339, there.since); err == nil && there.status == c.want.status {
		return there.since
	}
	return now.Format(time.RFC3339)
}

// upgradeable are the entries by which OLM is told.
func (d document) upgradeable() []entry {
	return d.entries(apiv2.Upgradeable, "spec", "conditions")
}

// says reports whether the only Upgradeable entry is a.
func (d document) says(a gate.Announcement) bool {
	found := d.upgradeable()
	return len(found) == 1 && found[0].same(announce(a))
}

// announce is the entry that tells a.
func announce(a gate.Announcement) entry {
	return entry{status: string(a.Status()), reason: a.Reason, message: a.Message}
}

// announcement is what OLM makes of e: anything but False is consent
// (operator-lifecycle-manager, pkg/controller/operators/olm/operatorconditions.go).
func (e entry) announcement() gate.Announcement {
	return gate.Announcement{
		Open:    e.status != string(metav1.ConditionFalse),
		Reason:  e.reason,
		Message: e.message,
	}
}

// entry is the one usable Upgradeable entry: nil when there is none, when there
// are several, and when it is neither True nor False.
func (d document) entry() *gate.Announcement {
	found := d.upgradeable()
	if len(found) != 1 {
		return nil
	}
	switch metav1.ConditionStatus(found[0].status) {
	case metav1.ConditionTrue, metav1.ConditionFalse:
		a := found[0].announcement()
		return &a
	}
	return nil
}

// acknowledged reports whether OLM has copied a at the object's current
// generation. OLM judges the first Upgradeable of status.conditions and expects
// its generation to be equal, not merely no older; should there be several, all
// must agree, so that it does not matter which one it takes.
func (d document) acknowledged(a *gate.Announcement) bool {
	copied := d.entries(apiv2.Upgradeable, "status", "conditions")
	generation := d.object.GetGeneration()
	if a == nil || generation < 1 || len(copied) == 0 {
		return false
	}
	for _, c := range copied {
		if c.status != string(a.Status()) || c.observed != generation {
			return false
		}
	}
	return true
}

// override is the status of the Upgradeable override; OLM takes the first.
func (d document) override() string {
	found := d.entries(apiv2.Upgradeable, "spec", "overrides")
	if len(found) == 0 {
		return ""
	}
	return found[0].status
}

// deployments are the Deployments that OLM must find before it copies anything.
func (d document) deployments() []string {
	var names []string
	for _, item := range d.items("spec", "deployments") {
		if name, ok := item.(string); ok {
			names = append(names, name)
		}
	}
	return names
}
