package component_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upgrade-gate/upgrade-gate/pkg/component"
)

// judged is one row of a table: a component's spec, the status of a Widget at
// generation 5, and what is expected.
type judged struct {
	spec, status string
	want         verdict
}

func requireJudged(t *testing.T, table map[string]judged) {
	t.Helper()
	for name, c := range table {
		t.Run(name, func(t *testing.T) { c.want.require(t, component.Assess(widget(t, c.spec), found(t, c.status))) })
	}
}

// proven is what a component that is well is judged as.
func proven() verdict {
	return verdict{ready: "True", reason: "Ready", fact: "ready at its current generation"}
}

func no(reason, fact string) verdict { return verdict{ready: "False", reason: reason, fact: fact} }

// own is the three conditions with an observed generation of their own each.
func own(a, p, d string) string {
	return fmt.Sprintf(`{conditions: [{type: Available, status: "True", observedGeneration: %s},
		{type: Progressing, status: "False", observedGeneration: %s}, {type: Degraded, status: "False", observedGeneration: %s}]}`, a, p, d)
}

func TestRow5ObservedGenerationMissing(t *testing.T) {
	const (
		nowhere  = "the status reports no observedGeneration"
		not      = "status.observedGeneration is not a generation"
		neither  = "neither status nor condition Available reports an observedGeneration"
		byStatus = `{observedGeneration: %s, conditions: [` + available + `]}`
	)
	top := func(value string) string { return fmt.Sprintf(byStatus, value) }
	missing := func(fact string) verdict { return no("ObservedGenerationMissing", fact) }
	requireJudged(t, map[string]judged{
		"no status":                               {`{}`, `null`, missing(nowhere)},
		"an empty status":                         {`{}`, `{}`, missing(nowhere)},
		"a status that is text":                   {`{}`, `fine`, missing(nowhere)},
		"green, without any generation":           {`{}`, `{conditions: [` + available + `]}`, missing(neither)},
		"null counts as absent":                   {`{}`, top("null"), missing(neither)},
		"0 proves nothing":                        {`{}`, top("0"), missing("status.observedGeneration is 0")},
		"0.0 proves nothing":                      {`{}`, top("0.0"), missing("status.observedGeneration is 0")},
		"text is no generation":                   {`{}`, top(`"5"`), missing(not)},
		"a negative number is none":               {`{}`, top("-5"), missing(not)},
		"a fraction is none":                      {`{}`, top("5.5"), missing(not)},
		"true is none":                            {`{}`, top("true"), missing(not)},
		"a list is none":                          {`{}`, top("[5]"), missing(not)},
		"an object is none":                       {`{}`, top("{value: 5}"), missing(not)},
		"a number too large to be exact is none":  {`{}`, top("1e300"), missing(not)},
		"0 at the top outranks the conditions":    {`{}`, strings.Replace(own("5", "5", "5"), "{conditions", "{observedGeneration: 0, conditions", 1), missing("status.observedGeneration is 0")},
		"text at the top outranks the conditions": {`{}`, strings.Replace(own("5", "5", "5"), "{conditions", "{observedGeneration: x, conditions", 1), missing(not)},
		"one required condition has none":         {`{}`, own("5", "null", "5"), missing("neither status nor condition Progressing reports an observedGeneration")},
		"one required condition has 0":            {`{}`, own("5", "5", "0"), missing("neither status nor condition Degraded reports an observedGeneration")},
		"one required condition has text":         {`{}`, own(`"5"`, "5", "5"), missing(neither)},
		"only a condition nobody requires has it": {`{}`, `{conditions: [` + ready + `, {type: Synced, status: "True", observedGeneration: 5}]}`, missing("neither status nor condition Ready reports an observedGeneration")},
		"only the component's Upgradeable has it": {`{}`, `{conditions: [{type: Upgradeable, status: "True", observedGeneration: 5}]}`, missing(nowhere)},
		"an ignored condition is reported without": {`{conditions: [{type: Ready, status: "True"}, {type: Synced, status: "True", whenMissing: Ignore}]}`,
			`{conditions: [{type: Ready, status: "True", observedGeneration: 5}, {type: Synced, status: "True"}]}`, missing("neither status nor condition Synced reports an observedGeneration")},
		"the list is too long to be looked at": {`{}`, `{conditions: [` + strings.Repeat(ready+",", 257) + `]}`, missing(nowhere)},
	})
}

func TestWhereTheObservedGenerationComesFrom(t *testing.T) {
	requireJudged(t, map[string]judged{
		"the status alone":              {`{}`, `{observedGeneration: 5, conditions: [` + available + `]}`, proven()},
		"the status alone, as 5.0":      {`{}`, `{observedGeneration: 5.0, conditions: [` + available + `]}`, proven()},
		"every required condition":      {`{}`, own("5", "5", "5"), proven()},
		"every one, as 5.0":             {`{}`, own("5.0", "5.0", "5.0"), proven()},
		"both":                          {`{}`, strings.Replace(own("5", "5", "5"), "{conditions", "{observedGeneration: 5, conditions", 1), proven()},
		"the status and one condition":  {`{}`, strings.Replace(own("null", "5", "null"), "{conditions", "{observedGeneration: 5, conditions", 1), proven()},
		"Ready alone, in its condition": {`{}`, `{conditions: [{type: Ready, status: "True", observedGeneration: 5}]}`, proven()},
		"a condition nobody requires may be of any generation": {`{}`,
			`{observedGeneration: 5, conditions: [` + ready + `, {type: Synced, status: "False", observedGeneration: 2}]}`, proven()},
	})
}

func TestRows6And7ObservedGenerationStaleOrAhead(t *testing.T) {
	requireJudged(t, map[string]judged{
		"one behind":                     {`{}`, `{observedGeneration: 4, conditions: [` + available + `]}`, no("ObservedGenerationStale", "generation 5, observed 4")},
		"far behind":                     {`{}`, `{observedGeneration: 1, conditions: [` + available + `]}`, no("ObservedGenerationStale", "generation 5, observed 1")},
		"one ahead":                      {`{}`, `{observedGeneration: 6, conditions: [` + available + `]}`, no("ObservedGenerationAhead", "generation 5, observed 6")},
		"far ahead":                      {`{}`, `{observedGeneration: 9223372036854775807, conditions: [` + available + `]}`, no("ObservedGenerationAhead", "generation 5, observed 9223372036854775807")},
		"the status outranks conditions": {`{}`, strings.Replace(own("5", "5", "5"), "{conditions", "{observedGeneration: 4, conditions", 1), no("ObservedGenerationStale", "generation 5, observed 4")},
	})
}

func TestAnObjectWithoutGenerationIsNeverReady(t *testing.T) {
	for _, generation := range []any{nil, int64(0), "5", int64(-5), 5.5} {
		for _, status := range []string{`{observedGeneration: 5, conditions: [` + available + `]}`, `{observedGeneration: 0, conditions: [` + available + `]}`, own("5", "5", "5"), own("0", "0", "0")} {
			o := object(t, status)
			o["metadata"].(map[string]any)["generation"] = generation
			a := component.Assess(widget(t, `{}`), component.Observation{Reading: component.Reading{
				Access: component.AccessFound, Snapshot: component.Decode(o, false),
			}})
			require.Equal(t, "False", string(a.Ready), "generation %v, status %s", generation, status)
		}
	}
}

func TestRow8ConditionAmbiguous(t *testing.T) {
	twice := func(kind string) verdict {
		return no("ConditionAmbiguous", "condition "+kind+" is reported more than once")
	}
	requireJudged(t, map[string]judged{
		"Available twice, in disagreement":      {`{}`, `{observedGeneration: 5, conditions: [` + available + `, {type: Available, status: "False"}]}`, twice("Available")},
		"Available twice, in agreement":         {`{}`, `{observedGeneration: 5, conditions: [` + available + `, {type: Available, status: "True"}]}`, twice("Available")},
		"Ready twice":                           {`{}`, `{observedGeneration: 5, conditions: [` + ready + `, ` + ready + `]}`, twice("Ready")},
		"Stalled twice":                         {`{}`, `{observedGeneration: 5, conditions: [` + ready + `, {type: Stalled, status: "False"}, {type: Stalled, status: "False"}]}`, twice("Stalled")},
		"the component's own Upgradeable twice": {`{}`, `{observedGeneration: 5, conditions: [` + ready + `, {type: Upgradeable, status: "True"}, {type: Upgradeable, status: "True"}]}`, twice("Upgradeable")},
		"an ignored condition twice":            {`{conditions: [{type: Synced, status: "True", whenMissing: Ignore}]}`, `{observedGeneration: 5, conditions: [{type: Synced, status: "True"}, {type: Synced, status: "True"}]}`, twice("Synced")},
		"a condition nobody requires twice":     {`{}`, `{observedGeneration: 5, conditions: [` + ready + `, {type: Synced, status: "True"}, {type: Synced, status: "False"}]}`, proven()},
		"more than 256 entries":                 {`{}`, `{observedGeneration: 5, conditions: [` + strings.Repeat(`{type: Other, status: "True"},`, 256) + ready + `]}`, no("ConditionAmbiguous", "status.conditions has more than 256 entries")},
		"256 entries are looked at":             {`{}`, `{observedGeneration: 5, conditions: [` + strings.Repeat(`{type: Other, status: "True"},`, 255) + ready + `]}`, proven()},
	})
}

func TestRow9ConditionMissing(t *testing.T) {
	const neither = "the status reports neither Available nor Ready: name the conditions that matter in the component's conditions"
	const ignored = `{conditions: [{type: Synced, status: "True", whenMissing: Ignore}, {type: Healthy, status: "True", whenMissing: Ignore}]}`
	missing := func(fact string) verdict { return no("ConditionMissing", fact) }
	requireJudged(t, map[string]judged{
		"no conditions":                          {`{}`, `{observedGeneration: 5}`, missing(neither)},
		"an empty list":                          {`{}`, `{observedGeneration: 5, conditions: []}`, missing(neither)},
		"null":                                   {`{}`, `{observedGeneration: 5, conditions: null}`, missing(neither)},
		"text":                                   {`{}`, `{observedGeneration: 5, conditions: Ready}`, missing("status.conditions is not a list")},
		"an object":                              {`{}`, `{observedGeneration: 5, conditions: {Ready: "True"}}`, missing("status.conditions is not a list")},
		"entries that are no conditions":         {`{}`, `{observedGeneration: 5, conditions: [null, 1, Ready, {status: "True"}]}`, missing(neither)},
		"another style":                          {`{}`, `{observedGeneration: 5, conditions: [{type: Synced, status: "True"}]}`, missing(neither)},
		"a type in lower case":                   {`{}`, `{observedGeneration: 5, conditions: [{type: ready, status: "True"}]}`, missing(neither)},
		"only Progressing and Degraded":          {`{}`, `{observedGeneration: 5, conditions: [{type: Progressing, status: "False"}, {type: Degraded, status: "False"}]}`, missing(neither)},
		"Available without Progressing":          {`{}`, `{observedGeneration: 5, conditions: [{type: Available, status: "True"}, {type: Degraded, status: "False"}]}`, missing("condition Progressing is not reported")},
		"Available without Degraded":             {`{}`, `{observedGeneration: 5, conditions: [{type: Available, status: "True"}, {type: Progressing, status: "False"}]}`, missing("condition Degraded is not reported")},
		"a condition of the spec":                {`{conditions: [{type: Synced, status: "True"}]}`, `{observedGeneration: 5, conditions: [` + available + `]}`, missing("condition Synced is not reported")},
		"Ready by the spec":                      {`{conditions: [{type: Ready, status: "True"}]}`, `{observedGeneration: 5, conditions: [` + available + `]}`, missing("condition Ready is not reported")},
		"whenMissing NotReady":                   {`{conditions: [{type: Synced, status: "True", whenMissing: NotReady}]}`, `{observedGeneration: 5, conditions: [` + available + `]}`, missing("condition Synced is not reported")},
		"whenMissing that means nothing":         {`{conditions: [{type: Synced, status: "True", whenMissing: ignore}]}`, `{observedGeneration: 5, conditions: [` + available + `]}`, missing("condition Synced is not reported")},
		"all may be missing, and all are":        {ignored, `{observedGeneration: 5}`, missing("none of the component's conditions is reported")},
		"all may be missing, and others are not": {ignored, `{observedGeneration: 5, conditions: [` + available + `]}`, missing("none of the component's conditions is reported")},
		"all may be missing, and one is not":     {ignored, `{observedGeneration: 5, conditions: [{type: Healthy, status: "True"}]}`, proven()},
		"one may be missing, and is":             {`{conditions: [{type: Ready, status: "True"}, {type: Synced, status: "True", whenMissing: Ignore}]}`, `{observedGeneration: 5, conditions: [` + ready + `]}`, proven()},
	})
}

func TestRow10ConditionOfAnotherGeneration(t *testing.T) {
	both := func(a, p, d string) string {
		return strings.Replace(own(a, p, d), "{conditions", "{observedGeneration: 5, conditions", 1)
	}
	requireJudged(t, map[string]judged{
		"one condition is behind":         {`{}`, own("5", "4", "5"), no("ObservedGenerationStale", "generation 5, observed 4 by condition Progressing")},
		"one condition is ahead":          {`{}`, own("5", "5", "6"), no("ObservedGenerationAhead", "generation 5, observed 6 by condition Degraded")},
		"behind, though the status isn't": {`{}`, both("4", "5", "5"), no("ObservedGenerationStale", "generation 5, observed 4 by condition Available")},
		"ahead, though the status isn't":  {`{}`, both("6", "5", "5"), no("ObservedGenerationAhead", "generation 5, observed 6 by condition Available")},
		"0, though the status isn't":      {`{}`, both("5", "0", "5"), no("ObservedGenerationMissing", "observedGeneration of condition Progressing is 0")},
		"text, though the status isn't":   {`{}`, both("5", "5", `"5"`), no("ObservedGenerationMissing", "observedGeneration of condition Degraded is not a generation")},
		"an ignored condition is behind": {`{}`, `{observedGeneration: 5, conditions: [` + ready + `, {type: Stalled, status: "False", observedGeneration: 4}]}`,
			no("ObservedGenerationStale", "generation 5, observed 4 by condition Stalled")},
	})
}

func TestRow11ConditionUnknown(t *testing.T) {
	u := func(fact, message string) verdict {
		return verdict{ready: "Unknown", reason: "ConditionUnknown", fact: fact, message: message}
	}
	const bad = "the status of condition Ready is not True, False or Unknown"
	with := func(more string) string { return `{observedGeneration: 5, conditions: [` + ready + `, ` + more + `]}` }
	is := func(status string) string {
		return `{observedGeneration: 5, conditions: [{type: Ready, status: ` + status + `}]}`
	}
	requireJudged(t, map[string]judged{
		"Unknown":                     {`{}`, is("Unknown"), u("Ready is Unknown", "")},
		"Unknown, with words":         {`{}`, is("Unknown, reason: Pending, message: no node"), u("Ready is Unknown", "Ready is Unknown: Pending: no node")},
		"true in lower case":          {`{}`, is(`"true"`), u(bad, "")},
		"a boolean":                   {`{}`, is("true"), u(bad, "")},
		"null":                        {`{}`, is("null"), u(bad, "")},
		"empty":                       {`{}`, is(`""`), u(bad, "")},
		"a number":                    {`{}`, is("1"), u(bad, "")},
		"without a status":            {`{}`, `{observedGeneration: 5, conditions: [{type: Ready}]}`, u(bad, "")},
		"Degraded is Unknown":         {`{}`, `{observedGeneration: 5, conditions: [{type: Available, status: "True"}, {type: Progressing, status: "False"}, {type: Degraded, status: Unknown}]}`, u("Degraded is Unknown", "")},
		"Reconciling is Unknown":      {`{}`, with(`{type: Reconciling, status: Unknown}`), u("Reconciling is Unknown", "")},
		"own Upgradeable is Unknown":  {`{}`, with(`{type: Upgradeable, status: Unknown, message: asking}`), u("Upgradeable is Unknown", "Upgradeable is Unknown: asking")},
		"own Upgradeable is a bool":   {`{}`, with(`{type: Upgradeable, status: false}`), u("the status of condition Upgradeable is not True, False or Unknown", "")},
		"a stranger that is Unknown":  {`{}`, with(`{type: Synced, status: Unknown}`), proven()},
		"the words are made one line": {`{}`, is(`Unknown, message: "a\nb\u0000c"`), u("Ready is Unknown", "Ready is Unknown: a b c")},
	})
}

func TestRow12ComponentNotUpgradeable(t *testing.T) {
	const fact = "the component says Upgradeable=False"
	requireJudged(t, map[string]judged{
		"False": {`{}`, `{observedGeneration: 5, conditions: [` + ready + `, {type: Upgradeable, status: "False", reason: Migrating, message: wait}]}`,
			verdict{ready: "False", reason: "ComponentNotUpgradeable", fact: fact, message: fact + ": Migrating: wait"}},
		"False, though the spec names other conditions": {`{conditions: [{type: Synced, status: "True"}]}`,
			`{observedGeneration: 5, conditions: [{type: Synced, status: "True"}, {type: Upgradeable, status: "False"}]}`, no("ComponentNotUpgradeable", fact)},
		"False, though the spec wants it False": {`{conditions: [{type: Upgradeable, status: "False"}]}`,
			`{observedGeneration: 5, conditions: [{type: Upgradeable, status: "False"}]}`, no("ComponentNotUpgradeable", fact)},
		"False, of an old generation": {`{}`, `{observedGeneration: 5, conditions: [` + ready + `, {type: Upgradeable, status: "False", observedGeneration: 1}]}`,
			no("ComponentNotUpgradeable", fact)},
		"True":     {`{}`, `{observedGeneration: 5, conditions: [` + ready + `, {type: Upgradeable, status: "True"}]}`, proven()},
		"required": {`{conditions: [{type: Upgradeable, status: "True"}]}`, `{observedGeneration: 5}`, no("ConditionMissing", "condition Upgradeable is not reported")},
	})
}

func TestRow13ConditionNotMet(t *testing.T) {
	met := func(fact, message string) verdict {
		return verdict{ready: "False", reason: "ConditionNotMet", fact: fact, message: message}
	}
	three := func(a, p, d string) string {
		return fmt.Sprintf(`{observedGeneration: 5, conditions: [{type: Available, status: "%s"}, {type: Progressing, status: "%s"}, {type: Degraded, status: "%s"}]}`, a, p, d)
	}
	requireJudged(t, map[string]judged{
		"not available":         {`{}`, three("False", "False", "False"), met("Available is False, wanted True", "")},
		"progressing":           {`{}`, three("True", "True", "False"), met("Progressing is True, wanted False", "")},
		"degraded":              {`{}`, three("True", "False", "True"), met("Degraded is True, wanted False", "")},
		"the first one is told": {`{}`, three("False", "True", "True"), met("Available is False, wanted True", "")},
		"not ready, with words": {`{}`, `{observedGeneration: 5, conditions: [{type: Ready, status: "False", reason: Crash, message: disk full}]}`, met("Ready is False, wanted True", "Ready is False, wanted True: Crash: disk full")},
		"not ready, a reason":   {`{}`, `{observedGeneration: 5, conditions: [{type: Ready, status: "False", reason: Crash}]}`, met("Ready is False, wanted True", "Ready is False, wanted True: Crash")},
		"reconciling":           {`{}`, `{observedGeneration: 5, conditions: [` + ready + `, {type: Reconciling, status: "True"}]}`, met("Reconciling is True, wanted False", "")},
		"stalled":               {`{}`, `{observedGeneration: 5, conditions: [` + ready + `, {type: Stalled, status: "True"}]}`, met("Stalled is True, wanted False", "")},
		"neither is True":       {`{}`, `{observedGeneration: 5, conditions: [` + ready + `, {type: Stalled, status: "False"}, {type: Reconciling, status: "False"}]}`, proven()},
		"an ignored one":        {`{conditions: [{type: Synced, status: "True", whenMissing: Ignore}]}`, `{observedGeneration: 5, conditions: [{type: Synced, status: "False"}]}`, met("Synced is False, wanted True", "")},
		"wanted False, is":      {`{conditions: [{type: Synced, status: "False"}]}`, `{observedGeneration: 5, conditions: [{type: Synced, status: "False"}]}`, proven()},
		"nothing is wanted":     {`{conditions: [{type: Synced, status: ""}]}`, `{observedGeneration: 5, conditions: [{type: Synced, status: "True"}]}`, met("no status is required of condition Synced", "")},
		"Unknown is wanted":     {`{conditions: [{type: Synced, status: Unknown}]}`, `{observedGeneration: 5, conditions: [{type: Synced, status: "True"}]}`, met("no status is required of condition Synced", "")},
		"Available hides Ready": {`{}`, `{observedGeneration: 5, conditions: [` + available + `, {type: Ready, status: "False"}]}`, proven()},
	})
}

func TestRow14Expressions(t *testing.T) {
	yes, is := component.ExpressionOutcome{True: true, Evaluated: true}, component.ExpressionOutcome{Evaluated: true}
	failed := component.ExpressionOutcome{Evaluated: true, Failure: "no such key: phase"}
	failure := func(fact, message string) verdict {
		return verdict{ready: "Unknown", reason: "ExpressionFailed", fact: fact, message: message}
	}
	false1 := verdict{ready: "False", reason: "ExpressionFalse", fact: "expression 1 is false", message: "expression 1 is false: self.a"}
	const two = `{expressions: [{rule: self.a}, {rule: self.b, message: b is off}]}`
	const onlyIgnored = `{conditions: [{type: Synced, status: "True", whenMissing: Ignore}], expressions: [{rule: self.a}]}`
	const green = `{observedGeneration: 5, conditions: [` + ready + `]}`
	for name, c := range map[string]struct {
		spec, status string
		outcomes     []component.ExpressionOutcome
		want         verdict
	}{
		"all true":                      {two, green, []component.ExpressionOutcome{yes, yes}, proven()},
		"the first is false":            {two, green, []component.ExpressionOutcome{is, yes}, false1},
		"the second is false":           {two, green, []component.ExpressionOutcome{yes, is}, verdict{ready: "False", reason: "ExpressionFalse", fact: "expression 2 is false: b is off", message: "expression 2 is false: b is off"}},
		"the first failed":              {two, green, []component.ExpressionOutcome{failed, is}, failure("expression 1 cannot be evaluated", "expression 1 cannot be evaluated: no such key: phase")},
		"false comes before failed":     {two, green, []component.ExpressionOutcome{is, failed}, false1},
		"no outcome":                    {two, green, nil, failure("expression 1 was not evaluated", "")},
		"one outcome is missing":        {two, green, []component.ExpressionOutcome{yes}, failure("expression 2 was not evaluated", "")},
		"the zero outcome":              {two, green, []component.ExpressionOutcome{{}, yes}, failure("expression 1 was not evaluated", "")},
		"true, but never evaluated":     {two, green, []component.ExpressionOutcome{{True: true}, yes}, failure("expression 1 was not evaluated", "")},
		"true, but failed":              {two, green, []component.ExpressionOutcome{{True: true, Evaluated: true, Failure: "x"}, yes}, failure("expression 1 cannot be evaluated", "expression 1 cannot be evaluated: x")},
		"an outcome too many":           {two, green, []component.ExpressionOutcome{yes, yes, is}, proven()},
		"outcomes nobody asked for":     {`{}`, green, []component.ExpressionOutcome{is}, proven()},
		"the only evidence is true":     {onlyIgnored, `{observedGeneration: 5}`, []component.ExpressionOutcome{yes}, proven()},
		"the only evidence is false":    {onlyIgnored, `{observedGeneration: 5}`, []component.ExpressionOutcome{is}, false1},
		"true does not prove freshness": {onlyIgnored, `{}`, []component.ExpressionOutcome{yes}, no("ObservedGenerationMissing", "the status reports no observedGeneration")},
	} {
		t.Run(name, func(t *testing.T) {
			o := found(t, c.status)
			o.Expressions = c.outcomes
			c.want.require(t, component.Assess(widget(t, c.spec), o))
		})
	}
}
