// Package probe is the port through which facts about components enter.
//
// It holds the interfaces and the registry, and no implementation.
package probe

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/component"
)

// Reader reads one object. Implementations either answer from memory, without
// I/O, or read live from the API server; both report every failure in the
// Reading.
type Reader interface {
	Read(ctx context.Context, target component.Target) component.Reading
}

// Probe turns the components of one kind of source into something that can be
// observed.
type Probe interface {
	// Handles reports whether the component's source is this probe's.
	Handles(c v1alpha1.Component) bool
	// Prepare checks the component and compiles what it needs, once per spec. It
	// does no I/O. at is the component's place in the spec, for errors, and
	// namespace is the gate's.
	Prepare(c v1alpha1.Component, at *field.Path, namespace string) (Prepared, field.ErrorList)
}

// Prepared is one component, ready to be observed any number of times, from
// several goroutines at once.
type Prepared interface {
	// Targets are the objects whose change must lead to a new observation.
	Targets() []component.Target
	// Observe reads facts, not opinions, through r. It writes nothing. Absence
	// and failure are facts and are reported in the Observation.
	Observe(ctx context.Context, r Reader) component.Observation
}
