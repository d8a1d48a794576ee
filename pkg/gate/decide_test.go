package gate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
)

func ready(name string) component.Assessment {
	return component.Assessment{
		Name: name, Ready: "True", Reason: "Ready", Fact: "ready at its current generation",
		Object: "test.example.com/Widget shop/" + name, UID: "u-1", Generation: 5, ObservedGeneration: 5,
		Proof: "Generation", Available: "True", Degraded: "False",
	}
}

func stale(name string) component.Assessment {
	a := ready(name)
	a.Ready, a.Reason, a.Fact, a.Quote = "False", "ObservedGenerationStale", "generation 5, observed 4", ""
	a.ObservedGeneration, a.Progressing = 4, true
	return a
}

func notMet(name string) component.Assessment {
	a := ready(name)
	a.Ready, a.Reason, a.Fact, a.Quote = "False", "ConditionNotMet", "Degraded is True, wanted False", "DiskFull: secret words"
	a.Degraded = "True"
	return a
}

func forbidden(name string) component.Assessment {
	return component.Assessment{
		Name: name, Ready: "Unknown", Reason: "Forbidden", Fact: "the API server refuses the read",
		Object: "test.example.com/Widget " + name, Proof: "Generation", Available: "Unknown", Degraded: "Unknown",
	}
}

func unread(name string) component.Assessment {
	a := forbidden(name)
	a.Reason, a.Fact, a.Progressing = "Initializing", "not read yet", true
	return a
}

func misplaced(name string) component.Assessment {
	a := forbidden(name)
	a.Ready, a.Reason, a.Fact, a.Available = "False", "InvalidSpec", "the reference cannot be right", "False"
	return a
}

func optional(a component.Assessment) component.Assessment {
	a.Optional = true
	return a
}

func assessed(list ...component.Assessment) gate.Input {
	return gate.Input{Assessed: true, Assessments: list, MinReady: 30 * time.Second, ReadyFor: 30 * time.Second}
}

func with(in gate.Input, change func(*gate.Input)) gate.Input {
	change(&in)
	return in
}

func hold(message string) func(*gate.Input) { return func(in *gate.Input) { in.Hold = &message } }

func TestDecide(t *testing.T) {
	const allReady = "all 2 required components are ready"
	const staleB = "1 of 2 required components not ready: b: ObservedGenerationStale (generation 5, observed 4)"
	blockers := []gate.Blocker{{Name: "b", Reason: "ObservedGenerationStale", Fact: "generation 5, observed 4"}}
	settling := gate.Decision{Reason: "Settling", Message: "all components are ready; the gate opens when they have stayed so for 30s"}
	after := func(d time.Duration) gate.Decision { s := settling; s.RecheckAfter = d; return s }
	for name, c := range map[string]struct {
		in   gate.Input
		want gate.Decision
	}{
		"nothing is known":                       {gate.Input{}, gate.Decision{Reason: "Initializing", Message: "the components have not been read yet"}},
		"ready, but nobody says that all are":    {gate.Input{Assessments: []component.Assessment{ready("a")}, ReadyFor: time.Hour}, gate.Decision{Reason: "Initializing", Message: "the components have not been read yet"}},
		"an explicit empty list":                 {assessed(), gate.Decision{Open: true, Reason: "NoComponents", Message: "the gate lists no required component"}},
		"an empty list that is held":             {with(assessed(), hold("freeze")), gate.Decision{Reason: "Held", Message: "held: freeze"}},
		"only optional components":               {assessed(optional(stale("a"))), gate.Decision{Open: true, Reason: "NoComponents", Message: "the gate lists no required component"}},
		"all ready for long enough":              {assessed(ready("a"), ready("b")), gate.Decision{Open: true, Reason: "AllComponentsReady", Message: allReady}},
		"all ready, an optional one is not":      {assessed(ready("a"), ready("b"), optional(stale("c"))), gate.Decision{Open: true, Reason: "AllComponentsReady", Message: allReady}},
		"all ready, just now":                    {with(assessed(ready("a")), func(in *gate.Input) { in.ReadyFor = 0 }), after(30 * time.Second)},
		"all ready, a nanosecond is missing":     {with(assessed(ready("a")), func(in *gate.Input) { in.ReadyFor-- }), after(1)},
		"all ready, nothing to wait for":         {with(assessed(ready("a"), ready("b")), func(in *gate.Input) { in.MinReady, in.ReadyFor = 0, 0 }), gate.Decision{Open: true, Reason: "AllComponentsReady", Message: allReady}},
		"ready since the future":                 {with(assessed(ready("a")), func(in *gate.Input) { in.ReadyFor = -time.Second }), after(31 * time.Second)},
		"one is stale, however long it has been": {with(assessed(ready("a"), stale("b")), func(in *gate.Input) { in.ReadyFor = time.Hour }), gate.Decision{Reason: "ComponentsNotReady", Message: staleB, Blockers: blockers}},
		"one cannot be read":                     {assessed(forbidden("a")), gate.Decision{Reason: "ComponentsNotReady", Message: "1 of 1 required components not ready: a: Forbidden (the API server refuses the read)", Blockers: []gate.Blocker{{Name: "a", Reason: "Forbidden", Fact: "the API server refuses the read"}}}},
		"one has not been read":                  {assessed(ready("a"), unread("b")), gate.Decision{Reason: "Initializing", Message: "1 of 2 required components not ready: b: Initializing (not read yet)", Blockers: []gate.Blocker{{Name: "b", Reason: "Initializing", Fact: "not read yet"}}}},
		"one is nothing":                         {assessed(component.Assessment{}), gate.Decision{Reason: "Initializing", Message: "1 of 1 required components not ready: : Initializing", Blockers: []gate.Blocker{{Reason: "Initializing"}}}},
		"held, and all ready":                    {with(assessed(ready("a")), hold("freeze until\nMonday")), gate.Decision{Reason: "Held", Message: "held: freeze until Monday"}},
		"held without words":                     {with(assessed(ready("a")), hold("")), gate.Decision{Reason: "Held", Message: "held:"}},
		"held, and one is stale":                 {with(assessed(ready("a"), stale("b")), hold("freeze")), gate.Decision{Reason: "Held", Message: "held: freeze; also " + staleB, Blockers: blockers}},
		"held, and not read":                     {with(gate.Input{}, hold("freeze")), gate.Decision{Reason: "Initializing", Message: "the components have not been read yet"}},
		"invalid, and held, and all ready":       {with(with(assessed(ready("a")), hold("freeze")), func(in *gate.Input) { in.Invalid = "spec.x: wrong" }), gate.Decision{Reason: "InvalidSpec", Message: "spec.x: wrong"}},
		"being deleted outranks everything":      {with(with(assessed(ready("a"), stale("b")), hold("x")), func(in *gate.Input) { in.Deleting, in.Invalid = true, "y" }), gate.Decision{Reason: "GateBeingDeleted", Message: "the gate is being deleted"}},
		"one reference cannot be right": {assessed(stale("b"), misplaced("c"), unread("a")), gate.Decision{
			Reason:   "InvalidSpec",
			Message:  "3 of 3 required components not ready: a: Initializing (not read yet); b: ObservedGenerationStale (generation 5, observed 4); c: InvalidSpec (the reference cannot be right)",
			Blockers: []gate.Blocker{{Name: "a", Reason: "Initializing", Fact: "not read yet"}, blockers[0], {Name: "c", Reason: "InvalidSpec", Fact: "the reference cannot be right"}},
		}},
		"the component's own words stay out": {assessed(notMet("a")), gate.Decision{
			Reason: "ComponentsNotReady", Message: "1 of 1 required components not ready: a: ConditionNotMet (Degraded is True, wanted False)",
			Blockers: []gate.Blocker{{Name: "a", Reason: "ConditionNotMet", Fact: "Degraded is True, wanted False"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, gate.Decide(c.in))
			require.Equal(t, c.want, gate.Decide(c.in), "deciding twice differs")
		})
	}
}

func TestZeroValuesAreClosed(t *testing.T) {
	require.False(t, gate.Decide(gate.Input{}).Open, "Input")
	require.False(t, gate.Decision{}.Open, "Decision")
	require.Equal(t, "False", string(gate.Announcement{}.Status()), "Announcement")
	require.False(t, gate.Decide(assessed(component.Assessment{})).Open, "Assessment")
	require.False(t, gate.Combine([]gate.Named{{}}, gate.Policy{}).Open, "Named")
	require.False(t, gate.Policy{}.Initializing("x").Open, "Initializing")
}

func many(n int, fact string) []component.Assessment {
	var list []component.Assessment
	for i := range n {
		a := stale(fmt.Sprintf("part-%03d", i))
		a.Fact = fact
		list = append(list, a)
	}
	return list
}

func TestAtMostTenBlockersAreSpelledOut(t *testing.T) {
	ten := gate.Decide(assessed(many(10, "")...))
	require.True(t, strings.HasPrefix(ten.Message, "10 of 10 required components not ready: part-000: ObservedGenerationStale; part-001: "))
	require.True(t, strings.HasSuffix(ten.Message, "; part-009: ObservedGenerationStale"))

	eleven := gate.Decide(assessed(many(11, "")...))
	require.True(t, strings.HasSuffix(eleven.Message, "; part-009: ObservedGenerationStale; and 1 more"))
	require.Len(t, eleven.Blockers, 11, "the list itself is whole")

	all := gate.Decide(assessed(many(500, "generation 5, observed 4")...))
	require.True(t, strings.HasPrefix(all.Message, "500 of 500 required components not ready: "))
	require.Equal(t, 10, strings.Count(all.Message, "part-"))
	require.True(t, strings.HasSuffix(all.Message, "; and 490 more"))
}

func TestLongFactsLeaveRoomForTheCount(t *testing.T) {
	in := assessed(many(12, strings.Repeat("語", 200))...)
	message := gate.Decide(in).Message
	require.Equal(t, 4, strings.Count(message, "part-"))
	require.True(t, strings.HasSuffix(message, "語); and 8 more"), message)
	require.LessOrEqual(t, utf8.RuneCountInString(message), 1024)

	held := gate.Decide(with(in, hold(strings.Repeat("x", 512)))).Message
	require.True(t, strings.HasPrefix(held, "held: xxx"))
	require.True(t, strings.HasSuffix(held, "; and 11 more"), held)
	require.LessOrEqual(t, utf8.RuneCountInString(held), 1024)

	huge := gate.Decide(assessed(many(2, strings.Repeat("語", 2000))...)).Message
	require.True(t, strings.HasSuffix(huge, "語…; and 1 more"), huge)
	require.LessOrEqual(t, utf8.RuneCountInString(huge), 1024)
}
