package component_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/conditions"
)

func TestZeroValuesAreClosed(t *testing.T) {
	require.True(t, component.Assessment{}.Blocks(), "the zero Assessment")
	require.False(t, component.Assessment{Optional: true}.Blocks(), "an optional component never blocks")
	for _, status := range []metav1.ConditionStatus{"", "False", "Unknown", "true", "TRUE", "Yes"} {
		require.True(t, component.Assessment{Ready: status}.Blocks(), "Ready %q", status)
	}
	require.False(t, component.Assessment{Ready: metav1.ConditionTrue}.Blocks())

	a := component.Assess(v1alpha1.Component{}, component.Observation{})
	require.Equal(t, component.Assessment{
		Ready: "Unknown", Reason: "Initializing", Fact: "not read yet",
		Proof: "Generation", Available: "Unknown", Progressing: true, Degraded: "Unknown",
	}, a)
	empty := component.Observation{Reading: component.Reading{Access: component.AccessFound, Snapshot: &component.Snapshot{}}}
	require.Equal(t, "ObservedGenerationMissing", component.Assess(v1alpha1.Component{}, empty).Reason, "the zero Snapshot")
	empty.Snapshot = component.Decode(nil, true)
	require.Equal(t, "ObservedGenerationMissing", component.Assess(v1alpha1.Component{}, empty).Reason, "nothing decoded")
}

func TestRows1To4ReadingTheObject(t *testing.T) {
	green := found(t, `{observedGeneration: 5, conditions: [`+available+`]}`).Snapshot
	terminating := *green
	terminating.Terminating = true
	const absent = "the object does not exist: create it, or correct the component's reference"
	for name, c := range map[string]struct {
		spec    string
		reading component.Reading
		want    verdict
	}{
		"not read yet":                       {`{}`, component.Reading{}, verdict{ready: "Unknown", reason: "Initializing", fact: "not read yet"}},
		"a snapshot without access is none":  {`{}`, component.Reading{Snapshot: green}, verdict{ready: "Unknown", reason: "Initializing", fact: "not read yet"}},
		"an access that does not exist":      {`{}`, component.Reading{Access: 99, Snapshot: green}, verdict{ready: "Unknown", reason: "Initializing", fact: "not read yet"}},
		"forbidden":                          {`{}`, component.Reading{Access: component.AccessForbidden, Detail: "may not get widgets"}, verdict{ready: "Unknown", reason: "Forbidden", fact: "may not get widgets"}},
		"forbidden, with a snapshot of old":  {`{}`, component.Reading{Access: component.AccessForbidden, Snapshot: green}, verdict{ready: "Unknown", reason: "Forbidden", fact: "the API server refuses the read"}},
		"failed":                             {`{}`, component.Reading{Access: component.AccessFailed, Detail: "conversion webhook"}, verdict{ready: "Unknown", reason: "ProbeFailed", fact: "conversion webhook"}},
		"failed without a word":              {`{}`, component.Reading{Access: component.AccessFailed}, verdict{ready: "Unknown", reason: "ProbeFailed", fact: "the read failed"}},
		"timed out":                          {`{}`, component.Reading{Access: component.AccessTimedOut}, verdict{ready: "Unknown", reason: "ProbeTimedOut", fact: "no answer in time"}},
		"found, but nothing was returned":    {`{}`, component.Reading{Access: component.AccessFound}, verdict{ready: "Unknown", reason: "ProbeFailed", fact: "the read returned nothing"}},
		"a reference that cannot be right":   {`{}`, component.Reading{Access: component.AccessMisplaced}, verdict{ready: "False", reason: "InvalidSpec", fact: "the reference cannot be right"}},
		"kind not installed":                 {`{}`, component.Reading{Access: component.AccessKindNotInstalled}, verdict{ready: "False", reason: "KindNotInstalled", fact: "the kind is not installed"}},
		"absent":                             {`{}`, component.Reading{Access: component.AccessAbsent}, verdict{ready: "False", reason: "NotFound", fact: absent + "; check that namespace shop exists"}},
		"absent, cluster-scoped":             {`{resource: {namespace: ""}}`, component.Reading{Access: component.AccessAbsent}, verdict{ready: "False", reason: "NotFound", fact: absent}},
		"absent, with a snapshot of old":     {`{}`, component.Reading{Access: component.AccessAbsent, Snapshot: green}, verdict{ready: "False", reason: "NotFound", fact: absent + "; check that namespace shop exists"}},
		"being deleted, with green status":   {`{}`, component.Reading{Access: component.AccessFound, Snapshot: &terminating}, verdict{ready: "False", reason: "Terminating", fact: "the object is being deleted"}},
		"found and green":                    {`{}`, component.Reading{Access: component.AccessFound, Snapshot: green}, verdict{ready: "True", reason: "Ready", fact: "ready at its current generation"}},
		"the detail is made fit for a line":  {`{}`, component.Reading{Access: component.AccessFailed, Detail: "a\nb\x00\xff"}, verdict{ready: "Unknown", reason: "ProbeFailed", fact: "a b \uFFFD"}},
		"the detail is bounded":              {`{}`, component.Reading{Access: component.AccessFailed, Detail: strings.Repeat("x", 9999)}, verdict{ready: "Unknown", reason: "ProbeFailed", fact: strings.Repeat("x", 511) + "…"}},
		"NotReported does not relax the way": {`{observedGeneration: NotReported}`, component.Reading{Access: component.AccessFound, Snapshot: found(t, `{conditions: [`+available+`]}`).Snapshot}, verdict{ready: "False", reason: "ObservedGenerationMissing", fact: "neither status nor condition Available reports an observedGeneration"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.require(t, component.Assess(widget(t, c.spec), component.Observation{Reading: c.reading}))
		})
	}
}

func TestAssessmentDescribesTheObject(t *testing.T) {
	a := component.Assess(widget(t, `{optional: true}`), found(t, `{observedGeneration: 5, conditions: [
		{type: Available, status: "True", observedGeneration: 4}, {type: Progressing, status: "False"}, {type: Degraded, status: "False"}]}`))
	require.Equal(t, component.Assessment{
		Name: "web", Optional: true, Ready: "False", Reason: "ObservedGenerationStale",
		Fact:   "generation 5, observed 4 by condition Available",
		Object: "test.example.com/Widget shop/web", UID: "u-1", Generation: 5, ObservedGeneration: 4, Proof: "Generation",
		Available: "True", Progressing: true, Degraded: "False",
	}, a)
}

func TestObjectIsNamedAsFarAsItIsKnown(t *testing.T) {
	namespaced := found(t, `{}`)
	cluster := component.Observation{Reading: component.Reading{Access: component.AccessFound, Snapshot: &component.Snapshot{}}}
	for name, c := range map[string]struct {
		spec string
		o    component.Observation
		want string
	}{
		"found":                             {`{}`, namespaced, "test.example.com/Widget shop/web"},
		"found in the gate's namespace":     {`{resource: {namespace: ""}}`, namespaced, "test.example.com/Widget shop/web"},
		"absent, with a namespace":          {`{}`, component.Observation{}, "test.example.com/Widget shop/web"},
		"absent, without":                   {`{resource: {namespace: ""}}`, component.Observation{}, "test.example.com/Widget web"},
		"found, cluster-scoped":             {`{resource: {namespace: ""}}`, cluster, "test.example.com/Widget web"},
		"of the core group":                 {`{resource: {apiVersion: v1, kind: Pod}}`, namespaced, "Pod shop/web"},
		"of a component without a resource": {`{resource: null}`, namespaced, ""},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, component.Assess(widget(t, c.spec), c.o).Object) })
	}
}

func TestProjections(t *testing.T) {
	for name, c := range map[string]struct {
		status      string
		available   metav1.ConditionStatus
		progressing bool
		degraded    metav1.ConditionStatus
	}{
		"green":                                 {`{observedGeneration: 5, conditions: [` + available + `]}`, "True", false, "False"},
		"green by Ready alone":                  {`{observedGeneration: 5, conditions: [` + ready + `]}`, "True", false, "False"},
		"not ready by Ready alone":              {`{observedGeneration: 5, conditions: [{type: Ready, status: "False"}]}`, "False", false, "False"},
		"Ready is Unknown":                      {`{observedGeneration: 5, conditions: [{type: Ready, status: Unknown}]}`, "Unknown", false, "False"},
		"not available":                         {`{observedGeneration: 5, conditions: [{type: Available, status: "False"}]}`, "False", false, "False"},
		"available though not ready":            {`{observedGeneration: 5, conditions: [{type: Available, status: "True"}, {type: Ready, status: "False"}]}`, "True", false, "False"},
		"Available is Unknown":                  {`{observedGeneration: 5, conditions: [{type: Available, status: Unknown}]}`, "Unknown", false, "False"},
		"Available is no status":                {`{observedGeneration: 5, conditions: [{type: Available, status: yes}]}`, "", false, "False"},
		"Available twice, in disagreement":      {`{observedGeneration: 5, conditions: [{type: Available, status: "True"}, {type: Available, status: "False"}]}`, "Unknown", false, "False"},
		"Progressing":                           {`{observedGeneration: 5, conditions: [{type: Ready, status: "True"}, {type: Progressing, status: "True"}]}`, "True", true, "False"},
		"Reconciling":                           {`{observedGeneration: 5, conditions: [{type: Ready, status: "False"}, {type: Reconciling, status: "True"}]}`, "False", true, "False"},
		"Progressing in a second entry":         {`{observedGeneration: 5, conditions: [{type: Progressing, status: "False"}, {type: Progressing, status: "True"}]}`, "False", true, "False"},
		"stale":                                 {`{observedGeneration: 4, conditions: [` + available + `]}`, "True", true, "False"},
		"ahead is not progress":                 {`{observedGeneration: 6, conditions: [` + available + `]}`, "True", false, "False"},
		"Degraded":                              {`{observedGeneration: 5, conditions: [{type: Ready, status: "True"}, {type: Degraded, status: "True"}]}`, "True", false, "True"},
		"Stalled":                               {`{observedGeneration: 5, conditions: [{type: Ready, status: "False"}, {type: Stalled, status: "True"}]}`, "False", false, "True"},
		"Degraded in a second entry":            {`{observedGeneration: 5, conditions: [{type: Degraded, status: "False"}, {type: Degraded, status: "True"}]}`, "False", false, "True"},
		"Degraded is Unknown":                   {`{observedGeneration: 5, conditions: [{type: Ready, status: "True"}, {type: Degraded, status: Unknown}]}`, "True", false, "Unknown"},
		"Stalled is no status":                  {`{observedGeneration: 5, conditions: [{type: Ready, status: "True"}, {type: Stalled, status: 1}]}`, "Unknown", false, "Unknown"},
		"conditions that are not a list":        {`{observedGeneration: 5, conditions: none}`, "False", false, "Unknown"},
		"an empty status":                       {`{}`, "False", false, "False"},
		"green at no generation, by its status": {`{conditions: [` + available + `]}`, "True", false, "False"},
	} {
		t.Run(name, func(t *testing.T) {
			a := component.Assess(widget(t, `{}`), found(t, c.status))
			require.Equal(t, c.available, a.Available, "available")
			require.Equal(t, c.progressing, a.Progressing, "progressing")
			require.Equal(t, c.degraded, a.Degraded, "degraded")
		})
	}
}

func TestProjectionsOfWhatWasNotFound(t *testing.T) {
	for access, want := range map[component.Access]component.Assessment{
		component.AccessUnread:           {Available: "Unknown", Progressing: true, Degraded: "Unknown"},
		component.AccessForbidden:        {Available: "Unknown", Degraded: "Unknown"},
		component.AccessFailed:           {Available: "Unknown", Degraded: "Unknown"},
		component.AccessTimedOut:         {Available: "Unknown", Degraded: "Unknown"},
		component.AccessMisplaced:        {Available: "False", Degraded: "Unknown"},
		component.AccessKindNotInstalled: {Available: "False", Degraded: "False"},
		component.AccessAbsent:           {Available: "False", Degraded: "False"},
	} {
		a := component.Assess(widget(t, `{}`), component.Observation{Reading: component.Reading{Access: access}})
		require.Equal(t, want, component.Assessment{Available: a.Available, Progressing: a.Progressing, Degraded: a.Degraded}, "access %d", access)
	}
	terminating := found(t, `{observedGeneration: 5, conditions: [`+available+`]}`)
	terminating.Snapshot.Terminating = true
	require.True(t, component.Assess(widget(t, `{}`), terminating).Progressing)
}

func TestHostileTextIsBoundedAndValid(t *testing.T) {
	hostile := strings.Repeat("\xff\x00\u202e\n語", 5000)
	spec := widget(t, `{}`)
	spec.Conditions = []v1alpha1.ConditionRequirement{{Type: hostile, Status: metav1.ConditionTrue}}
	spec.Expressions = []v1alpha1.Expression{{Rule: hostile, Message: hostile}}
	condition := conditions.Condition{Type: hostile, Status: "False", Reason: strings.Repeat("語", conditions.MaxForeignReason), Message: strings.Repeat("語", conditions.MaxForeignText)}
	snapshot := found(t, `{observedGeneration: 5}`).Snapshot
	snapshot.Conditions.Items = []conditions.Condition{condition}
	passes := *snapshot
	passes.Conditions.Items = []conditions.Condition{{Type: hostile, Status: "True"}}
	for name, o := range map[string]component.Observation{
		"a failed read":        {Reading: component.Reading{Access: component.AccessFailed, Detail: hostile}},
		"an absent condition":  found(t, `{observedGeneration: 5}`),
		"a condition not met":  {Reading: component.Reading{Access: component.AccessFound, Snapshot: snapshot}},
		"a false expression":   {Reading: component.Reading{Access: component.AccessFound, Snapshot: &passes}, Expressions: []component.ExpressionOutcome{{Evaluated: true}}},
		"a failing expression": {Reading: component.Reading{Access: component.AccessFound, Snapshot: &passes}, Expressions: []component.ExpressionOutcome{{Evaluated: true, Failure: hostile}}},
	} {
		t.Run(name, func(t *testing.T) {
			a := component.Assess(spec, o)
			require.True(t, a.Blocks())
			for _, text := range []string{a.Message(), a.Fact, a.Quote} {
				require.True(t, utf8.ValidString(text))
				require.LessOrEqual(t, utf8.RuneCountInString(text), 1024)
				require.NotContains(t, text, "\n")
				require.NotContains(t, text, "\x00")
			}
		})
	}
}
