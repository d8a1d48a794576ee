// Package probetest is the contract that every probe over one Kubernetes object
// has to keep, as a test suite.
package probetest

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/probe"
)

// Namespace is the namespace of the gate for which Run prepares.
const Namespace = "gate-namespace"

// Subject is what Run examines.
type Subject struct {
	Probe     probe.Probe
	Component v1alpha1.Component
	// Ready returns a new decoded object with which the component is ready: its
	// metadata.generation and status.observedGeneration are 5, and its
	// conditions are under status.conditions.
	Ready func() map[string]any
}

// Run examines the subject. It judges observations with component.Assess, so
// that what counts is whether a gate could open.
func Run(t *testing.T, s Subject) {
	t.Helper()
	t.Run("the ready object is ready", func(t *testing.T) {
		a := assess(t, s, found(s.Ready()))
		require.Equal(t, v1alpha1.ReasonReady, a.Reason, a.Message())
	})
	t.Run("what could not be read is not ready", func(t *testing.T) { runAccess(t, s) })
	t.Run("what proves nothing is not ready", func(t *testing.T) { runObjects(t, s) })
	t.Run("a cancelled read is not ready and is not remembered", func(t *testing.T) { runCancelled(t, s) })
	t.Run("observing changes nothing and repeats itself", func(t *testing.T) { runRepeated(t, s) })
	t.Run("observing reads the named targets only", func(t *testing.T) { runTargets(t, s) })
	t.Run("a snapshot that changed is looked at anew", func(t *testing.T) { runChanged(t, s) })
}

// Reader answers every read with what Answer returns and records the targets.
type Reader struct {
	Answer func(ctx context.Context, target component.Target) component.Reading

	mu    sync.Mutex
	asked []component.Target
}

// Read implements probe.Reader.
func (r *Reader) Read(ctx context.Context, target component.Target) component.Reading {
	r.mu.Lock()
	r.asked = append(r.asked, target)
	r.mu.Unlock()
	return r.Answer(ctx, target)
}

// Asked returns the targets of all reads so far.
func (r *Reader) Asked() []component.Target {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]component.Target(nil), r.asked...)
}

// found answers with one snapshot of the object for each wholeness.
func found(object map[string]any) *Reader {
	whole, part := component.Decode(object, true), component.Decode(object, false)
	return &Reader{Answer: func(_ context.Context, target component.Target) component.Reading {
		if target.Whole {
			return component.Reading{Access: component.AccessFound, Snapshot: whole}
		}
		return component.Reading{Access: component.AccessFound, Snapshot: part}
	}}
}

func always(reading component.Reading) *Reader {
	return &Reader{Answer: func(context.Context, component.Target) component.Reading { return reading }}
}

func prepare(t *testing.T, s Subject) probe.Prepared {
	t.Helper()
	require.True(t, s.Probe.Handles(s.Component))
	p, errs := s.Probe.Prepare(s.Component, field.NewPath("spec", "components").Index(0), Namespace)
	require.Empty(t, errs)
	require.NotNil(t, p)
	return p
}

func assess(t *testing.T, s Subject, r probe.Reader) component.Assessment {
	t.Helper()
	return component.Assess(s.Component, prepare(t, s).Observe(t.Context(), r))
}

func runAccess(t *testing.T, s Subject) {
	for name, c := range map[string]struct {
		access component.Access
		want   string
	}{
		"nobody has read it yet":                {component.AccessUnread, v1alpha1.ReasonInitializing},
		"reading is forbidden":                  {component.AccessForbidden, v1alpha1.ReasonForbidden},
		"reading failed":                        {component.AccessFailed, v1alpha1.ReasonProbeFailed},
		"no answer came in time":                {component.AccessTimedOut, v1alpha1.ReasonProbeTimedOut},
		"the reference cannot be right":         {component.AccessMisplaced, v1alpha1.ReasonInvalidSpec},
		"the kind is not installed":             {component.AccessKindNotInstalled, v1alpha1.ReasonKindNotInstalled},
		"the object does not exist":             {component.AccessAbsent, v1alpha1.ReasonNotFound},
		"the object was found without snapshot": {component.AccessFound, v1alpha1.ReasonProbeFailed},
		"the outcome has no meaning":            {component.Access(99), v1alpha1.ReasonInitializing},
	} {
		t.Run(name, func(t *testing.T) {
			reading := component.Reading{Access: c.access, Detail: "a detail"}
			o := prepare(t, s).Observe(t.Context(), always(reading))
			require.Equal(t, reading, o.Reading)
			require.Equal(t, c.want, component.Assess(s.Component, o).Reason)
		})
	}
}

func runObjects(t *testing.T, s Subject) {
	set := func(value any, fields ...string) func(map[string]any) {
		return func(object map[string]any) { put(object, value, fields...) }
	}
	const missing, stale, ahead = v1alpha1.ReasonObservedGenerationMissing, v1alpha1.ReasonObservedGenerationStale, v1alpha1.ReasonObservedGenerationAhead
	for name, c := range map[string]struct {
		change func(map[string]any)
		want   string
	}{
		"the object is being deleted":               {set("2026-01-02T03:04:05Z", "metadata", "deletionTimestamp"), v1alpha1.ReasonTerminating},
		"there is no status":                        {set(nil, "status"), missing},
		"the status is empty":                       {set(map[string]any{}, "status"), missing},
		"the observed generation is 0":              {set(int64(0), "status", "observedGeneration"), missing},
		"the observed generation is older":          {set(int64(4), "status", "observedGeneration"), stale},
		"the observed generation is newer":          {set(int64(6), "status", "observedGeneration"), ahead},
		"the observed generation is text":           {set("5", "status", "observedGeneration"), missing},
		"the observed generation is a fraction":     {set(5.5, "status", "observedGeneration"), missing},
		"the observed generation is negative":       {set(int64(-5), "status", "observedGeneration"), missing},
		"the observed generation is a list":         {set([]any{int64(5)}, "status", "observedGeneration"), missing},
		"the object has no generation":              {set(nil, "metadata", "generation"), ahead},
		"the object's generation is text":           {set("5", "metadata", "generation"), ahead},
		"the object was changed and not reconciled": {set(int64(6), "metadata", "generation"), stale},
		"the metadata are text":                     {set("metadata", "metadata"), ahead},
		"the status is text":                        {set("Ready", "status"), missing},
		"the status is a list":                      {set([]any{"Ready"}, "status"), missing},
		"the conditions are missing":                {set(nil, "status", "conditions"), v1alpha1.ReasonConditionMissing},
		"the conditions are empty":                  {set([]any{}, "status", "conditions"), v1alpha1.ReasonConditionMissing},
		"the conditions are a map":                  {set(map[string]any{"Ready": "True"}, "status", "conditions"), v1alpha1.ReasonConditionMissing},
		"the conditions are text":                   {set([]any{"Ready", nil, int64(1)}, "status", "conditions"), v1alpha1.ReasonConditionMissing},
	} {
		t.Run(name, func(t *testing.T) {
			object := s.Ready()
			c.change(object)
			a := assess(t, s, found(object))
			require.Equal(t, c.want, a.Reason, a.Message())
		})
	}
}

// put sets a field of a decoded object; a nil value removes it.
func put(object map[string]any, value any, fields ...string) {
	last := len(fields) - 1
	for _, name := range fields[:last] {
		object, _ = object[name].(map[string]any)
	}
	if value == nil {
		delete(object, fields[last])
		return
	}
	object[fields[last]] = value
}

func runCancelled(t *testing.T, s Subject) {
	p := prepare(t, s)
	answer := found(s.Ready())
	live := &Reader{Answer: func(ctx context.Context, target component.Target) component.Reading {
		if ctx.Err() != nil {
			return component.Reading{Access: component.AccessFailed, Detail: "the read was cancelled"}
		}
		return answer.Read(ctx, target)
	}}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, v1alpha1.ReasonProbeFailed, component.Assess(s.Component, p.Observe(cancelled, live)).Reason)

	// From memory a read succeeds even then; what has to be computed may not.
	reason := component.Assess(s.Component, p.Observe(cancelled, answer)).Reason
	require.Contains(t, []string{v1alpha1.ReasonReady, v1alpha1.ReasonExpressionFailed}, reason)
	require.Equal(t, v1alpha1.ReasonReady, component.Assess(s.Component, p.Observe(t.Context(), answer)).Reason)
}

func runRepeated(t *testing.T, s Subject) {
	p := prepare(t, s)
	object := s.Ready()
	before := runtime.DeepCopyJSON(object)
	r := found(object)
	first := p.Observe(t.Context(), r)
	var group sync.WaitGroup
	again := make([]component.Observation, 8)
	for i := range again {
		group.Go(func() { again[i] = p.Observe(t.Context(), r) })
	}
	group.Wait()
	for _, o := range again {
		require.Equal(t, first, o)
		require.Same(t, first.Snapshot, o.Snapshot)
	}
	require.Equal(t, before, object)
}

func runTargets(t *testing.T, s Subject) {
	p := prepare(t, s)
	targets := p.Targets()
	require.NotEmpty(t, targets)
	require.Equal(t, targets, p.Targets())
	for _, target := range targets {
		require.Equal(t, Namespace, target.DefaultNamespace)
		require.NotEmpty(t, target.Name)
		require.NotEmpty(t, target.GVK.Version)
		require.NotEmpty(t, target.GVK.Kind)
	}
	r := found(s.Ready())
	p.Observe(t.Context(), r)
	require.NotEmpty(t, r.Asked())
	for _, asked := range r.Asked() {
		require.Contains(t, targets, asked)
	}
}

func runChanged(t *testing.T, s Subject) {
	p := prepare(t, s)
	require.Equal(t, v1alpha1.ReasonReady, component.Assess(s.Component, p.Observe(t.Context(), found(s.Ready()))).Reason)
	stale := s.Ready()
	put(stale, int64(4), "status", "observedGeneration")
	require.Equal(t, v1alpha1.ReasonObservedGenerationStale, component.Assess(s.Component, p.Observe(t.Context(), found(stale))).Reason)
	require.Equal(t, v1alpha1.ReasonReady, component.Assess(s.Component, p.Observe(t.Context(), found(s.Ready()))).Reason)
}
