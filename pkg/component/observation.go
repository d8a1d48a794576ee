// Package component says what an observation of one component means.
//
// It is pure: no client, no clock, no environment. Observations come in,
// assessments go out, and equal inputs give equal outputs.
package component

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/upgrade-gate/upgrade-gate/pkg/conditions"
)

// Target names one object that has to be read. It is comparable.
type Target struct {
	GVK schema.GroupVersionKind
	// Namespace as the user wrote it; it must be empty for a cluster-scoped kind.
	Namespace string
	// DefaultNamespace is used for a namespaced kind when Namespace is empty.
	DefaultNamespace string
	Name             string
	// Whole asks for the whole object in Snapshot.Object, for expressions.
	Whole bool
}

// Access says whether an object could be read. The zero value is not a reading.
type Access int

// The outcomes of a read.
const (
	// AccessUnread: nobody has read it yet; it will be read.
	AccessUnread Access = iota
	// AccessForbidden: the API server refuses the read.
	AccessForbidden
	// AccessFailed: the read failed for another reason.
	AccessFailed
	// AccessTimedOut: no answer came in time.
	AccessTimedOut
	// AccessMisplaced: the reference cannot be right: a namespace for a
	// cluster-scoped kind.
	AccessMisplaced
	// AccessKindNotInstalled: the API server does not serve the kind at this
	// version.
	AccessKindNotInstalled
	// AccessAbsent: the object does not exist.
	AccessAbsent
	// AccessFound: the Snapshot is the object.
	AccessFound
)

// Reading is the outcome of one read of one object. The zero Reading is unread.
type Reading struct {
	Access Access
	// Detail explains every Access but Unread, Absent and Found in stable words:
	// no times, ports, counts or addresses, so that a repeated failure does not
	// rewrite a status.
	Detail string
	// Snapshot is set exactly when Access is AccessFound. It is shared and must
	// not be changed.
	Snapshot *Snapshot
}

// Snapshot is what is kept of an object. Two snapshots that are deeply equal
// mean the same to every assessment; times, resource versions and managed fields
// are left out for that reason.
type Snapshot struct {
	UID types.UID
	// Namespace is empty for a cluster-scoped object.
	Namespace   string
	Generation  int64
	Terminating bool
	// ObservedGeneration is status.observedGeneration.
	ObservedGeneration conditions.Number
	Conditions         conditions.List
	// Object is the whole object less managed fields, only for a Target with
	// Whole.
	Object map[string]any
}

// Observation is everything known about one component at one moment. The zero
// Observation is unread and never ready.
type Observation struct {
	Reading
	// Expressions are the outcomes of the component's expressions, in the order
	// of the spec. A missing outcome counts as failed.
	Expressions []ExpressionOutcome
}

// ExpressionOutcome is the result of one expression. The zero value has failed.
type ExpressionOutcome struct {
	True bool
	// Failure says why the rule could not be evaluated; when both True is false
	// and Failure is empty, the rule is false.
	Failure string
	// Evaluated is set when the rule ran, with or without a failure.
	Evaluated bool
}
