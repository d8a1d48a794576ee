package gate_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
)

// documentedReasons are the values of the constants in reasons.go.
func documentedReasons(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../api/v1alpha1/reasons.go", nil, 0)
	require.NoError(t, err)
	var values []string
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok {
			value, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			values = append(values, value)
		}
		return true
	})
	require.NotEmpty(t, values)
	return values
}

func now() metav1.Time { return metav1.NewTime(at("10:00:00")) }

// acknowledged is OLM v0 holding exactly what it was told.
func acknowledged(told gate.Announcement) gate.Publication {
	return gate.Publication{Mode: "OLMv0", Name: "operator.v1", Entry: &told, Acknowledged: true}
}

// report is about one gate, the only one, whose decision OLM holds.
func report(in gate.Input) gate.Report {
	d := gate.Decide(in)
	told := gate.Combine([]gate.Named{{Gate: "platform", Decision: d}}, gate.Policy{Override: "fix it"})
	return gate.Report{
		Generation: 3, Now: now(), OperatorVersion: "0.2.0", Input: in, Decision: d, Told: told, Held: acknowledged(told),
	}
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: 3, LastTransitionTime: now()}
}

func status(readyComponents string, components []v1alpha1.ComponentStatus, conditions ...metav1.Condition) v1alpha1.UpgradeGateStatus {
	return v1alpha1.UpgradeGateStatus{
		ObservedGeneration: 3, Conditions: conditions, ReadyComponents: readyComponents, OperatorVersion: "0.2.0",
		OperatorCondition: &v1alpha1.OperatorConditionStatus{Name: "operator.v1", Mode: "OLMv0", Acknowledged: true},
		Components:        components,
	}
}

func readyStatus(name string) v1alpha1.ComponentStatus {
	return v1alpha1.ComponentStatus{
		Name: name, Ready: "True", Reason: "Ready", Message: "ready at its current generation",
		Object: "test.example.com/Widget shop/" + name, Generation: 5, ObservedGeneration: 5, Proof: "Generation", LastTransitionTime: now(),
	}
}

func staleStatus(name string) v1alpha1.ComponentStatus {
	s := readyStatus(name)
	s.Ready, s.Reason, s.Message, s.ObservedGeneration = "False", "ObservedGenerationStale", "generation 5, observed 4", 4
	return s
}

func forbiddenStatus(name string) v1alpha1.ComponentStatus {
	return v1alpha1.ComponentStatus{
		Name: name, Ready: "Unknown", Reason: "Forbidden", Message: "the API server refuses the read",
		Object: "test.example.com/Widget " + name, Proof: "Generation", LastTransitionTime: now(),
	}
}

func TestProjectWholeStatuses(t *testing.T) {
	const (
		allReady  = "all 2 required components are ready"
		available = "every required component is available"
		healthy   = "no required component is degraded"
		settled   = "no required component is rolling out"
		holds     = "OLM holds this decision"
		notJudged = "the components were not judged"
		staleB    = "1 of 2 required components not ready: b: ObservedGenerationStale (generation 5, observed 4)"
		refusedB  = "1 of 2 required components not ready: b: Forbidden (the API server refuses the read)"
		waits     = "all components are ready; the gate opens when they have stayed so for 30s"
		noneAsked = "the gate lists no required component"
	)
	isAvailable := condition("Available", "True", "ComponentsAvailable", available)
	isHealthy := condition("Degraded", "False", "ComponentsHealthy", healthy)
	isSettled := condition("Progressing", "False", "ComponentsSettled", settled)
	isReady := condition("Ready", "True", "AllComponentsReady", allReady)
	isPublished := condition("Published", "True", "Acknowledged", holds)
	both := []v1alpha1.ComponentStatus{readyStatus("a"), readyStatus("b")}
	for name, c := range map[string]struct {
		in   gate.Input
		want v1alpha1.UpgradeGateStatus
	}{
		"all ready": {assessed(ready("a"), ready("b")), status("2/2", both,
			isAvailable, isHealthy, isSettled, isPublished, isReady,
			condition("Upgradeable", "True", "AllComponentsReady", allReady))},
		"one stale": {assessed(ready("a"), stale("b")), status("1/2", []v1alpha1.ComponentStatus{readyStatus("a"), staleStatus("b")},
			isAvailable, isHealthy,
			condition("Progressing", "True", "ComponentsProgressing", "rolling out: b: ObservedGenerationStale"), isPublished,
			condition("Ready", "False", "ComponentsNotReady", staleB),
			condition("Upgradeable", "False", "ComponentsNotReady", staleB))},
		"one cannot be read": {assessed(ready("a"), forbidden("b")), status("1/2", []v1alpha1.ComponentStatus{readyStatus("a"), forbiddenStatus("b")},
			condition("Available", "Unknown", "ComponentsUnknown", "cannot be judged: b: Forbidden"),
			condition("Degraded", "Unknown", "ComponentsUnknown", "cannot be judged: b: Forbidden"), isSettled, isPublished,
			condition("Ready", "Unknown", "ComponentsNotReady", refusedB),
			condition("Upgradeable", "False", "ComponentsNotReady", refusedB))},
		"an invalid spec": {gate.Input{Invalid: "spec.x: wrong"}, status("0/0", nil,
			condition("Available", "Unknown", "InvalidSpec", notJudged), condition("Degraded", "Unknown", "InvalidSpec", notJudged),
			condition("Progressing", "False", "InvalidSpec", notJudged), isPublished,
			condition("Ready", "False", "InvalidSpec", "spec.x: wrong"), condition("Upgradeable", "False", "InvalidSpec", "spec.x: wrong"))},
		"being deleted": {gate.Input{Deleting: true}, status("0/0", nil,
			condition("Available", "Unknown", "GateBeingDeleted", notJudged), condition("Degraded", "Unknown", "GateBeingDeleted", notJudged),
			condition("Progressing", "False", "GateBeingDeleted", notJudged), isPublished,
			condition("Ready", "False", "GateBeingDeleted", "the gate is being deleted"),
			condition("Upgradeable", "False", "GateBeingDeleted", "the gate is being deleted"))},
		"held": {with(assessed(ready("a"), ready("b")), hold("freeze")), status("2/2", both,
			isAvailable, isHealthy, isSettled, isPublished, isReady, condition("Upgradeable", "False", "Held", "held: freeze"))},
		"settling": {with(assessed(ready("a"), ready("b")), func(in *gate.Input) { in.ReadyFor = time.Second }), status("2/2", both,
			isAvailable, isHealthy, condition("Progressing", "True", "Settling", waits), isPublished, isReady,
			condition("Upgradeable", "False", "Settling", waits))},
		"no components": {assessed(), status("0/0", nil,
			isAvailable, isHealthy, isSettled, isPublished,
			condition("Ready", "True", "NoComponents", noneAsked), condition("Upgradeable", "True", "NoComponents", noneAsked))},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, gate.Project(v1alpha1.UpgradeGateStatus{}, report(c.in)))
		})
	}
}

func find(t *testing.T, s v1alpha1.UpgradeGateStatus, kind string) metav1.Condition {
	t.Helper()
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c
		}
	}
	t.Fatalf("no condition %s", kind)
	return metav1.Condition{}
}

func TestProjectRollsComponentsUp(t *testing.T) {
	degraded, down, odd := notMet("a"), notMet("b"), notMet("c")
	down.Available, down.Degraded = "False", "False"
	odd.Available, odd.Degraded = "", ""
	all := []component.Assessment{degraded, down, odd, optional(stale("d"))}
	s := gate.Project(v1alpha1.UpgradeGateStatus{}, report(assessed(all...)))
	require.Equal(t, condition("Available", "False", "ComponentsUnavailable", "not available: b: ConditionNotMet"), find(t, s, "Available"))
	require.Equal(t, condition("Degraded", "True", "ComponentsDegraded", "degraded: a: ConditionNotMet"), find(t, s, "Degraded"))
	require.Equal(t, "ComponentsSettled", find(t, s, "Progressing").Reason, "optional components do not count")
	require.Equal(t, "0/3", s.ReadyComponents)
	require.True(t, s.Components[3].Optional)
	require.Equal(t, "Degraded is True, wanted False: DiskFull: secret words", s.Components[0].Message)

	s = gate.Project(v1alpha1.UpgradeGateStatus{}, report(assessed(unread("a"))))
	require.Equal(t, condition("Ready", "Unknown", "Initializing", "1 of 1 required components not ready: a: Initializing (not read yet)"), find(t, s, "Ready"))
	require.Equal(t, "True", string(find(t, s, "Progressing").Status))

	s = gate.Project(v1alpha1.UpgradeGateStatus{}, report(assessed(unread("a"), stale("b"))))
	require.Equal(t, "False", string(find(t, s, "Ready").Status), "one is known to be bad")
}

func TestProjectPublished(t *testing.T) {
	open, shut := report(assessed(ready("a"))), report(assessed(stale("a")))
	change := func(r gate.Report, do func(*gate.Report)) gate.Report { do(&r); return r }
	problem := func(reason string) gate.Report {
		return change(open, func(r *gate.Report) { r.Held.Problem, r.Held.Detail = reason, "why" })
	}
	mode := func(m v1alpha1.OLMMode) gate.Report {
		return change(open, func(r *gate.Report) { r.Held = gate.Publication{Mode: m} })
	}
	const awaiting = "OLM has not acknowledged this decision yet; if it stays so, OLM is down, or a Deployment that the CSV lists is missing or lacks the label olm.managed=true"
	for name, c := range map[string]struct {
		report  gate.Report
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		"OLM holds True":           {open, "True", "Acknowledged", "OLM holds this decision"},
		"OLM holds False":          {shut, "True", "Acknowledged", "OLM holds this decision"},
		"not acknowledged":         {change(open, func(r *gate.Report) { r.Held.Acknowledged = false }), "False", "AwaitingAcknowledgement", awaiting},
		"nothing there":            {change(open, func(r *gate.Report) { r.Held.Entry = nil }), "False", "AwaitingAcknowledgement", awaiting},
		"another message is there": {change(open, func(r *gate.Report) { r.Held.Entry = &gate.Announcement{Open: true, Reason: "AllComponentsReady"} }), "False", "AwaitingAcknowledgement", awaiting},
		"True is still there":      {change(shut, func(r *gate.Report) { r.Held = open.Held }), "False", "AwaitingAcknowledgement", awaiting},
		"told open while closed":   {change(shut, func(r *gate.Report) { r.Told, r.Held = open.Told, open.Held }), "False", "AwaitingAcknowledgement", awaiting},
		"another gate is closed":   {change(open, func(r *gate.Report) { r.Told, r.Held = shut.Told, shut.Held }), "False", "HeldByAnotherGate", "another gate of this namespace is closed, so OLM is told Upgradeable=False"},
		"overridden":               {change(shut, func(r *gate.Report) { r.Held.Override = "True" }), "False", "Overridden", "an administrator's override Upgradeable=True in OperatorCondition operator.v1 outranks this decision"},
		"overridden, and open":     {change(open, func(r *gate.Report) { r.Held.Override = "False" }), "False", "Overridden", "an administrator's override Upgradeable=False in OperatorCondition operator.v1 outranks this decision"},
		"OLM v1":                   {mode("OLMv1"), "False", "OLMv1", "OLM v1 does not read OperatorConditions: nothing enforces this decision"},
		"no OLM":                   {mode("None"), "False", "NoOLM", "the operator was not installed by OLM: nothing enforces this decision"},
		"nobody found out yet":     {mode(""), "Unknown", "Initializing", "it is not known yet whether OLM enforces this decision"},
		"never read":               {mode("OLMv0"), "False", "AwaitingAcknowledgement", awaiting},
		"forbidden":                {problem("Forbidden"), "False", "Forbidden", "why"},
		"not found":                {problem("OperatorConditionNotFound"), "False", "OperatorConditionNotFound", "why"},
		"failed":                   {problem("PublishFailed"), "Unknown", "PublishFailed", "why"},
	} {
		t.Run(name, func(t *testing.T) {
			s := gate.Project(v1alpha1.UpgradeGateStatus{}, c.report)
			require.Equal(t, condition("Published", c.status, c.reason, c.message), find(t, s, "Published"))
			require.Equal(t, c.report.Decision.Open, find(t, s, "Upgradeable").Status == "True", "Upgradeable is this gate's decision")
		})
	}
}

func TestProjectSaysWhatOLMHolds(t *testing.T) {
	r := report(assessed(ready("a")))
	r.Held.Override = "True"
	require.Equal(t, &v1alpha1.OperatorConditionStatus{Name: "operator.v1", Mode: "OLMv0", Acknowledged: true, Overridden: "True"},
		gate.Project(v1alpha1.UpgradeGateStatus{}, r).OperatorCondition)
	r.Held.Problem = "PublishFailed"
	require.False(t, gate.Project(v1alpha1.UpgradeGateStatus{}, r).OperatorCondition.Acknowledged, "what cannot be read is not acknowledged")
	r.Held = gate.Publication{Mode: "None"}
	require.Equal(t, &v1alpha1.OperatorConditionStatus{Mode: "None"}, gate.Project(v1alpha1.UpgradeGateStatus{}, r).OperatorCondition)
}

func TestProjectOfNothingIsClosed(t *testing.T) {
	s := gate.Project(v1alpha1.UpgradeGateStatus{}, gate.Report{Now: now()})
	for kind, want := range map[string]metav1.ConditionStatus{
		"Available": "Unknown", "Degraded": "Unknown", "Progressing": "True", "Published": "Unknown", "Ready": "False", "Upgradeable": "False",
	} {
		require.Equal(t, want, find(t, s, kind).Status, kind)
		require.Equal(t, "Initializing", find(t, s, kind).Reason, kind)
	}
	s = gate.Project(v1alpha1.UpgradeGateStatus{}, gate.Report{Now: now(), Input: assessed(component.Assessment{Name: "a"})})
	require.Equal(t, []v1alpha1.ComponentStatus{{Name: "a", Ready: "Unknown", Reason: "Initializing", LastTransitionTime: now()}}, s.Components)
}

func TestProjectCarriesTransitionTimesOnly(t *testing.T) {
	before := metav1.NewTime(at("09:00:00"))
	previous := gate.Project(v1alpha1.UpgradeGateStatus{}, report(assessed(ready("a"), ready("b"))))
	for i := range previous.Conditions {
		previous.Conditions[i].LastTransitionTime = before
		previous.Conditions[i].Reason, previous.Conditions[i].Message = "Leftover", "leftover"
	}
	for i := range previous.Components {
		previous.Components[i].LastTransitionTime = before
		previous.Components[i].Reason = "Leftover"
	}
	previous.Conditions = append(previous.Conditions, metav1.Condition{Type: "Reconciling", Status: "True", LastTransitionTime: before})
	previous.Components = append(previous.Components, v1alpha1.ComponentStatus{Name: "gone", Ready: "False"})

	s := gate.Project(previous, report(assessed(stale("b"), ready("a"))))

	var kinds []string
	for _, c := range s.Conditions {
		kinds = append(kinds, c.Type)
		kept := c.Type == "Available" || c.Type == "Degraded" || c.Type == "Published"
		require.Equal(t, kept, c.LastTransitionTime.Equal(&before), c.Type)
		require.NotEqual(t, "Leftover", c.Reason)
	}
	require.Equal(t, []string{"Available", "Degraded", "Progressing", "Published", "Ready", "Upgradeable"}, kinds)
	a := readyStatus("a")
	a.LastTransitionTime = before
	require.Equal(t, []v1alpha1.ComponentStatus{staleStatus("b"), a}, s.Components, "in the order of the spec")
}
