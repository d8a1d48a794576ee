package judge

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// story forges a history, one revision after the other, as an API server and an
// operator could have written it.
type story struct {
	h    History
	rv   int64
	now  time.Time
	last map[Key]map[string]any
}

var (
	ocKey     = Key{olmGroup, olmKind, "ns", "gate.v1.0.0"}
	gateKey   = Key{gateGroup, gateKind, "ns", "platform"}
	widgetKey = Key{"test.example.com", "Widget", "ns", "a"}
)

func newStory() *story {
	return &story{h: History{Namespace: "ns"}, rv: 100, now: time.Unix(1000, 0), last: map[Key]map[string]any{}}
}

// store records a state written by somebody else; empty text is a deletion.
func (s *story) store(key Key, text string) *story {
	s.rv++
	var object map[string]any
	if text != "" {
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			panic(err)
		}
	}
	s.last[key] = object
	s.h.Revisions = append(s.h.Revisions, Revision{Key: key, RV: s.rv, Seen: s.now, Object: object})
	return s
}

// write records a state written by the operator.
func (s *story) write(key Key, text string) *story {
	s.store(key, text)
	s.h.Writes = append(s.h.Writes, Write{Key: key, Verb: "update", Code: 200, RV: s.rv})
	return s
}

// fail records a write of the operator that the API server refused.
func (s *story) fail(key Key) *story {
	s.h.Writes = append(s.h.Writes, Write{Key: key, Verb: "patch", Code: 500})
	return s
}

func (s *story) later(d time.Duration) *story {
	s.now = s.now.Add(d)
	return s
}

const (
	emptyOC  = `{spec: {deployments: [gate]}}`
	closedOC = `{spec: {deployments: [gate], conditions: [{type: Upgradeable, status: "False", reason: ComponentsNotReady, message: "1 of 1 components is not ready: a: NotFound", lastTransitionTime: t1}]}}`
	openOC   = `{spec: {deployments: [gate], conditions: [{type: Upgradeable, status: "True", reason: AllComponentsReady, message: "all are ready", lastTransitionTime: t2}]}}`

	gateSpec   = `metadata: {generation: 1}, spec: {minReadySeconds: 0, components: [{name: a, resource: {apiVersion: test.example.com/v1, kind: Widget, name: a}}]}`
	newGate    = `{` + gateSpec + `}`
	closedGate = `{` + gateSpec + `, status: {observedGeneration: 1, conditions: [{type: Upgradeable, status: "False", reason: ComponentsNotReady, message: "a: NotFound", lastTransitionTime: t1}]}}`
	openGate   = `{` + gateSpec + `, status: {observedGeneration: 1, conditions: [{type: Upgradeable, status: "True", reason: AllComponentsReady, message: "all", lastTransitionTime: t2}]}}`

	greenWidget = `{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Available, status: "True"}, {type: Progressing, status: "False"}, {type: Degraded, status: "False"}]}}`
	staleWidget = `{metadata: {generation: 3}, status: {observedGeneration: 2, conditions: [{type: Available, status: "True"}, {type: Progressing, status: "False"}, {type: Degraded, status: "False"}]}}`
)

// opening is the story of a gate that does everything right.
func opening() *story {
	return newStory().
		store(ocKey, emptyOC).store(gateKey, newGate).
		write(ocKey, closedOC).write(gateKey, closedGate).
		store(widgetKey, greenWidget).later(time.Second).
		write(gateKey, openGate).write(ocKey, openOC)
}

func TestHistoriesThatKeepThePromises(t *testing.T) {
	for name, story := range map[string]*story{
		"closed again": opening().store(widgetKey, staleWidget).write(ocKey, closedOC2).write(gateKey, closedGate2),
		"OLM could not be told at first": opening().store(widgetKey, staleWidget).
			fail(ocKey).write(gateKey, closedGate2).write(ocKey, closedOC2),
		"settled for long enough": newStory().store(ocKey, emptyOC).store(gateKey, settled.Replace(newGate)).
			write(ocKey, closedOC).store(widgetKey, staleWidget).later(time.Minute).store(widgetKey, greenWidget).later(6*time.Second).
			write(gateKey, settled.Replace(openGate)).write(ocKey, openOC),
		"an optional component is bad": newStory().store(ocKey, emptyOC).
			store(gateKey, strings.Replace(newGate, "{name: a,", "{name: a, optional: true,", 1)).
			write(gateKey, strings.Replace(openGate, "{name: a,", "{name: a, optional: true,", 1)).write(ocKey, openOC),
		"a write that ends a doubt": newStory().store(ocKey, emptyOC).store(gateKey, newGate).write(ocKey, closedOC).write(gateKey, closedGate).
			fail(ocKey).write(ocKey, strings.Replace(closedOC, "t1", "t9", 1)),
		"no gate": newStory().store(ocKey, emptyOC).write(ocKey, openOC),
	} {
		t.Run(name, func(t *testing.T) {
			if wrong := Check(story.h); len(wrong) > 0 {
				t.Errorf("found fault with a good history:\n%s", strings.Join(wrong, "\n"))
			}
			if wrong := Agree(story.h); wrong != "" {
				t.Errorf("found disagreement: %s", wrong)
			}
		})
	}
}

var (
	closedOC2   = strings.ReplaceAll(strings.ReplaceAll(closedOC, "t1", "t3"), "NotFound", "ObservedGenerationStale")
	closedGate2 = strings.ReplaceAll(strings.ReplaceAll(closedGate, "t1", "t3"), "NotFound", "ObservedGenerationStale")
	settled     = strings.NewReplacer("minReadySeconds: 0", "minReadySeconds: 5")
)

func started() *story {
	return newStory().store(ocKey, emptyOC).store(gateKey, newGate).write(ocKey, closedOC).write(gateKey, closedGate)
}

// broken are histories that break a promise, and what the judge says of them.
var broken = map[string]struct {
	story *story
	want  string
}{
	"opened with a stale component": {
		started().store(widgetKey, staleWidget).write(gateKey, openGate).write(ocKey, openOC), "observed generation 2, has 3"},
	"opened without the component": {
		started().write(gateKey, openGate).write(ocKey, openOC), "does not exist"},
	"opened after the component was deleted": {
		started().store(widgetKey, greenWidget).store(widgetKey, "").write(gateKey, openGate).write(ocKey, openOC), "does not exist"},
	"opened before the gate said so": {
		started().store(widgetKey, greenWidget).write(ocKey, openOC), "did not say Upgradeable=True"},
	"opened by a status of an older spec": {
		started().store(widgetKey, greenWidget).
			write(gateKey, strings.Replace(openGate, "generation: 1}", "generation: 2}", 1)).write(ocKey, openOC), "did not say Upgradeable=True"},
	"opened while held": {
		started().store(widgetKey, greenWidget).
			write(gateKey, strings.Replace(openGate, "spec: {", "spec: {hold: {message: no}, ", 1)).write(ocKey, openOC), "was held"},
	"opened on the proof of an earlier opening": {
		opening().store(widgetKey, staleWidget).store(ocKey, emptyOC).write(ocKey, openOC), "observed generation 2, has 3"},
	"opened within the settle window": {
		newStory().store(ocKey, emptyOC).store(gateKey, settled.Replace(newGate)).
			write(ocKey, closedOC).store(widgetKey, staleWidget).later(time.Minute).store(widgetKey, greenWidget).later(3*time.Second).
			write(gateKey, settled.Replace(openGate)).write(ocKey, openOC), "opened within its 5 s"},
	"two entries": {
		started().write(ocKey, strings.Replace(closedOC, "conditions: [", "conditions: [{type: Upgradeable, status: \"True\"}, ", 1)), "2 Upgradeable entries"},
	"Unknown": {
		started().write(ocKey, strings.Replace(closedOC, `"False"`, "Unknown", 1)), "anything but False"},
	"an invalid reason": {
		started().write(ocKey, strings.Replace(closedOC, "ComponentsNotReady", "not-ready", 1)), "reason is not valid"},
	"no cause": {
		started().write(ocKey, strings.Replace(closedOC, "a: NotFound", "sorry", 1)), "names no component"},
	"too long": {
		started().write(ocKey, strings.Replace(closedOC, "NotFound", "NotFound"+strings.Repeat("ä", 2000), 1)), "characters"},
	"an override touched": {
		started().write(ocKey, strings.Replace(closedOC2, "spec: {", "spec: {overrides: [], ", 1)), "more than the operator's own entry"},
	"another's condition touched": {
		started().store(ocKey, strings.Replace(closedOC, "conditions: [", `conditions: [{type: Other, status: "True"}, `, 1)).write(ocKey, closedOC2), "more than the operator's own entry"},
	"status closed before OLM was told": {
		opening().store(widgetKey, staleWidget).write(gateKey, closedGate2).write(ocKey, closedOC2), "while OLM still holds True"},
	"status closed first, after a failure that is long past": {
		opening().fail(ocKey).store(widgetKey, greenWidget).write(ocKey, strings.Replace(openOC, "all are", "yes, all are", 1)).
			store(widgetKey, staleWidget).write(gateKey, closedGate2).write(ocKey, closedOC2), "while OLM still holds True"},
	"a gate let go before OLM was told": {
		opening().store(gateKey, strings.Replace(openGate, "generation: 1}", "generation: 2, deletionTimestamp: now}", 1)).
			store(gateKey, "").write(ocKey, closedOC2), "was let go at revision 109 while OLM held True"},
	"written again with a new time only": {
		started().write(ocKey, strings.Replace(closedOC, "t1", "t9", 1)), "changes nothing"},
	"a transition time that moves alone": {
		started().write(gateKey, strings.Replace(closedGate2, "t3", "t9", 1)), "its lastTransitionTime moves"},
	"a long message in the status": {
		started().write(gateKey, strings.Replace(closedGate2, "a: Obs", strings.Repeat("x", 1025), 1)), "1045 characters"},
	"a text of success": {
		started().write(gateKey, strings.Replace(closedGate2, "a: Obs", "completed successfully", 1)), "text of success"},
}

// A checker that cannot fail is worth nothing: each of these is caught.
func TestHistoriesThatBreakAPromise(t *testing.T) {
	for name, c := range broken {
		t.Run(name, func(t *testing.T) {
			found := strings.Join(Check(c.story.h), "\n")
			if !strings.Contains(found, c.want) {
				t.Errorf("not caught; want %q, found:\n%s", c.want, found)
			}
		})
	}
}

func TestWritesThatBreakAPromise(t *testing.T) {
	for name, c := range map[string]struct {
		write Write
		want  string
	}{
		"answered with what was there":    {Write{Key: ocKey, Verb: "update", Code: 200, RV: 107}, "was there before"},
		"repeats what another wrote":      {Write{Key: widgetOC, Verb: "patch", Code: 200, RV: 108, Before: 108}, "was there before"},
		"creates an OperatorCondition":    {Write{Key: ocKey, Verb: "create", Code: 409}, "OLM makes and removes"},
		"deletes an OperatorCondition":    {Write{Key: ocKey, Verb: "delete", Code: 403}, "OLM makes and removes"},
		"writes OLM's status":             {Write{Key: ocKey, Verb: "patch", Subresource: "status", Code: 403}, "the status is OLM's"},
		"writes to a foreign namespace":   {Write{Key: Key{"", "ConfigMap", "other", "x"}, Verb: "create", Code: 201}, "not the operator's namespace"},
		"writes to a cluster-wide object": {Write{Key: Key{"", "Namespace", "", "x"}, Verb: "patch", Code: 200}, "not the operator's namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			story := opening().store(widgetOC, emptyOC)
			story.h.Writes = append(story.h.Writes, c.write)
			found := strings.Join(Check(story.h), "\n")
			if !strings.Contains(found, c.want) {
				t.Errorf("not caught; want %q, found:\n%s", c.want, found)
			}
		})
	}
}

var widgetOC = Key{olmGroup, olmKind, "ns", "gate.v1.1.0"}

func TestDisagreementAtTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		story *story
		want  string
	}{
		"nothing recorded": {newStory(), "nothing was recorded"},
		"OLM holds True and the gate says False": {
			opening().write(gateKey, closedGate2), "says Upgradeable=True"},
		"OLM holds False and the gate says True": {
			opening().write(ocKey, closedOC2), "says Upgradeable=False"},
		"a second gate is closed": {
			opening().store(Key{gateGroup, gateKind, "ns", "second"}, closedGate), "all 2 gates together"},
		"an older spec was judged": {
			opening().store(gateKey, strings.Replace(openGate, "generation: 1}", "generation: 2}", 1)), "describes generation 1, not 2"},
	} {
		t.Run(name, func(t *testing.T) {
			if found := Agree(c.story.h); !strings.Contains(found, c.want) {
				t.Errorf("want %q, found %q", c.want, found)
			}
		})
	}
}
