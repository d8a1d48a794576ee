package gate_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
)

const seed, cases = 20260101, 2000

// each runs check on many random inputs, and says which one failed.
func each(t *testing.T, check func(t *testing.T, random *rand.Rand)) {
	t.Helper()
	random := rand.New(rand.NewSource(seed))
	i := 0
	defer func() {
		if t.Failed() {
			t.Logf("case %d of seed %d", i, seed)
		}
	}()
	for ; i < cases; i++ {
		check(t, random)
	}
}

func randomText(random *rand.Rand) string {
	words := []string{"", "x", "generation 5, observed 4", "\xff\xfe", "a\x00\nb", "\u202e", strings.Repeat("語", 700), strings.Repeat("long ", 900)}
	return words[random.Intn(len(words))]
}

// badAssessment is anything but proven ready.
func badAssessment(random *rand.Rand, name string) component.Assessment {
	a := component.Assessment{Name: name, Fact: randomText(random), Quote: randomText(random)}
	a.Ready = []metav1.ConditionStatus{"", "False", "Unknown", "true"}[random.Intn(4)]
	a.Reason = []string{"", "Initializing", "Forbidden", "NotFound", "InvalidSpec", "ConditionNotMet", "ObservedGenerationStale"}[random.Intn(7)]
	a.Available = []metav1.ConditionStatus{"", "True", "False", "Unknown"}[random.Intn(4)]
	a.Degraded, a.Progressing = a.Available, random.Intn(2) == 0
	return a
}

// randomInput is open about one time in four.
func randomInput(random *rand.Rand) gate.Input {
	in := gate.Input{
		Deleting: random.Intn(25) == 0, Assessed: random.Intn(25) > 0,
		MinReady: time.Duration(random.Intn(3)) * time.Second, ReadyFor: time.Duration(1+random.Intn(5)) * time.Second,
	}
	if random.Intn(25) == 0 {
		in.Invalid = "spec.components[0]: " + randomText(random)
	}
	if random.Intn(25) == 0 {
		hold(randomText(random))(&in)
	}
	badness := random.Intn(4)
	for i := range random.Intn(15) {
		name := fmt.Sprintf("part-%02d", i)
		a := ready(name)
		if random.Intn(12) < badness {
			a = badAssessment(random, name)
		}
		a.Optional = random.Intn(4) == 0
		in.Assessments = append(in.Assessments, a)
	}
	return in
}

func shuffled[T any](random *rand.Rand, list []T) []T {
	other := slices.Clone(list)
	random.Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
	return other
}

func TestTheOrderOfComponentsChangesNothing(t *testing.T) {
	opened := 0
	each(t, func(t *testing.T, random *rand.Rand) {
		in := randomInput(random)
		want := gate.Decide(in)
		require.Equal(t, want, gate.Decide(in), "deciding twice differs")
		in.Assessments = shuffled(random, in.Assessments)
		require.Equal(t, want, gate.Decide(in))
		if want.Open {
			opened++
		}
	})
	require.Greater(t, opened, cases/10, "too few inputs are open for the test to say anything")
	require.Less(t, opened, cases/2)
}

// TestAnOpenGateIsProven is the promise itself, stated without Decide's words.
func TestAnOpenGateIsProven(t *testing.T) {
	each(t, func(t *testing.T, random *rand.Rand) {
		in := randomInput(random)
		if !gate.Decide(in).Open {
			return
		}
		require.True(t, in.Assessed && !in.Deleting && in.Invalid == "" && in.Hold == nil)
		for _, a := range in.Assessments {
			require.True(t, a.Optional || a.Ready == "True", "%+v", a)
			require.True(t, a.Optional || in.ReadyFor >= in.MinReady)
		}
	})
}

// worsen makes one thing worse and nothing better.
func worsen(random *rand.Rand, in gate.Input) gate.Input {
	in.Assessments = slices.Clone(in.Assessments)
	pick := func() *component.Assessment {
		if len(in.Assessments) == 0 {
			in.Assessments = []component.Assessment{{Name: "new"}}
		}
		return &in.Assessments[random.Intn(len(in.Assessments))]
	}
	switch random.Intn(9) {
	case 0:
		in.Deleting = true
	case 1:
		in.Invalid = "worse" + randomText(random)
	case 2:
		hold(randomText(random))(&in)
	case 3:
		in.Assessed = false
	case 4:
		in.ReadyFor -= time.Duration(1 + random.Intn(int(5*time.Second)))
	case 5:
		in.MinReady += time.Duration(random.Intn(int(5 * time.Second)))
	case 6:
		in.Assessments = append(in.Assessments, badAssessment(random, "new"))
	case 7:
		a := pick()
		*a = badAssessment(random, a.Name)
	case 8:
		pick().Optional = false
	}
	return in
}

func TestMakingAnInputWorseNeverOpens(t *testing.T) {
	each(t, func(t *testing.T, random *rand.Rand) {
		in := randomInput(random)
		for range 3 {
			worse := worsen(random, in)
			require.False(t, gate.Decide(worse).Open && !gate.Decide(in).Open, "%+v was closed, %+v is open", in, worse)
			in = worse
		}
	})
}

func randomGates(random *rand.Rand) []gate.Named {
	var gates []gate.Named
	for i := range 1 + random.Intn(5) {
		gates = append(gates, named(fmt.Sprintf("gate-%d", i), randomInput(random)))
	}
	return gates
}

func TestWhatOLMIsToldIsTheSameForEveryOrderAndOpenOnlyIfAllAre(t *testing.T) {
	opened := 0
	each(t, func(t *testing.T, random *rand.Rand) {
		gates := randomGates(random)
		policy := gate.Policy{RequireGate: random.Intn(2) == 0, Override: []string{"", override}[random.Intn(2)]}
		told := gate.Combine(gates, policy)
		require.Equal(t, told, gate.Combine(shuffled(random, gates), policy))
		all := true
		var reasons []string
		for _, n := range gates {
			all = all && n.Decision.Open
			reasons = append(reasons, n.Decision.Reason)
		}
		require.Equal(t, all, told.Open)
		require.Regexp(t, olmReason, told.Reason)
		if told.Open {
			opened++
		} else {
			require.Contains(t, reasons, told.Reason, "a reason that no gate has")
			require.NotContains(t, []string{"AllComponentsReady", "NoComponents"}, told.Reason)
			require.True(t, strings.HasSuffix(told.Message, policy.Override))
		}
		requireFit(t, told.Message, 2000)
		requireNoBetterWithAnotherGate(t, random, gates, policy, told)
	})
	require.Greater(t, opened, cases/50)
}

func requireNoBetterWithAnotherGate(t *testing.T, random *rand.Rand, gates []gate.Named, policy gate.Policy, told gate.Announcement) {
	t.Helper()
	more := append(slices.Clone(gates), named("another", randomInput(random)))
	require.False(t, !told.Open && gate.Combine(more, policy).Open, "one more gate opened the others")
}

func requireFit(t *testing.T, text string, limit int) {
	t.Helper()
	require.True(t, utf8.ValidString(text), "%q", text)
	require.LessOrEqual(t, utf8.RuneCountInString(text), limit)
	require.NotContains(t, text, "\n")
	require.NotContains(t, text, "\x00")
}

func TestTextIsBoundedAndValid(t *testing.T) {
	documented := documentedReasons(t)
	each(t, func(t *testing.T, random *rand.Rand) {
		in := randomInput(random)
		d := gate.Decide(in)
		requireFit(t, d.Message, 1024)
		require.Contains(t, documented, d.Reason)
		require.True(t, slices.IsSortedFunc(d.Blockers, func(a, b gate.Blocker) int { return strings.Compare(a.Name, b.Name) }))

		r := randomReport(random, in)
		status := gate.Project(v1alpha1.UpgradeGateStatus{}, r)
		require.Equal(t, status, gate.Project(v1alpha1.UpgradeGateStatus{}, r), "projecting twice differs")
		r.Now = metav1.NewTime(r.Now.Add(time.Hour))
		require.Equal(t, status, gate.Project(status, r), "an hour later, nothing changed")
		require.Len(t, status.Conditions, 6)
		for _, c := range status.Conditions {
			requireFit(t, c.Message, 1024)
			require.NotEmpty(t, c.Message, c.Type)
			require.Contains(t, documented, c.Reason, c.Type)
			require.False(t, c.LastTransitionTime.IsZero(), c.Type)
			require.Contains(t, []metav1.ConditionStatus{"True", "False", "Unknown"}, c.Status, c.Type)
			require.Equal(t, r.Generation, c.ObservedGeneration, c.Type)
		}
		requireHonest(t, in, status)
		for _, c := range status.Components {
			requireFit(t, c.Message, 1024)
			require.NotEmpty(t, c.Ready)
			require.Contains(t, documented, c.Reason)
		}
	})
}

// requireHonest checks that a status says nothing good without proof.
func requireHonest(t *testing.T, in gate.Input, s v1alpha1.UpgradeGateStatus) {
	t.Helper()
	usable := in.Assessed && !in.Deleting && in.Invalid == ""
	allReady := !slices.ContainsFunc(in.Assessments, func(a component.Assessment) bool { return a.Blocks() })
	open := find(t, s, "Upgradeable").Status == "True"
	require.Equal(t, usable && allReady, find(t, s, "Ready").Status == "True", "Ready")
	require.Equal(t, gate.Decide(in).Open, open, "Upgradeable")
	require.NotEqual(t, metav1.ConditionUnknown, find(t, s, "Upgradeable").Status)
	if !in.Assessed || in.Invalid != "" {
		require.Equal(t, metav1.ConditionUnknown, find(t, s, "Available").Status)
		require.Equal(t, metav1.ConditionUnknown, find(t, s, "Degraded").Status)
	}
	if find(t, s, "Published").Status == "True" {
		require.Equal(t, v1alpha1.OLMModeV0, s.OperatorCondition.Mode)
		require.True(t, s.OperatorCondition.Acknowledged)
		require.Empty(t, s.OperatorCondition.Overridden)
	}
}

// randomReport is a report about the input in which OLM holds anything.
func randomReport(random *rand.Rand, in gate.Input) gate.Report {
	r := gate.Report{Generation: 3, Now: metav1.NewTime(at("10:00:00")), Input: in, Decision: gate.Decide(in)}
	others := randomGates(random)
	r.Told = gate.Combine(append(others, gate.Named{Gate: "this", Decision: r.Decision}), gate.Policy{})
	r.Held = gate.Publication{
		Mode: []v1alpha1.OLMMode{"", "OLMv0", "OLMv0", "OLMv0", "OLMv1", "None"}[random.Intn(6)],
		Name: "upgrade-gate-operator.v0.2.0", Acknowledged: random.Intn(3) > 0,
		Override: []string{"", "", "True", "False", "Unknown"}[random.Intn(5)],
	}
	if random.Intn(4) > 0 {
		entry := r.Told
		r.Held.Entry = &entry
	}
	if random.Intn(4) == 0 {
		r.Held.Problem, r.Held.Detail = []string{"Forbidden", "OperatorConditionNotFound", "PublishFailed"}[random.Intn(3)], "why "+randomText(random)
	}
	return r
}
