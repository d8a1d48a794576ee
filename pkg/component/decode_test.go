package component_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/conditions"
)

func TestDecodeKeepsWhatAssessmentsNeed(t *testing.T) {
	o := object(t, `{observedGeneration: 4, conditions: [{type: Ready, status: "True", reason: Fine, message: well, observedGeneration: 3}]}`)
	o["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	require.Equal(t, &component.Snapshot{
		UID: "u-1", Namespace: "shop", Generation: 5, Terminating: true,
		ObservedGeneration: conditions.Number{State: conditions.NumberPresent, Value: 4},
		Conditions: conditions.List{Items: []conditions.Condition{{
			Type: "Ready", Status: "True", Reason: "Fine", Message: "well",
			ObservedGeneration: conditions.Number{State: conditions.NumberPresent, Value: 3},
		}}},
	}, component.Decode(o, false))
}

func TestDecodeOfWronglyTypedFields(t *testing.T) {
	for name, o := range map[string]map[string]any{
		"nothing":                  nil,
		"an empty object":          {},
		"fields of another type":   {"metadata": "x", "status": []any{}},
		"metadata of another type": {"metadata": map[string]any{"uid": 1, "namespace": 2, "generation": "5", "deletionTimestamp": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, &component.Snapshot{}, component.Decode(o, false))
			require.NotPanics(t, func() { component.Decode(o, true) })
		})
	}
}

func TestNoiseDoesNotChangeASnapshot(t *testing.T) {
	const status = `{observedGeneration: 5, conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-01-01T00:00:00Z"}]}`
	noisy := object(t, status)
	metadata := noisy["metadata"].(map[string]any)
	metadata["managedFields"] = []any{map[string]any{"manager": "x", "time": "2026-01-01T00:00:09Z"}}
	metadata["resourceVersion"] = "12345"
	require.Equal(t, component.Decode(object(t, status), true), component.Decode(noisy, true), "of the whole object")

	metadata["annotations"] = map[string]any{"heartbeat": "9"}
	in := noisy["status"].(map[string]any)
	in["lastHeartbeatTime"] = "2026-01-01T00:00:09Z"
	condition := in["conditions"].([]any)[0].(map[string]any)
	condition["lastTransitionTime"] = "2026-01-01T00:00:09Z"
	condition["lastHeartbeatTime"] = "2026-01-01T00:00:09Z"
	require.Equal(t, component.Decode(object(t, status), false), component.Decode(noisy, false))
}

func TestAChangeThatMattersChangesASnapshot(t *testing.T) {
	before := component.Decode(object(t, `{observedGeneration: 5, conditions: [`+ready+`]}`), false)
	for _, status := range []string{
		`{observedGeneration: 4, conditions: [` + ready + `]}`, `{conditions: [` + ready + `]}`, `{observedGeneration: 5}`,
		`{observedGeneration: 5, conditions: [{type: Ready, status: "False"}]}`,
		`{observedGeneration: 5, conditions: [{type: Ready, status: "True", message: new}]}`,
	} {
		require.NotEqual(t, before, component.Decode(object(t, status), false), status)
	}
	for field, value := range map[string]any{"uid": "u-2", "generation": int64(6), "deletionTimestamp": "2026-01-01T00:00:00Z"} {
		o := object(t, `{observedGeneration: 5, conditions: [`+ready+`]}`)
		o["metadata"].(map[string]any)[field] = value
		require.NotEqual(t, before, component.Decode(o, false), field)
	}
}

func TestTheWholeObjectIsKeptOnlyOnDemand(t *testing.T) {
	o := object(t, `{phase: Deployed}`)
	require.Nil(t, component.Decode(o, false).Object)
	require.Equal(t, object(t, `{phase: Deployed}`), component.Decode(o, true).Object)
}

func TestNothingThatIsGivenIsChanged(t *testing.T) {
	o := object(t, `{observedGeneration: 5, conditions: [`+available+`, {type: Upgradeable, status: "False", message: "a\nb"}]}`)
	o["metadata"].(map[string]any)["managedFields"] = []any{}
	before := runtime.DeepCopyJSON(maps.Clone(o))
	spec := widget(t, `{conditions: [{type: Available, status: "True"}, {type: Ready, status: "True", whenMissing: Ignore}]}`)
	specBefore := spec.DeepCopy()
	snapshot := component.Decode(o, true)
	again := component.Decode(o, true)
	observation := component.Observation{Reading: component.Reading{Access: component.AccessFound, Snapshot: snapshot}}

	first := component.Assess(spec, observation)

	require.Equal(t, before, o)
	require.Equal(t, *specBefore, spec)
	require.Equal(t, again, snapshot)
	require.Equal(t, first, component.Assess(spec, observation), "assessing twice differs")
	// A spec whose slice has room to grow is not written to either.
	roomy := append(make([]v1alpha1.ConditionRequirement, 0, 8), spec.Conditions...)
	spec.Conditions = roomy
	component.Assess(spec, observation)
	require.Zero(t, roomy[:3][2])
}
