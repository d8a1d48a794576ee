package resource_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/probe"
	"github.com/upgrade-gate/upgrade-gate/pkg/probe/probetest"
	"github.com/upgrade-gate/upgrade-gate/pkg/probe/resource"
)

func newProbe(t *testing.T) *resource.Probe {
	t.Helper()
	p, err := resource.New()
	require.NoError(t, err)
	return p
}

func widget(change func(*v1alpha1.Component)) v1alpha1.Component {
	c := v1alpha1.Component{
		Name:     "widget",
		Resource: &v1alpha1.ResourceReference{APIVersion: "test.example.com/v1", Kind: "Widget", Name: "w"},
	}
	if change != nil {
		change(&c)
	}
	return c
}

func rules(rules ...string) v1alpha1.Component {
	return widget(func(c *v1alpha1.Component) {
		for _, rule := range rules {
			c.Expressions = append(c.Expressions, v1alpha1.Expression{Rule: rule})
		}
	})
}

func prepare(t *testing.T, c v1alpha1.Component) (probe.Prepared, field.ErrorList) {
	t.Helper()
	return newProbe(t).Prepare(c, field.NewPath("spec", "components").Index(3), "gate-namespace")
}

func readyWidget() map[string]any {
	return map[string]any{
		"apiVersion": "test.example.com/v1",
		"kind":       "Widget",
		"metadata":   map[string]any{"name": "w", "namespace": "n", "uid": "u", "generation": int64(5)},
		"spec":       map[string]any{"replicas": int64(3)},
		"status": map[string]any{
			"observedGeneration": int64(5),
			"phase":              "Deployed",
			"conditions": []any{
				map[string]any{"type": "Ready", "status": "True"},
			},
		},
	}
}

func TestResourceKeepsTheContractOfProbes(t *testing.T) {
	t.Run("without expressions", func(t *testing.T) {
		probetest.Run(t, probetest.Subject{Probe: newProbe(t), Component: widget(nil), Ready: readyWidget})
	})
	t.Run("with an expression", func(t *testing.T) {
		probetest.Run(t, probetest.Subject{
			Probe: newProbe(t), Component: rules(`self.status.phase == "Deployed"`, `self.spec.replicas > 2`), Ready: readyWidget,
		})
	})
}

func TestPrepareNamesTheObject(t *testing.T) {
	core := widget(func(c *v1alpha1.Component) {
		c.Resource = &v1alpha1.ResourceReference{APIVersion: "v1", Kind: "Node", Name: "n"}
	})
	for name, c := range map[string]struct {
		component v1alpha1.Component
		want      component.Target
	}{
		"without expressions only what is judged is kept": {widget(nil), component.Target{
			GVK:              schema.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "Widget"},
			DefaultNamespace: "gate-namespace", Name: "w",
		}},
		"expressions need the whole object": {rules("true"), component.Target{
			GVK:              schema.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "Widget"},
			DefaultNamespace: "gate-namespace", Name: "w", Whole: true,
		}},
		"a version alone is the core group": {core, component.Target{
			GVK:              schema.GroupVersionKind{Version: "v1", Kind: "Node"},
			DefaultNamespace: "gate-namespace", Name: "n",
		}},
		"a namespace is passed on as it was written": {
			widget(func(c *v1alpha1.Component) { c.Resource.Namespace = "prod" }), component.Target{
				GVK:       schema.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "Widget"},
				Namespace: "prod", DefaultNamespace: "gate-namespace", Name: "w",
			}},
	} {
		t.Run(name, func(t *testing.T) {
			p, errs := prepare(t, c.component)
			require.Empty(t, errs)
			require.Equal(t, []component.Target{c.want}, p.Targets())
		})
	}
}

func TestPrepareRefusesWhatCannotBeRight(t *testing.T) {
	reference := func(change func(*v1alpha1.ResourceReference)) v1alpha1.Component {
		return widget(func(c *v1alpha1.Component) { change(c.Resource) })
	}
	for name, c := range map[string]struct {
		component v1alpha1.Component
		want      []string
	}{
		"no resource": {
			widget(func(c *v1alpha1.Component) { c.Resource = nil }),
			[]string{`spec.components[3].resource: Required value: name the object whose status tells whether the component is ready`},
		},
		"an empty reference": {
			widget(func(c *v1alpha1.Component) { c.Resource = &v1alpha1.ResourceReference{} }),
			[]string{
				`spec.components[3].resource.apiVersion: Required value: give group/version, or the version alone for the core group`,
				`spec.components[3].resource.kind: Required value: give the kind as in the object itself, for example Deployment`,
				`spec.components[3].resource.name: Required value: give the name of the object`,
			},
		},
		"an apiVersion of three parts": {
			reference(func(r *v1alpha1.ResourceReference) { r.APIVersion = "a/b/c" }),
			[]string{`spec.components[3].resource.apiVersion: Invalid value: "a/b/c": give group/version, or the version alone for the core group`},
		},
		"an apiVersion without version": {
			reference(func(r *v1alpha1.ResourceReference) { r.APIVersion = "apps/" }),
			[]string{`spec.components[3].resource.apiVersion: Invalid value: "apps/": give group/version, or the version alone for the core group`},
		},
		"a name with a slash": {
			reference(func(r *v1alpha1.ResourceReference) { r.Name = "a/b" }),
			[]string{`spec.components[3].resource.name: Invalid value: "a/b": no object can have this name: it may not contain '/'`},
		},
		"a namespace that leads elsewhere": {
			reference(func(r *v1alpha1.ResourceReference) { r.Namespace = ".." }),
			[]string{`spec.components[3].resource.namespace: Invalid value: "..": no object can have this name: it may not be '..'`},
		},
		"a gate": {
			reference(func(r *v1alpha1.ResourceReference) { r.APIVersion, r.Kind = "upgradegate.io/v1alpha1", "UpgradeGate" }),
			[]string{`spec.components[3].resource: Invalid value: "UpgradeGate": a gate must not wait for a gate, itself least of all; name the objects themselves`},
		},
		"a gate of a version to come": {
			reference(func(r *v1alpha1.ResourceReference) { r.APIVersion, r.Kind = "upgradegate.io/v1", "UpgradeGate" }),
			[]string{`spec.components[3].resource: Invalid value: "UpgradeGate": a gate must not wait for a gate, itself least of all; name the objects themselves`},
		},
		"a kind that never reports a generation": {
			widget(func(c *v1alpha1.Component) { c.ObservedGeneration = "NotReported" }),
			[]string{`spec.components[3].observedGeneration: Invalid value: "NotReported": needs another proof (a version or a controller block), and this version of upgrade-gate offers none: use Required`},
		},
		"an unknown policy": {
			widget(func(c *v1alpha1.Component) { c.ObservedGeneration = "Whatever" }),
			[]string{`spec.components[3].observedGeneration: Unsupported value: "Whatever": supported values: "Required"`},
		},
		"a condition type named twice": {
			widget(func(c *v1alpha1.Component) {
				c.Conditions = []v1alpha1.ConditionRequirement{{Type: "Ready", Status: "True"}, {Type: "Synced", Status: "True"}, {Type: "Ready", Status: "False"}}
			}),
			[]string{`spec.components[3].conditions[2].type: Duplicate value: "Ready": name each condition type once`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, errs := prepare(t, c.component)
			require.Nil(t, p)
			require.Len(t, errs, len(c.want), "%v", errs)
			for i, want := range c.want {
				require.EqualError(t, errs[i], want)
			}
		})
	}
}
