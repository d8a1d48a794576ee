package probe

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
)

// Registry finds the probe for each component. The zero Registry knows none, so
// every component is invalid.
type Registry struct {
	probes []Probe
}

// NewRegistry returns a Registry of exactly these probes. Their order does not
// matter.
func NewRegistry(probes ...Probe) *Registry {
	return &Registry{probes: slices.Clone(probes)}
}

// Prepare prepares the components of a gate in namespace, without I/O.
//
// The result has one entry for each component, at the same index; it is nil
// exactly where the component is invalid, and the errors then say which field is
// wrong and how to correct it. A component must be handled by exactly one probe.
func (r *Registry) Prepare(components []v1alpha1.Component, namespace string) ([]Prepared, field.ErrorList) {
	prepared := make([]Prepared, len(components))
	var problems field.ErrorList
	for i, c := range components {
		at := field.NewPath("spec", "components").Index(i)
		p, errs := r.prepareOne(c, at, namespace)
		if len(errs) > 0 {
			problems = append(problems, errs...)
			continue
		}
		prepared[i] = p
	}
	return prepared, problems
}

func (r *Registry) prepareOne(c v1alpha1.Component, at *field.Path, namespace string) (Prepared, field.ErrorList) {
	var handler Probe
	for _, p := range r.probes {
		if !p.Handles(c) {
			continue
		}
		if handler != nil {
			return nil, field.ErrorList{field.Invalid(at, c.Name, "more than one source is set; keep exactly one")}
		}
		handler = p
	}
	if handler == nil {
		return nil, field.ErrorList{field.Required(at,
			"no source is set that this version of upgrade-gate knows; set exactly one: kubectl explain upgradegate.spec.components lists them")}
	}
	p, errs := handler.Prepare(c, at, namespace)
	if p == nil && len(errs) == 0 {
		errs = field.ErrorList{field.InternalError(at, errors.New("the probe prepared nothing; please report this as a bug of upgrade-gate"))}
	}
	return p, errs
}
