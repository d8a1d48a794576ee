package probe_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/probe"
)

// byName handles the components whose names it lists; "broken" is invalid and
// "forgotten" is prepared to nothing.
type byName []string

func (b byName) Handles(c v1alpha1.Component) bool {
	for _, name := range b {
		if name == c.Name {
			return true
		}
	}
	return false
}

func (b byName) Prepare(c v1alpha1.Component, at *field.Path, namespace string) (probe.Prepared, field.ErrorList) {
	switch c.Name {
	case "broken":
		// A probe that returns both must not be taken at its word.
		return prepared{namespace, c.Name}, field.ErrorList{field.Required(at.Child("part"), "set it")}
	case "forgotten":
		return nil, nil
	}
	return prepared{namespace, c.Name}, nil
}

type prepared struct{ namespace, name string }

func (prepared) Targets() []component.Target { return nil }

func (prepared) Observe(context.Context, probe.Reader) component.Observation {
	return component.Observation{}
}

func TestRegistryPreparesEachComponentWithItsOnlyProbe(t *testing.T) {
	for name, c := range map[string]struct {
		registry   *probe.Registry
		components []v1alpha1.Component
		want       []probe.Prepared
		errors     []string
	}{
		"no component is no problem": {
			registry: probe.NewRegistry(byName{"a"}),
			want:     []probe.Prepared{},
		},
		"each component goes to the probe that handles it": {
			registry:   probe.NewRegistry(byName{"a"}, byName{"b"}),
			components: []v1alpha1.Component{{Name: "b"}, {Name: "a"}},
			want:       []probe.Prepared{prepared{"ns", "b"}, prepared{"ns", "a"}},
		},
		"an invalid component costs only itself": {
			registry:   probe.NewRegistry(byName{"a", "broken", "c"}),
			components: []v1alpha1.Component{{Name: "a"}, {Name: "broken"}, {Name: "c"}},
			want:       []probe.Prepared{prepared{"ns", "a"}, nil, prepared{"ns", "c"}},
			errors:     []string{`spec.components[1].part: Required value: set it`},
		},
		"a component without a source is invalid": {
			registry:   probe.NewRegistry(byName{"a"}),
			components: []v1alpha1.Component{{Name: "other"}},
			want:       []probe.Prepared{nil},
			errors: []string{`spec.components[0]: Required value: no source is set that this version of upgrade-gate knows; ` +
				`set exactly one: kubectl explain upgradegate.spec.components lists them`},
		},
		"a component with two sources is invalid": {
			registry:   probe.NewRegistry(byName{"a"}, byName{"a"}),
			components: []v1alpha1.Component{{Name: "a"}},
			want:       []probe.Prepared{nil},
			errors:     []string{`spec.components[0]: Invalid value: "a": more than one source is set; keep exactly one`},
		},
		"a probe that forgets to answer makes the component invalid": {
			registry:   probe.NewRegistry(byName{"forgotten"}),
			components: []v1alpha1.Component{{Name: "forgotten"}},
			want:       []probe.Prepared{nil},
			errors:     []string{`spec.components[0]: Internal error: the probe prepared nothing; please report this as a bug of upgrade-gate`},
		},
		"the zero registry accepts nothing": {
			registry:   &probe.Registry{},
			components: []v1alpha1.Component{{Name: "a"}},
			want:       []probe.Prepared{nil},
			errors: []string{`spec.components[0]: Required value: no source is set that this version of upgrade-gate knows; ` +
				`set exactly one: kubectl explain upgradegate.spec.components lists them`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, errs := c.registry.Prepare(c.components, "ns")
			require.Equal(t, c.want, got)
			require.Len(t, errs, len(c.errors))
			for i, want := range c.errors {
				require.EqualError(t, errs[i], want)
			}
		})
	}
}
