package component_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/component"
)

// Conditions of a component that is well, as YAML list entries.
const (
	available = `{type: Available, status: "True"}, {type: Progressing, status: "False"}, {type: Degraded, status: "False"}`
	ready     = `{type: Ready, status: "True"}`
)

// object decodes a Widget at generation 5 with the given status, as the API
// server's JSON is decoded.
func object(t testing.TB, status string) map[string]any {
	t.Helper()
	text := `{apiVersion: test.example.com/v1, kind: Widget,
		metadata: {name: web, namespace: shop, uid: u-1, generation: 5}, status: ` + status + `}`
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err, text)
	var decoded map[string]any
	require.NoError(t, json.Unmarshal(data, &decoded))
	return decoded
}

// found is an observation of a Widget with the given status.
func found(t testing.TB, status string) component.Observation {
	t.Helper()
	return component.Observation{Reading: component.Reading{
		Access: component.AccessFound, Snapshot: component.Decode(object(t, status), false),
	}}
}

// widget is a component with its defaults; spec overrides them, as YAML.
func widget(t testing.TB, spec string) v1alpha1.Component {
	t.Helper()
	c := v1alpha1.Component{
		Name: "web",
		Resource: &v1alpha1.ResourceReference{
			APIVersion: "test.example.com/v1", Kind: "Widget", Namespace: "shop", Name: "web",
		},
	}
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &c), spec)
	return c
}

// verdict is what is expected of an assessment. An empty message is the fact.
type verdict struct {
	ready         metav1.ConditionStatus
	reason        string
	fact, message string
}

func (v verdict) require(t testing.TB, a component.Assessment) {
	t.Helper()
	if v.message == "" {
		v.message = v.fact
	}
	require.Equal(t, v, verdict{a.Ready, a.Reason, a.Fact, a.Message()})
	require.Equal(t, v.ready != "True", a.Blocks())
}
