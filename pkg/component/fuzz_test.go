package component_test

import (
	"math/rand"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/component"
)

// specs are the components that random objects are judged as.
func specs(t testing.TB) []v1alpha1.Component {
	t.Helper()
	var all []v1alpha1.Component
	for _, spec := range []string{
		`{}`,
		`{conditions: [{type: Ready, status: "True"}]}`,
		`{conditions: [{type: Available, status: "True"}, {type: Ready, status: "False", whenMissing: Ignore}]}`,
		`{conditions: [{type: Ready, status: "True", whenMissing: Ignore}]}`,
		`{conditions: [{type: Ready, status: "True", whenMissing: Ignore}], expressions: [{rule: self.a}]}`,
		`{conditions: [{type: Upgradeable, status: "True"}]}`,
		`{expressions: [{rule: self.a}, {rule: self.b}]}`,
	} {
		all = append(all, widget(t, spec))
	}
	return all
}

// requireSound judges the object as the component, and asks the oracle.
func requireSound(t *testing.T, c v1alpha1.Component, decoded map[string]any, outcomes []bool) component.Assessment {
	t.Helper()
	o := component.Observation{Reading: component.Reading{
		Access: component.AccessFound, Snapshot: component.Decode(decoded, len(c.Expressions) > 0),
	}}
	for _, isTrue := range outcomes {
		o.Expressions = append(o.Expressions, component.ExpressionOutcome{True: isTrue, Evaluated: true})
	}
	a := component.Assess(c, o)
	require.Equal(t, proves(c, decoded, outcomes), a.Ready == "True", "%s as %+v: %+v", show(decoded), c.Conditions, a)
	require.Contains(t, []string{"True", "False", "Unknown"}, string(a.Ready))
	require.Equal(t, a.Ready == "True", a.Reason == "Ready")
	require.NotEmpty(t, a.Fact)
	require.True(t, utf8.ValidString(a.Message()))
	require.LessOrEqual(t, utf8.RuneCountInString(a.Message()), 1024)
	require.Equal(t, a, component.Assess(c, o), "assessing twice differs")
	return a
}

func show(decoded map[string]any) string {
	text, _ := json.Marshal(decoded)
	return string(text)
}

func FuzzAssess(f *testing.F) {
	for _, status := range []string{
		`{}`, `null`, `"x"`, `[]`, `{"observedGeneration":5}`,
		`{"observedGeneration":5,"conditions":[{"type":"Ready","status":"True"}]}`,
		`{"conditions":[{"type":"Ready","status":"True","observedGeneration":5}]}`,
		`{"observedGeneration":5,"conditions":[{"type":"Available","status":"True"},{"type":"Progressing","status":"False"},{"type":"Degraded","status":"False"}]}`,
		`{"observedGeneration":5,"conditions":[{"type":"Ready","status":"True","observedGeneration":0}]}`,
		`{"observedGeneration":5,"conditions":[{"type":"Ready","status":"True"},{"type":"Ready","status":"False"}]}`,
		`{"observedGeneration":5,"conditions":[{"type":"Ready","status":"True"},{"type":"Upgradeable","status":null}]}`,
		`{"observedGeneration":5.0,"conditions":[{"type":"Upgradeable","status":"True"}]}`,
		`{"observedGeneration":"5","conditions":{"Ready":true}}`,
		`{"observedGeneration":5,"conditions":[` + strings.Repeat(`{"type":"X"},`, 300) + `null]}`,
		`{"observedGeneration":5,"conditions":[{"type":"Ready","status":"False","message":"a\u0000\n\u202e\ud800"}]}`,
	} {
		f.Add([]byte(`{"metadata":{"generation":5,"uid":"u"},"status":`+status+`}`), uint8(0))
	}
	f.Add([]byte(`{"metadata":{"generation":0},"status":{"observedGeneration":0,"conditions":[{"type":"Ready","status":"True","observedGeneration":0}]}}`), uint8(1))
	f.Add([]byte(`{"metadata":{"generation":5,"deletionTimestamp":"x"},"status":{"observedGeneration":5}}`), uint8(4))
	all := specs(f)
	f.Fuzz(func(t *testing.T, data []byte, pick uint8) {
		var decoded map[string]any
		if json.Unmarshal(data, &decoded) != nil {
			return
		}
		requireSound(t, all[int(pick)%len(all)], decoded, []bool{pick&64 == 0, pick&128 == 0})
	})
}

// TestAssessAgreesWithTheContract judges many objects made of the values that
// matter, so that about one in ten is well.
func TestAssessAgreesWithTheContract(t *testing.T) {
	const seed, cases = 20260101, 12000
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewSource(seed))
	all := specs(t)
	wellAs := make([]int, len(all))
	for range cases {
		i := random.Intn(len(all))
		outcomes := []bool{random.Intn(4) > 0, random.Intn(4) > 0}
		if a := requireSound(t, all[i], randomObject(random), outcomes); a.Ready == "True" {
			wellAs[i]++
		}
	}
	for i, n := range wellAs {
		require.Greater(t, n, 10, "too few objects are well as component %d for the test to say anything", i)
	}
}

func randomObject(random *rand.Rand) map[string]any {
	metadata := map[string]any{"generation": pick(random, 9, int64(5), nil, int64(0), "5", int64(4))}
	if random.Intn(20) == 0 {
		metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	}
	status := map[string]any{"observedGeneration": randomGeneration(random)}
	list := []any{}
	for _, kind := range []string{"Available", "Progressing", "Degraded", "Ready", "Reconciling", "Stalled", "Upgradeable"} {
		for range pick(random, 1, 1, 0, 0, 1, 2).(int) {
			list = append(list, randomCondition(random, kind))
		}
	}
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	status["conditions"] = pick(random, 20, any(list), nil, "none", map[string]any{})
	return map[string]any{"metadata": metadata, "status": status}
}

func randomCondition(random *rand.Rand, kind string) any {
	good := "True"
	switch kind {
	case "Progressing", "Degraded", "Reconciling", "Stalled":
		good = "False"
	}
	return pick(random, 60, map[string]any{
		"type": kind, "status": pick(random, 20, good, "True", "False", "Unknown", "true", nil, true),
		"observedGeneration": randomGeneration(random),
	}, nil, kind)
}

func randomGeneration(random *rand.Rand) any {
	return pick(random, 14, int64(5), nil, nil, nil, nil, 5.0, int64(4), int64(6), int64(0), "5", int64(-5), 5.5)
}

// pick returns the first value most of the time: weight times as often as each
// other one.
func pick(random *rand.Rand, weight int, values ...any) any {
	if i := random.Intn(weight + len(values) - 1); i >= weight {
		return values[i-weight+1]
	}
	return values[0]
}
