package resource_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/probe/probetest"
)

func TestPrepareSaysWhereARuleIsWrongAndWhatToDo(t *testing.T) {
	const remedy = "; correct the rule: it is CEL, and the object is called self"
	for name, c := range map[string]struct{ rule, want string }{
		"a misspelt self":                  {`slef.status.ready == true`, `line 1, column 1: undeclared reference to 'slef'` + remedy},
		"a mistake in the second line":     {"true &&\n  nope(self)", `line 2, column 7: undeclared reference to 'nope'` + remedy},
		"an unfinished rule":               {`self.status.phase ==`, `line 1, column 21: Syntax error: mismatched input '<EOF>' expecting`},
		"a rule that gives text":           {`"ready"`, `gives string, not bool; compare it, for example self.status.ready == true`},
		"a rule that may give anything":    {`self.status.ready`, `gives dyn, not bool; compare it, for example self.status.ready == true`},
		"an empty rule":                    {` `, `is empty; write a CEL expression over the object self, or remove it`},
		"a regular expression that is bad": {`self.kind.matches("(")`, `line 1, column 19: invalid matches argument` + remedy},
		"a clock":                          {`now() > timestamp(self.status.since)`, `line 1, column 4: undeclared reference to 'now'` + remedy},
		"another variable":                 {`oldSelf == self`, `line 1, column 1: undeclared reference to 'oldSelf'` + remedy},
		"replace":                          {`self.kind.replace("a", "b") == ""`, `uses replace, which is not offered here; use ==, contains, startsWith, endsWith, matches or split`},
		"indexOf inside of something":      {`[self.kind].all(k, k.indexOf("a") > 0)`, `uses indexOf, which is not offered here; use ==, contains, startsWith, endsWith, matches or split`},
		"lastIndexOf":                      {`self.kind.lastIndexOf("a") > 0`, `uses lastIndexOf, which is not offered here; use ==, contains, startsWith, endsWith, matches or split`},
		"distinct":                         {`self.status.list.distinct() == []`, `uses distinct, which is not offered here; use ==, contains, startsWith, endsWith, matches or split`},
	} {
		t.Run(name, func(t *testing.T) {
			p, errs := prepare(t, rules("true", c.rule))
			require.Nil(t, p)
			require.Len(t, errs, 1)
			require.Equal(t, "spec.components[3].expressions[1].rule", errs[0].Field)
			require.Equal(t, c.rule, errs[0].BadValue)
			require.True(t, strings.HasPrefix(errs[0].Detail, c.want), errs[0].Detail)
			require.True(t, strings.HasSuffix(errs[0].Detail, c.want) || strings.HasSuffix(errs[0].Detail, remedy), errs[0].Detail)
		})
	}
}

func TestEveryWrongRuleIsNamed(t *testing.T) {
	_, errs := prepare(t, rules("1", "true", "2"))
	require.Len(t, errs, 2)
	require.Equal(t, "spec.components[3].expressions[0].rule", errs[0].Field)
	require.Equal(t, "spec.components[3].expressions[2].rule", errs[1].Field)
}

func observe(t *testing.T, c v1alpha1.Component, object map[string]any) component.Observation {
	t.Helper()
	p, errs := prepare(t, c)
	require.Empty(t, errs)
	return p.Observe(t.Context(), answering(component.Decode(object, true)))
}

func answering(snapshot *component.Snapshot) *probetest.Reader {
	return &probetest.Reader{Answer: func(context.Context, component.Target) component.Reading {
		return component.Reading{Access: component.AccessFound, Snapshot: snapshot}
	}}
}

func TestObserveEvaluatesTheRules(t *testing.T) {
	yes := component.ExpressionOutcome{Evaluated: true, True: true}
	no := component.ExpressionOutcome{Evaluated: true}
	failed := func(why string) component.ExpressionOutcome {
		return component.ExpressionOutcome{Evaluated: true, Failure: why}
	}
	for name, c := range map[string]struct {
		rule string
		want component.ExpressionOutcome
	}{
		"a field that is as wanted":             {`self.status.phase == "Deployed"`, yes},
		"a field that is not":                   {`self.status.phase == "Deploying"`, no},
		"a field that is not there":             {`self.status.color == "green"`, failed("no such key: color; guard it with has()")},
		"has() asks first":                      {`has(self.status.color) && self.status.color == "green"`, no},
		"an optional field":                     {`self.status.?color.orValue("green") == "green"`, yes},
		"a number compared with a fraction":     {`self.spec.replicas > 2.5`, yes},
		"a value of another type":               {`self.status.phase > 3`, failed("no such overload")},
		"a number that is none":                 {`int(self.status.phase) > 3`, failed("type conversion error from 'string' to 'int'")},
		"division by zero":                      {`1 / (self.spec.replicas - 3) > 0`, failed("division by zero")},
		"an element that is not there":          {`self.status.conditions[7].type == "Ready"`, failed("index out of bounds: 7")},
		"a condition found among others":        {`self.status.conditions.exists(c, c.type == "Ready" && c.status == "True")`, yes},
		"the generations themselves":            {`self.status.observedGeneration == self.metadata.generation`, yes},
		"times of the object compared":          {`timestamp("2026-01-02T03:04:05Z") < timestamp("2026-01-02T03:04:06Z")`, yes},
		"the extension library for strings":     {`self.status.phase.lowerAscii() == "deployed"`, yes},
		"the extension library for lists":       {`[[1], [2]].flatten() == [1, 2]`, yes},
		"the extension library for sets":        {`sets.contains(["Deployed", "Failed"], [self.status.phase])`, yes},
		"a regular expression":                  {`self.status.phase.matches("^Dep")`, yes},
		"managed fields cannot be looked at":    {`has(self.metadata.managedFields)`, no},
		"resource version cannot be looked at":  {`has(self.metadata.resourceVersion)`, no},
		"an error that does not matter to or":   {`self.status.color == "green" || true`, yes},
		"a loop over something that is no list": {`self.status.phase.all(x, true)`, failed("got 'types.String', expected iterable type")},
	} {
		t.Run(name, func(t *testing.T) {
			object := readyWidget()
			object["metadata"].(map[string]any)["managedFields"] = []any{}
			object["metadata"].(map[string]any)["resourceVersion"] = "1"
			o := observe(t, rules(c.rule), object)
			require.Equal(t, []component.ExpressionOutcome{c.want}, o.Expressions)
		})
	}
}

func TestALoopInALoopOfOrdinarySizeFits(t *testing.T) {
	items := make([]any, 120)
	for i := range items {
		items[i] = map[string]any{"name": fmt.Sprintf("item-%d", i), "ready": true}
	}
	object := map[string]any{"status": map[string]any{"items": items}}
	o := observe(t, rules(`self.status.items.all(x, self.status.items.exists_one(y, x.name == y.name))`), object)
	require.Equal(t, []component.ExpressionOutcome{{Evaluated: true, True: true}}, o.Expressions)
}

func TestObserveEvaluatesEveryRuleInOrder(t *testing.T) {
	o := observe(t, rules(`true`, `self.status.color == ""`, `false`, `true`), readyWidget())
	require.Equal(t, []component.ExpressionOutcome{
		{Evaluated: true, True: true},
		{Evaluated: true, Failure: "no such key: color; guard it with has()"},
		{Evaluated: true},
		{Evaluated: true, True: true},
	}, o.Expressions)
}

func TestAnObjectThatWasNotReadWholeFailsEveryRule(t *testing.T) {
	p, errs := prepare(t, rules("true"))
	require.Empty(t, errs)
	o := p.Observe(t.Context(), answering(component.Decode(readyWidget(), false)))
	require.Equal(t, []component.ExpressionOutcome{{Evaluated: true, Failure: "the object was not read as a whole"}}, o.Expressions)
}

func TestRulesAreNotEvaluatedOnWhatWasNotFound(t *testing.T) {
	p, errs := prepare(t, rules("true"))
	require.Empty(t, errs)
	r := &probetest.Reader{Answer: func(context.Context, component.Target) component.Reading {
		return component.Reading{Access: component.AccessForbidden, Snapshot: component.Decode(readyWidget(), true)}
	}}
	require.Nil(t, p.Observe(t.Context(), r).Expressions)
}

func TestTheSameSnapshotIsEvaluatedOnce(t *testing.T) {
	p, errs := prepare(t, rules(`self.status.phase == "Deployed"`))
	require.Empty(t, errs)
	snapshot := component.Decode(readyWidget(), true)
	r := answering(snapshot)
	evaluated := p.Observe(t.Context(), r)
	require.True(t, evaluated.Expressions[0].True)
	evaluated.Expressions[0].True = false

	// A snapshot never changes; here it does, to see whether it is looked at.
	snapshot.Object["status"] = map[string]any{"phase": "Failed"}
	first := p.Observe(t.Context(), r)
	require.True(t, first.Expressions[0].True, "a caller changed what is remembered")
	first.Expressions[0].True = false
	require.True(t, p.Observe(t.Context(), r).Expressions[0].True, "a caller changed what is remembered")

	other := component.Decode(map[string]any{"status": map[string]any{"phase": "Failed"}}, true)
	require.False(t, p.Observe(t.Context(), answering(other)).Expressions[0].True)
}

func TestACancelledEvaluationIsNotRemembered(t *testing.T) {
	p, errs := prepare(t, rules(`self.status.phase == "Deployed"`))
	require.Empty(t, errs)
	r := answering(component.Decode(readyWidget(), true))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, []component.ExpressionOutcome{{Evaluated: true, Failure: "the evaluation was interrupted"}}, p.Observe(cancelled, r).Expressions)
	require.True(t, p.Observe(t.Context(), r).Expressions[0].True)
}

func TestHostileObjectsDoNotKeepTheOperatorBusy(t *testing.T) {
	list := func(n int) []any {
		items := make([]any, n)
		for i := range items {
			items[i] = fmt.Sprintf("item-%d", i)
		}
		return items
	}
	text := strings.Repeat("a", 1_000_000)
	deep := map[string]any{}
	for inner, i := deep, 0; i < 5_000; i++ {
		next := map[string]any{}
		inner["next"] = next
		inner = next
	}
	tooCostly := "the rule exceeds the cost limit of 200000; make it simpler"
	for name, c := range map[string]struct {
		rule   string
		status map[string]any
		want   string
	}{
		"a loop in a loop": {
			`self.status.a.all(x, self.status.a.all(y, self.status.a.all(z, x + y + z != "")))`,
			map[string]any{"a": list(4_000)}, tooCostly,
		},
		"two big sets": {
			`sets.contains(self.status.a, self.status.b)`,
			map[string]any{"a": list(4_900), "b": list(4_900)}, tooCostly,
		},
		"more values than are looked at": {
			`true`, map[string]any{"a": list(10_001)},
			"the object holds more than 10000 values, too many for expressions; use conditions",
		},
		"a long text, searched again and again": {
			`self.status.a.all(x, self.status.text.contains("b") || true)`,
			map[string]any{"a": list(5_000), "text": text}, tooCostly,
		},
		"an object nested deeply": {
			`self.status.deep == self.status.deep.next`, map[string]any{"deep": deep}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			o := observe(t, rules(c.rule), map[string]any{"status": c.status})
			require.Equal(t, c.want, o.Expressions[0].Failure)
			require.Less(t, time.Since(began), 20*time.Second)
		})
	}
}
