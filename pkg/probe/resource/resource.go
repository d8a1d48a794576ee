// Package resource observes a component through the status of one Kubernetes
// object.
//
// Freshness comes from the object itself: the observed generation that its
// status reports, compared with metadata.generation. This package only reads
// it; package component judges.
package resource

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/probe"
)

// Probe handles components whose source is resource. Use New.
type Probe struct {
	env *cel.Env
}

var _ probe.Probe = (*Probe)(nil)

// New returns the probe. It fails only when the expression language cannot be
// set up, which is a bug.
func New() (*Probe, error) {
	env, err := newEnv()
	if err != nil {
		return nil, fmt.Errorf("set up the expression language: %w", err)
	}
	return &Probe{env: env}, nil
}

// Handles implements probe.Probe.
func (p *Probe) Handles(c v1alpha1.Component) bool { return c.Resource != nil }

// Prepare implements probe.Probe. It checks again what the CRD's schema checks,
// because a gate may have been stored under an older schema.
func (p *Probe) Prepare(c v1alpha1.Component, at *field.Path, namespace string) (probe.Prepared, field.ErrorList) {
	gvk, errs := checkReference(c.Resource, at.Child("resource"))
	errs = append(errs, checkPolicy(c.ObservedGeneration, at.Child("observedGeneration"))...)
	errs = append(errs, checkConditions(c.Conditions, at.Child("conditions"))...)
	rules := make([]cel.Program, 0, len(c.Expressions))
	for i, e := range c.Expressions {
		rule, problem := compile(p.env, e.Rule)
		if problem != "" {
			errs = append(errs, field.Invalid(at.Child("expressions").Index(i).Child("rule"), e.Rule, problem))
		}
		rules = append(rules, rule)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return &prepared{
		target: component.Target{
			GVK: gvk, Namespace: c.Resource.Namespace, DefaultNamespace: namespace, Name: c.Resource.Name,
			Whole: len(rules) > 0,
		},
		rules: rules,
	}, nil
}

func checkReference(r *v1alpha1.ResourceReference, at *field.Path) (schema.GroupVersionKind, field.ErrorList) {
	if r == nil {
		return schema.GroupVersionKind{}, field.ErrorList{field.Required(at, "name the object whose status tells whether the component is ready")}
	}
	var errs field.ErrorList
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	switch {
	case r.APIVersion == "":
		errs = append(errs, field.Required(at.Child("apiVersion"), "give group/version, or the version alone for the core group"))
	case err != nil || gv.Version == "":
		errs = append(errs, field.Invalid(at.Child("apiVersion"), r.APIVersion, "give group/version, or the version alone for the core group"))
	case gv.Group == v1alpha1.GroupVersion.Group && r.Kind == "UpgradeGate":
		errs = append(errs, field.Invalid(at, r.Kind, "a gate must not wait for a gate, itself least of all; name the objects themselves"))
	}
	if r.Kind == "" {
		errs = append(errs, field.Required(at.Child("kind"), "give the kind as in the object itself, for example Deployment"))
	}
	if r.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), "give the name of the object"))
	}
	// Both become part of a URL.
	errs = append(errs, checkSegment(r.Name, at.Child("name"))...)
	errs = append(errs, checkSegment(r.Namespace, at.Child("namespace"))...)
	return gv.WithKind(r.Kind), errs
}

func checkSegment(value string, at *field.Path) field.ErrorList {
	problems := path.IsValidPathSegmentName(value)
	if len(problems) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, value, "no object can have this name: it "+strings.Join(problems, ", "))}
}

func checkPolicy(policy v1alpha1.ObservedGenerationPolicy, at *field.Path) field.ErrorList {
	switch policy {
	case "", v1alpha1.ObservedGenerationRequired:
		return nil
	case v1alpha1.ObservedGenerationNotReported:
		return field.ErrorList{field.Invalid(at, policy,
			"needs another proof (a version or a controller block), and this version of upgrade-gate offers none: use Required")}
	}
	return field.ErrorList{field.NotSupported(at, policy, []v1alpha1.ObservedGenerationPolicy{v1alpha1.ObservedGenerationRequired})}
}

func checkConditions(required []v1alpha1.ConditionRequirement, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, r := range required {
		if seen[r.Type] {
			err := field.Duplicate(at.Index(i).Child("type"), r.Type)
			err.Detail = "name each condition type once"
			errs = append(errs, err)
		}
		seen[r.Type] = true
	}
	return errs
}

// prepared is one component. Only the memo changes.
type prepared struct {
	target component.Target
	rules  []cel.Program

	mu sync.Mutex
	// judged is the snapshot to which outcomes belong: most observations find
	// the object unchanged.
	judged   *component.Snapshot
	outcomes []component.ExpressionOutcome
}

// Targets implements probe.Prepared.
func (p *prepared) Targets() []component.Target { return []component.Target{p.target} }

// Observe implements probe.Prepared. Expressions are evaluated only on an object
// that was found, and once for each Snapshot.
func (p *prepared) Observe(ctx context.Context, r probe.Reader) component.Observation {
	o := component.Observation{Reading: r.Read(ctx, p.target)}
	if o.Access != component.AccessFound || o.Snapshot == nil || len(p.rules) == 0 {
		return o
	}
	if outcomes := p.recall(o.Snapshot); outcomes != nil {
		o.Expressions = outcomes
		return o
	}
	outcomes, final := evaluate(ctx, p.rules, o.Snapshot.Object)
	if final {
		p.remember(o.Snapshot, outcomes)
	}
	o.Expressions = outcomes
	return o
}

// recall returns nil when the snapshot is not the one judged last.
func (p *prepared) recall(snapshot *component.Snapshot) []component.ExpressionOutcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.judged != snapshot {
		return nil
	}
	return slices.Clone(p.outcomes)
}

func (p *prepared) remember(snapshot *component.Snapshot, outcomes []component.ExpressionOutcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judged, p.outcomes = snapshot, slices.Clone(outcomes)
}
