package olm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
	"github.com/upgrade-gate/upgrade-gate/pkg/olm"
)

func TestPublicationOfWhatIsThere(t *testing.T) {
	for name, tc := range map[string]struct {
		spec, status string
		want         gate.Publication
	}{
		"an empty object has no entry": {
			spec: `{}`, want: gate.Publication{},
		},
		"an entry of another case is none, and is not acknowledged": {
			spec:   `{"spec":{"conditions":[{"type":"upgradeable","status":"True","reason":"X","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`,
			status: status(`{"type":"upgradeable","status":"True","observedGeneration":2}`),
			want:   gate.Publication{},
		},
		"an entry that OLM has not copied is not acknowledged": {
			spec: one("True"), want: gate.Publication{Entry: &gate.Announcement{Open: true, Reason: "X", Message: "x"}},
		},
		"an entry that OLM has copied at this generation is acknowledged": {
			spec:   one("True"),
			status: status(`{"type":"Upgradeable","status":"True","observedGeneration":2}`),
			want:   gate.Publication{Entry: &gate.Announcement{Open: true, Reason: "X", Message: "x"}, Acknowledged: true},
		},
		"an older generation is not acknowledged": {
			spec:   one("False"),
			status: status(`{"type":"Upgradeable","status":"False","observedGeneration":1}`),
			want:   gate.Publication{Entry: &gate.Announcement{Reason: "X", Message: "x"}},
		},
		"a newer generation is not acknowledged": {
			spec:   one("False"),
			status: status(`{"type":"Upgradeable","status":"False","observedGeneration":3}`),
			want:   gate.Publication{Entry: &gate.Announcement{Reason: "X", Message: "x"}},
		},
		"no generation is not acknowledged": {
			spec:   one("False"),
			status: status(`{"type":"Upgradeable","status":"False"}`),
			want:   gate.Publication{Entry: &gate.Announcement{Reason: "X", Message: "x"}},
		},
		"another status is not acknowledged": {
			spec:   one("False"),
			status: status(`{"type":"Upgradeable","status":"True","observedGeneration":2}`),
			want:   gate.Publication{Entry: &gate.Announcement{Reason: "X", Message: "x"}},
		},
		"two in status are not acknowledged unless they agree": {
			spec: one("False"),
			status: status(`{"type":"Upgradeable","status":"False","observedGeneration":2}`,
				`{"type":"Upgradeable","status":"True","observedGeneration":2}`),
			want: gate.Publication{Entry: &gate.Announcement{Reason: "X", Message: "x"}},
		},
		"two in spec are no entry": {
			spec:   entries(upgradeable("False", "X", "x"), upgradeable("False", "X", "x")),
			status: status(`{"type":"Upgradeable","status":"False","observedGeneration":2}`),
			want:   gate.Publication{},
		},
		"Unknown is no entry and is never acknowledged": {
			spec:   one("Unknown"),
			status: status(`{"type":"Upgradeable","status":"Unknown","observedGeneration":2}`),
			want:   gate.Publication{},
		},
		"of two overrides the first is shown": {
			spec: `{"spec":{"overrides":[{"type":"Other","status":"False","reason":"X","message":""},
				{"type":"Upgradeable","status":"True","reason":"X","message":""},
				{"type":"Upgradeable","status":"False","reason":"X","message":""}]}}`,
			want: gate.Publication{Override: "True"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.patch(tc.spec)
			if tc.status != "" {
				f.patchStatus(tc.status)
			}
			tc.want.Mode, tc.want.Name = v1alpha1.OLMModeV0, conditionName
			tc.want.ResourceVersion = f.raw().GetResourceVersion()
			held, err := f.publisher(nil).Refresh(t.Context())
			require.NoError(t, err)
			require.Equal(t, tc.want, held)
		})
	}
}

func one(status string) string {
	return `{"spec":{"conditions":[` + upgradeable(status, "X", "x") + `]}}`
}

func status(conditions ...string) string {
	for i, c := range conditions {
		conditions[i] = strings.TrimSuffix(c, "}") + `,"reason":"X","message":"x","lastTransitionTime":"2026-01-02T03:04:05Z"}`
	}
	return `{"status":{"conditions":[` + strings.Join(conditions, ",") + `]}}`
}

func TestProblemsOfReading(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil           func(f *fixture)
		problem, detail string
	}{
		"an object that does not exist": {
			spoil:   func(f *fixture) { require.NoError(f, f.admin.Delete(f.Context(), f.object())) },
			problem: "OperatorConditionNotFound", detail: "OperatorCondition NS/gate.v1.0.0 does not exist",
		},
		"an API server that does not answer": {
			spoil: func(f *fixture) {
				f.operator.atGet(func(ctx context.Context, _ func() error) error { <-ctx.Done(); return ctx.Err() })
			},
			problem: "PublishFailed", detail: "OperatorCondition NS/gate.v1.0.0: no answer in time",
		},
		"an API server that cannot be reached": {
			spoil: func(f *fixture) {
				f.operator.atGet(func(context.Context, func() error) error { return errors.New("refused") })
			},
			problem: "PublishFailed", detail: "OperatorCondition NS/gate.v1.0.0: the API server cannot be reached",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.patch(one("True"))
			p := f.publisher(func(c *olm.Config) { c.RequestTimeout = 200 * time.Millisecond })
			_, err := p.Refresh(t.Context())
			require.NoError(t, err)
			tc.spoil(f)
			held, err := p.Refresh(t.Context())
			require.Error(t, err)
			require.Equal(t, gate.Publication{Mode: "OLMv0", Name: conditionName, Problem: tc.problem,
				Detail: strings.ReplaceAll(tc.detail, "NS", f.namespace)}, held)
		})
	}
}

func TestACallerWhoGivesUpLearnsNothing(t *testing.T) {
	f := newFixture(t)
	f.patch(one("True"))
	p := f.publisher(nil)
	before, err := p.Refresh(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	f.operator.atGet(func(ctx context.Context, _ func() error) error {
		cancel()
		return ctx.Err()
	})
	held, err := p.Refresh(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, before, held)
	held, err = p.Refresh(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, before, held)
}

func TestRefusal(t *testing.T) {
	f := newFixture(t)
	p := f.publisher(nil)
	refusal := func() []string {
		held, err := p.Refresh(t.Context())
		require.NoError(t, err)
		return []string{held.Refusal, held.RefusalDetail}
	}
	none := []string{"", ""}
	f.operator.atPatch(func(context.Context, string, func() error) error { return forbidden })
	require.Error(t, p.Close(t.Context(), closed("Held", "h")))
	denied := []string{"Forbidden", f.expand("access to OperatorCondition NS/gate.v1.0.0 is denied")}
	require.Equal(t, denied, refusal(), "a read does not make it good")
	f.patch(one("True"))
	require.Equal(t, denied, refusal(), "nor does what somebody else says")
	f.operator.atPatch(nil)
	require.NoError(t, p.Close(t.Context(), closed("Held", "h")))
	require.Equal(t, none, refusal(), "a write does")
	f.operator.atPatch(func(_ context.Context, _ string, patch func() error) error {
		return errors.Join(patch(), context.DeadlineExceeded)
	})
	require.Error(t, p.Close(t.Context(), closed("Held", "again")))
	require.Equal(t, "PublishFailed", p.Publication().Refusal)
	require.Equal(t, none, refusal(), "and so does a write that got no answer, once it is seen")
	held := p.Publication()
	f.operator.atPatch(func(context.Context, string, func() error) error { return forbidden })
	require.Error(t, p.Open(t.Context(), opened("m"), held.ResourceVersion))
	require.Equal(t, denied, refusal(), "an opening that is refused stays refused")
	require.NoError(t, p.Close(t.Context(), closed("Held", "again")))
	require.Equal(t, none, refusal(), "until it is not wanted any more")
}

func TestAStandbyWhoseFirstWriteIsRefusedIsContentWithAnothers(t *testing.T) {
	f := newFixture(t)
	f.operator.atPatch(func(context.Context, string, func() error) error { return forbidden })
	w := f.watch(nil)
	f.idle(w)
	require.Equal(t, "Forbidden", w.Publication().Refusal)
	f.patch(one("False"))
	f.rounds(w, 1)
	require.Empty(t, w.Publication().Refusal)
}
