package component_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/upgrade-gate/upgrade-gate/pkg/component"
)

// patient is a component that is well until faults are put into it.
type patient struct {
	object   map[string]any
	access   component.Access
	outcomes []component.ExpressionOutcome
}

func (p *patient) status() map[string]any { return p.object["status"].(map[string]any) }

func (p *patient) condition(i int) map[string]any {
	return p.status()["conditions"].([]any)[i].(map[string]any)
}

// The places of the conditions of a patient. No two faults that could be put in
// at once change the same field.
const (
	notMet = iota
	ofUnknown
	ofOldGeneration
	ofNewGeneration
	missing
	ambiguous
	ofVeto
)

const patientSpec = `{conditions: [
	{type: A, status: "True"}, {type: B, status: "True"}, {type: C, status: "True"}, {type: D, status: "True"}, {type: E, status: "True"}, {type: F, status: "True"}],
	expressions: [{rule: self.a}, {rule: self.b}]}`

func newPatient(t *testing.T) *patient {
	t.Helper()
	p := &patient{access: component.AccessFound, object: object(t, `{observedGeneration: 5, conditions: [
		{type: A, status: "True"}, {type: B, status: "True"}, {type: C, status: "True"}, {type: D, status: "True"},
		{type: E, status: "True"}, {type: F, status: "True"}, {type: Upgradeable, status: "True"}, {type: Other, status: "True"}]}`)}
	p.outcomes = []component.ExpressionOutcome{{True: true, Evaluated: true}, {True: true, Evaluated: true}}
	return p
}

func (p *patient) assess(t *testing.T) component.Assessment {
	t.Helper()
	o := component.Observation{Reading: component.Reading{Access: p.access}, Expressions: p.outcomes}
	if p.access == component.AccessFound {
		o.Snapshot = component.Decode(p.object, false)
	}
	return component.Assess(widget(t, patientSpec), o)
}

// fault is one row of docs/judging.md, and how to bring it about.
type fault struct {
	row     int
	reasons []string
	put     []func(*patient)
}

func reading(access component.Access) func(*patient) {
	return func(p *patient) { p.access = access }
}

func observed(value any) func(*patient) {
	return func(p *patient) { p.status()["observedGeneration"] = value }
}

func set(i int, field string, value any) func(*patient) {
	return func(p *patient) { p.condition(i)[field] = value }
}

// faults are the rows in the order of contract 4.1.
func faults() []fault {
	is := func(p ...func(*patient)) []func(*patient) { return p }
	return []fault{
		{1, []string{"Initializing", "Forbidden", "ProbeFailed", "ProbeTimedOut"},
			is(reading(component.AccessUnread), reading(component.AccessForbidden), reading(component.AccessFailed), reading(component.AccessTimedOut))},
		{2, []string{"InvalidSpec", "KindNotInstalled"}, is(reading(component.AccessMisplaced), reading(component.AccessKindNotInstalled))},
		{3, []string{"NotFound"}, is(reading(component.AccessAbsent))},
		{4, []string{"Terminating"}, is(func(p *patient) {
			p.object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
		})},
		{5, []string{"ObservedGenerationMissing"}, is(observed(int64(0)))},
		{6, []string{"ObservedGenerationStale"}, is(observed(int64(4)))},
		{7, []string{"ObservedGenerationAhead"}, is(observed(int64(6)))},
		{8, []string{"ConditionAmbiguous"}, is(set(ofVeto+1, "type", "F"))},
		{9, []string{"ConditionMissing"}, is(set(missing, "type", "X"))},
		{10, []string{"ObservedGenerationStale", "ObservedGenerationAhead"}, is(set(ofOldGeneration, "observedGeneration", int64(4)), set(ofNewGeneration, "observedGeneration", int64(6)))},
		{11, []string{"ConditionUnknown"}, is(set(ofUnknown, "status", "Unknown"))},
		{12, []string{"ComponentNotUpgradeable"}, is(set(ofVeto, "status", "False"))},
		{13, []string{"ConditionNotMet"}, is(set(notMet, "status", "False"))},
		{14, []string{"ExpressionFalse", "ExpressionFailed"}, is(
			func(p *patient) { p.outcomes[0].True = false },
			func(p *patient) { p.outcomes[1].Failure = "no such key" })},
	}
}

func TestEachFaultAloneHasItsReason(t *testing.T) {
	require.Equal(t, "Ready", newPatient(t).assess(t).Reason)
	for _, f := range faults() {
		require.Len(t, f.put, len(f.reasons))
		for i, put := range f.put {
			p := newPatient(t)
			put(p)
			a := p.assess(t)
			require.Equal(t, f.reasons[i], a.Reason, "row %d", f.row)
			require.True(t, a.Blocks(), "row %d", f.row)
		}
	}
}

// TestOfTwoFaultsTheEarlierRowWins puts in every pair. Where both change the
// same field they cannot be there at once, and the earlier stays.
func TestOfTwoFaultsTheEarlierRowWins(t *testing.T) {
	requireOrder(t, faults())
}

func requireOrder(t *testing.T, ordered []fault) {
	t.Helper()
	for i, earlier := range ordered {
		for _, later := range ordered[i+1:] {
			for j, first := range earlier.put {
				for _, second := range later.put {
					p := newPatient(t)
					second(p)
					first(p)
					require.Equal(t, earlier.reasons[j], p.assess(t).Reason, "row %d and row %d", earlier.row, later.row)
				}
			}
		}
	}
}

func TestAllFaultsAtOnceClearOneByOne(t *testing.T) {
	all := faults()
	for i, f := range all {
		p := newPatient(t)
		for _, later := range slices.Backward(all[i:]) {
			later.put[0](p)
		}
		require.Equal(t, f.reasons[0], p.assess(t).Reason, "rows from %d on", f.row)
	}
}

// tableRow matches a row of the table in docs/judging.md.
var tableRow = regexp.MustCompile(`(?m)^\| (\d+) \|.*\| ([^|]+) \| ([^|]+) \|$`)

func TestTheDocumentedTableIsTheOneThatIsUsed(t *testing.T) {
	text, err := os.ReadFile("../../docs/judging.md")
	require.NoError(t, err)
	var documented, used []string
	var outcomes []string
	for _, row := range tableRow.FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, row[1]+" "+row[3])
		outcomes = append(outcomes, row[2])
	}
	for _, f := range faults() {
		used = append(used, fmt.Sprintf("%d `%s`", f.row, strings.Join(f.reasons, "` / `")))
	}
	used = append(used, "15 `Ready`")
	require.Equal(t, used, documented)

	for i, f := range faults() {
		var ready []string
		for _, put := range f.put {
			p := newPatient(t)
			put(p)
			ready = append(ready, string(p.assess(t).Ready))
		}
		require.Equal(t, strings.Join(slices.Compact(ready), " / "), outcomes[i], "row %d", f.row)
	}
}

// example matches a worked example of docs/judging.md: what the object holds,
// and what it is judged as.
var example = regexp.MustCompile("(?s)```json\n(.*?)```\n+→ `ready: \"(\\w+)\"`, `(\\w+)`: `(.*?)`")

func TestTheDocumentedExamplesAreTrue(t *testing.T) {
	text, err := os.ReadFile("../../docs/judging.md")
	require.NoError(t, err)
	examples := example.FindAllStringSubmatch(string(text), -1)
	require.GreaterOrEqual(t, len(examples), 8)
	require.Equal(t, strings.Count(string(text), "```json"), len(examples), "an example without an outcome")
	for _, e := range examples {
		var decoded map[string]any
		require.NoError(t, json.Unmarshal([]byte(e[1]), &decoded), e[1])
		a := component.Assess(widget(t, `{}`), component.Observation{Reading: component.Reading{
			Access: component.AccessFound, Snapshot: component.Decode(decoded, false),
		}})
		require.Equal(t, e[2:], []string{string(a.Ready), a.Reason, a.Message()}, e[1])
	}
}
