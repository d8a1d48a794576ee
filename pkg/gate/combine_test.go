package gate_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
)

// olmReason is what the OperatorCondition CRD demands of a reason.
var olmReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// override is what the operator tells administrators to run.
const override = `kubectl -n shop patch operatorcondition upgrade-gate-operator.v0.2.0 --type merge -p '{"spec":{"overrides":[{"type":"Upgradeable","status":"True","reason":"Forced","message":"by hand"}]}}'`

func named(name string, in gate.Input) gate.Named {
	required := 0
	for _, a := range in.Assessments {
		if !a.Optional {
			required++
		}
	}
	return gate.Named{Gate: name, Decision: gate.Decide(in), Required: required}
}

func TestCombine(t *testing.T) {
	const tail = "; to override: fix it"
	open := named("a", assessed(ready("x")))
	empty := named("e", assessed())
	staleGate := named("s", assessed(ready("x"), stale("y")))
	settling := named("w", with(assessed(ready("x")), func(in *gate.Input) { in.ReadyFor = 0 }))
	heldGate := named("h", with(assessed(ready("x")), hold("freeze")))
	heldStale := named("hs", with(assessed(stale("x")), hold("freeze")))
	invalid := named("i", gate.Input{Invalid: "spec.x: wrong"})
	deleting := named("d", gate.Input{Deleting: true})
	unreadGate := named("u", assessed(unread("z")))
	const waits = "w: all components are ready; the gate opens when they have stayed so for 30s"
	const blocked = "1 of 2 required components not ready: s/y: ObservedGenerationStale (generation 5, observed 4)"
	for name, c := range map[string]struct {
		decisions []gate.Named
		policy    gate.Policy
		want      gate.Announcement
	}{
		"no gate": {nil, gate.Policy{Override: "fix it"},
			gate.Announcement{Open: true, Reason: "NoGateDeclared", Message: "there is no UpgradeGate in the operator's namespace"}},
		"no gate, and one is required": {nil, gate.Policy{RequireGate: true, Override: "fix it"},
			gate.Announcement{Reason: "GateRequired", Message: "there is no UpgradeGate in the operator's namespace and --require-gate is set: create one" + tail}},
		"one gate, and one is required": {[]gate.Named{open}, gate.Policy{RequireGate: true},
			gate.Announcement{Open: true, Reason: "AllComponentsReady", Message: "all 1 required components are ready"}},
		"one empty gate": {[]gate.Named{empty}, gate.Policy{},
			gate.Announcement{Open: true, Reason: "NoComponents", Message: "the gate lists no required component"}},
		"two open gates": {[]gate.Named{open, empty}, gate.Policy{},
			gate.Announcement{Open: true, Reason: "AllComponentsReady", Message: "all 2 gates are open"}},
		"one closed gate": {[]gate.Named{staleGate}, gate.Policy{Override: "fix it"},
			gate.Announcement{Reason: "ComponentsNotReady", Message: "1 of 2 required components not ready: y: ObservedGenerationStale (generation 5, observed 4)" + tail}},
		"one closed gate, no override": {[]gate.Named{settling}, gate.Policy{},
			gate.Announcement{Reason: "Settling", Message: "all components are ready; the gate opens when they have stayed so for 30s"}},
		"one of two is closed": {[]gate.Named{open, staleGate}, gate.Policy{},
			gate.Announcement{Reason: "ComponentsNotReady", Message: "1 of 2 gates closed: " + blocked}},
		"not ready is graver than settling": {[]gate.Named{settling, staleGate}, gate.Policy{},
			gate.Announcement{Reason: "ComponentsNotReady", Message: "2 of 2 gates closed: " + blocked + "; " + waits}},
		"not ready is graver than unread": {[]gate.Named{staleGate, unreadGate}, gate.Policy{},
			gate.Announcement{Reason: "ComponentsNotReady", Message: "2 of 2 gates closed: 2 of 3 required components not ready: s/y: ObservedGenerationStale (generation 5, observed 4); u/z: Initializing (not read yet)"}},
		"unread is graver than settling": {[]gate.Named{settling, unreadGate}, gate.Policy{},
			gate.Announcement{Reason: "Initializing", Message: "2 of 2 gates closed: 1 of 1 required components not ready: u/z: Initializing (not read yet); " + waits}},
		"held is graver than not ready": {[]gate.Named{heldStale, staleGate}, gate.Policy{},
			gate.Announcement{Reason: "Held", Message: "2 of 2 gates closed: 2 of 3 required components not ready: hs/x: ObservedGenerationStale (generation 5, observed 4); s/y: ObservedGenerationStale (generation 5, observed 4); hs: held"}},
		"invalid is graver than held": {[]gate.Named{heldGate, invalid}, gate.Policy{},
			gate.Announcement{Reason: "InvalidSpec", Message: "2 of 2 gates closed: h: held: freeze; i: spec.x: wrong"}},
		"being deleted is gravest": {[]gate.Named{invalid, deleting, open}, gate.Policy{},
			gate.Announcement{Reason: "GateBeingDeleted", Message: "2 of 3 gates closed: d: the gate is being deleted; i: spec.x: wrong"}},
		"a decision that nobody made": {[]gate.Named{open, {Gate: "z"}}, gate.Policy{},
			gate.Announcement{Reason: "Initializing", Message: "1 of 2 gates closed: z:"}},
		"not evaluated yet": {[]gate.Named{{Gate: "z"}}, gate.Policy{Override: "fix it"},
			gate.Announcement{Reason: "Initializing", Message: tail}},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(c.decisions)
			require.Equal(t, c.want, gate.Combine(c.decisions, c.policy))
			reversed := slices.Clone(c.decisions)
			slices.Reverse(reversed)
			require.Equal(t, c.want, gate.Combine(reversed, c.policy), "in the other order")
			require.Equal(t, before, c.decisions, "the input was changed")
			require.Regexp(t, olmReason, c.want.Reason)
		})
	}
}

func TestAnnouncementStatusIsNeverUnknown(t *testing.T) {
	require.Equal(t, "True", string(gate.Announcement{Open: true}.Status()))
	require.Equal(t, "False", string(gate.Announcement{}.Status()))
}

func TestInitializingEndsWithTheOverride(t *testing.T) {
	require.Equal(t, gate.Announcement{Reason: "Initializing", Message: "starting; to override: fix it"}, gate.Policy{Override: "fix it"}.Initializing("starting"))
	require.Equal(t, gate.Announcement{Reason: "Initializing", Message: "starting"}, gate.Policy{}.Initializing("starting"))
}

func TestTheOverrideIsNeverCut(t *testing.T) {
	policy := gate.Policy{Override: override}
	long := strings.Repeat("語", 5000)
	var invalidGates, staleGates []gate.Named
	for i := range 30 {
		invalidGates = append(invalidGates, named(fmt.Sprintf("gate-%02d", i), gate.Input{Invalid: long}))
		staleGates = append(staleGates, named(fmt.Sprintf("gate-%02d", i), assessed(many(20, "generation 5, observed 4")...)))
	}
	for name, decisions := range map[string][]gate.Named{
		"one gate, 500 components":     {named("a", assessed(many(500, long)...))},
		"30 gates of 20 components":    staleGates,
		"30 gates with invalid specs":  invalidGates,
		"60 gates, half of them each":  append(slices.Clone(staleGates), invalidGates...),
		"one gate with a hold message": {named("a", with(assessed(many(500, long)...), hold(long)))},
	} {
		t.Run(name, func(t *testing.T) {
			a := gate.Combine(decisions, policy)
			require.True(t, strings.HasSuffix(a.Message, "; to override: "+override), a.Message)
			require.LessOrEqual(t, utf8.RuneCountInString(a.Message), 2000)
			require.LessOrEqual(t, strings.Count(a.Message, "part-"), 10)
			if strings.Contains(a.Message, "part-") {
				require.Regexp(t, `; and \d+ more`, a.Message)
			}
		})
	}
	require.False(t, policy.Initializing(long).Open)
	require.True(t, strings.HasSuffix(policy.Initializing(long).Message, override))

	absurd := gate.Policy{Override: long}.Initializing("why")
	require.Equal(t, 2000, utf8.RuneCountInString(absurd.Message), "even an absurd command is bounded")
}

func TestAComponentsOwnWordsAreNeverTold(t *testing.T) {
	for _, decisions := range [][]gate.Named{
		{named("a", assessed(notMet("x")))},
		{named("a", assessed(notMet("x"))), named("b", assessed(ready("x")))},
		{named("a", with(assessed(notMet("x")), hold("freeze"))), named("b", assessed(notMet("y")))},
	} {
		message := gate.Combine(decisions, gate.Policy{}).Message
		require.Contains(t, message, "ConditionNotMet (Degraded is True, wanted False)")
		require.NotContains(t, message, "secret words")
		require.NotContains(t, message, "DiskFull")
	}
}

func TestAnyClosedGateCloses(t *testing.T) {
	shut := map[string]gate.Input{
		"zero": {}, "deleting": {Deleting: true}, "invalid": {Invalid: "x"}, "held": with(assessed(ready("x")), hold("x")),
		"stale": assessed(stale("x")), "forbidden": assessed(forbidden("x")), "unread": assessed(unread("x")),
		"misplaced": assessed(misplaced("x")), "nothing": assessed(component.Assessment{}),
		"settling": with(assessed(ready("x")), func(in *gate.Input) { in.ReadyFor = 0 }),
	}
	for name, in := range shut {
		decisions := []gate.Named{named("a", assessed(ready("x"))), named("b", assessed()), named("c", in)}
		a := gate.Combine(decisions, gate.Policy{})
		require.False(t, a.Open, name)
		require.Equal(t, gate.Decide(in).Reason, a.Reason, name)
	}
}
