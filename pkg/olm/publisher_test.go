package olm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
	"github.com/upgrade-gate/upgrade-gate/pkg/olm"
)

// Entries of others with everything that a typed round trip would change: a time
// with an offset and a fraction, a time in small letters, and a generation of 0.
const foreign = `
	{"type":"Storage","status":"Unknown","reason":"A","message":"\u0000 ☃","lastTransitionTime":"2026-01-02T03:04:05.678+02:00","observedGeneration":0},
	{"type":"upgradeable","status":"True","reason":"B","message":"","lastTransitionTime":"2026-01-02t03:04:05z"}`

func entries(upgradeable ...string) string {
	return `{"spec":{"conditions":[` + strings.Join(append(upgradeable, foreign), ",") + `]}}`
}

func upgradeable(status, reason, message string) string {
	return fmt.Sprintf(`{"type":"Upgradeable","status":%q,"reason":%q,"message":%q,"lastTransitionTime":"2026-01-02T03:04:05Z"}`,
		status, reason, message)
}

func TestCloseWrites(t *testing.T) {
	for name, tc := range map[string]struct {
		before string
		a      gate.Announcement
		want   []string
	}{
		"into an empty object": {
			before: `{}`,
			a:      closed("ComponentsNotReady", "1 of 2"),
			want:   []string{"Upgradeable=False ComponentsNotReady: 1 of 2"},
		},
		"over an open entry, beside the entries of others": {
			before: entries(upgradeable("True", "AllComponentsReady", "")),
			a:      closed("ComponentsNotReady", "1 of 2"),
			want: []string{"Upgradeable=False ComponentsNotReady: 1 of 2",
				"Storage=Unknown A: \x00 ☃", "upgradeable=True B: "},
		},
		"one entry where there were three": {
			before: entries(upgradeable("True", "X", ""), upgradeable("False", "Y", ""), upgradeable("True", "Z", "")),
			a:      closed("Held", "h"),
			want:   []string{"Upgradeable=False Held: h", "Storage=Unknown A: \x00 ☃", "upgradeable=True B: "},
		},
		"one entry where it stood twice already": {
			before: entries(upgradeable("False", "Held", "h"), upgradeable("False", "Held", "h")),
			a:      closed("Held", "h"),
			want:   []string{"Upgradeable=False Held: h", "Storage=Unknown A: \x00 ☃", "upgradeable=True B: "},
		},
		"over Unknown, which OLM reads as consent": {
			before: entries(upgradeable("Unknown", "Held", "h")),
			a:      closed("Held", "h"),
			want:   []string{"Upgradeable=False Held: h", "Storage=Unknown A: \x00 ☃", "upgradeable=True B: "},
		},
		"behind an entry whose type has another case": {
			before: entries(),
			a:      closed("Held", "h"),
			want:   []string{"Storage=Unknown A: \x00 ☃", "upgradeable=True B: ", "Upgradeable=False Held: h"},
		},
		"False even for an announcement that says open": {
			before: `{}`,
			a:      opened("m"),
			want:   []string{"Upgradeable=False AllComponentsReady: m"},
		},
		"Initializing where there is no reason": {
			before: `{}`,
			a:      closed("", "m"),
			want:   []string{"Upgradeable=False Initializing: m"},
		},
		"Initializing where OLM would reject the reason": {
			before: `{}`,
			a:      closed("components-not-ready", "m"),
			want:   []string{"Upgradeable=False Initializing: m"},
		},
		"Initializing where the reason is too long": {
			before: `{}`,
			a:      closed(strings.Repeat("x", 1025), "m"),
			want:   []string{"Upgradeable=False Initializing: m"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.patch(tc.before)
			require.NoError(t, f.publisher(nil).Close(t.Context(), tc.a))
			require.Equal(t, tc.want, f.said())
		})
	}
}

func TestWritingKeepsWhatIsNotOurs(t *testing.T) {
	f := newFixture(t)
	f.patch(`{"spec":{"overrides":[{"type":"Upgradeable","status":"False","reason":"Freeze","message":"m"}]}}`)
	f.patch(entries(upgradeable("True", "X", "")))
	before, _, err := unstructured.NestedSlice(f.raw().Object, "spec", "conditions")
	require.NoError(t, err)
	p := f.publisher(nil)
	require.NoError(t, p.Close(t.Context(), closed("Held", "h")))
	spec := f.raw().Object["spec"].(map[string]any)
	after := spec["conditions"].([]any)
	require.Len(t, after, 3)
	require.Equal(t, before[1:], after[1:])
	require.Equal(t, map[string]any{"type": "Storage", "status": "Unknown", "reason": "A", "message": "\x00 ☃",
		"lastTransitionTime": "2026-01-02T03:04:05.678+02:00", "observedGeneration": int64(0)}, after[1])
	require.Equal(t, []any{map[string]any{"type": "Upgradeable", "status": "False", "reason": "Freeze", "message": "m"}},
		spec["overrides"])
	require.Equal(t, []any{"gate"}, spec["serviceAccounts"])
	require.Equal(t, "False", p.Publication().Override)
}

func TestTransitionTime(t *testing.T) {
	f := newFixture(t)
	clk := clocktesting.NewFakeClock(time.Date(2026, 5, 1, 12, 0, 0, 999, time.UTC))
	p := f.publisher(func(c *olm.Config) { c.Clock = clk })
	since := func() string {
		list := f.raw().Object["spec"].(map[string]any)["conditions"].([]any)
		return list[0].(map[string]any)["lastTransitionTime"].(string)
	}
	require.NoError(t, p.Close(t.Context(), closed("Held", "one")))
	require.Equal(t, "2026-05-01T12:00:00Z", since())
	clk.Step(time.Hour)
	require.NoError(t, p.Close(t.Context(), closed("Held", "two")))
	require.Equal(t, "2026-05-01T12:00:00Z", since(), "the status has not changed")
	held, err := p.Refresh(t.Context())
	require.NoError(t, err)
	require.NoError(t, p.Open(t.Context(), opened("m"), held.ResourceVersion))
	require.Equal(t, "2026-05-01T13:00:00Z", since())
}

func TestAnEqualWriteIsSkipped(t *testing.T) {
	f := newFixture(t)
	p := f.publisher(nil)
	require.NoError(t, p.Close(t.Context(), closed("Held", "h")))
	version := f.raw().GetResourceVersion()
	f.requests.clear()
	require.NoError(t, p.Close(t.Context(), closed("Held", "h")))
	require.Empty(t, f.requests.all(), "what was last read is known")
	require.NoError(t, f.publisher(nil).Close(t.Context(), closed("Held", "h")))
	held, err := p.Refresh(t.Context())
	require.NoError(t, err)
	require.NoError(t, p.Open(t.Context(), opened("m"), held.ResourceVersion))
	held, err = p.Refresh(t.Context())
	require.NoError(t, err)
	require.NoError(t, p.Open(t.Context(), opened("m"), held.ResourceVersion))
	require.Equal(t, 2, f.operator.writes())
	require.NotEqual(t, version, f.raw().GetResourceVersion())
}

func TestClosingTakesOneRequest(t *testing.T) {
	f := newFixture(t)
	p := f.publisher(nil)
	_, err := p.Refresh(t.Context())
	require.NoError(t, err)
	f.requests.clear()
	require.NoError(t, p.Close(t.Context(), closed("Held", "h")))
	require.Equal(t, []string{"PATCH /apis/operators.coreos.com/v2/namespaces/" + f.namespace +
		"/operatorconditions/gate.v1.0.0"}, f.requests.all())
}

func TestAHostileMessageIsCutAndAccepted(t *testing.T) {
	for name, message := range map[string]string{
		"of characters of four bytes": strings.Repeat("𝕏", 40000),
		"of control characters":       strings.Repeat("\x00\x1b[31m\u202e\u2028\"\\", 5000),
		"of invalid UTF-8":            strings.Repeat("a\xff\xc3(", 10000),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			p := f.publisher(nil)
			require.NoError(t, p.Close(t.Context(), closed("Held", message)))
			entry := p.Publication().Entry
			require.NotNil(t, entry)
			require.Len(t, []rune(entry.Message), 2000)
			version := f.raw().GetResourceVersion()
			require.NoError(t, p.Close(t.Context(), closed("Held", message)))
			require.Equal(t, version, f.raw().GetResourceVersion(), "what was cut is still equal")
			held, err := p.Refresh(t.Context())
			require.NoError(t, err)
			require.NoError(t, p.Open(t.Context(), opened(message), held.ResourceVersion))
			require.Len(t, []rune(p.Publication().Entry.Message), 2000)
		})
	}
}

func TestOpen(t *testing.T) {
	f := newFixture(t)
	p := f.publisher(nil)
	held, err := p.Refresh(t.Context())
	require.NoError(t, err)
	require.Equal(t, f.raw().GetResourceVersion(), held.ResourceVersion)
	require.NoError(t, p.Open(t.Context(), opened("2 of 2"), held.ResourceVersion))
	require.Equal(t, []string{"Upgradeable=True AllComponentsReady: 2 of 2"}, f.said())
	require.Equal(t, &gate.Announcement{Open: true, Reason: "AllComponentsReady", Message: "2 of 2"}, p.Publication().Entry)
}

func TestOpenIsRefused(t *testing.T) {
	current := func(p *olm.Publisher) string { return p.Publication().ResourceVersion }
	for name, tc := range map[string]struct {
		a        gate.Announcement
		version  func(p *olm.Publisher) string
		meddle   bool
		conflict bool
	}{
		"for a closed announcement": {
			a: closed("Held", "h"), version: current,
		},
		"for a reason that OLM would reject": {
			a: gate.Announcement{Open: true, Reason: "all-ready"}, version: current,
		},
		"for no reason": {
			a: gate.Announcement{Open: true}, version: current,
		},
		"without a resource version": {
			a: opened("m"), version: func(*olm.Publisher) string { return "" },
		},
		"with a conflict when the object was changed after Refresh": {
			a: opened("m"), version: current, meddle: true, conflict: true,
		},
		"with a conflict for a resource version that is not the one last read": {
			a: opened("m"), version: func(*olm.Publisher) string { return "1" }, conflict: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.patch(entries(upgradeable("False", "X", "x")))
			p := f.publisher(nil)
			_, err := p.Refresh(t.Context())
			require.NoError(t, err)
			if tc.meddle {
				f.patch(`{"metadata":{"labels":{"a":"b"}}}`)
			}
			err = p.Open(t.Context(), tc.a, tc.version(p))
			require.Error(t, err)
			require.Equal(t, tc.conflict, apierrors.IsConflict(err), "%v", err)
			require.Equal(t, "Upgradeable=False X: x", f.said()[0])
			require.LessOrEqual(t, f.operator.writes(), 1, "it never retries")
		})
	}
}

func TestAWriteBetweenRefreshAndOpenByThisProcessIsAConflict(t *testing.T) {
	f := newFixture(t)
	p := f.publisher(nil)
	held, err := p.Refresh(t.Context())
	require.NoError(t, err)
	require.NoError(t, p.Close(t.Context(), closed("Held", "h")))
	err = p.Open(t.Context(), opened("m"), held.ResourceVersion)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.Equal(t, []string{"Upgradeable=False Held: h"}, f.said())
}

func TestCloseUnderFaults(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "operatorconditions"}, conditionName, errors.New("injected"))
	for name, tc := range map[string]struct {
		// fault is what the first times patches meet instead of the API server.
		times  int
		fault  func(ctx context.Context, patch func() error) error
		writes int
		fails  bool
	}{
		"it overcomes one conflict": {
			times: 1, fault: func(context.Context, func() error) error { return conflict }, writes: 2,
		},
		"it overcomes five conflicts": {
			times: 5, fault: func(context.Context, func() error) error { return conflict }, writes: 6,
		},
		"it gives up, with a conflict, after eight": {
			times: 100, fault: func(context.Context, func() error) error { return conflict }, writes: 8, fails: true,
		},
		"it reports an error before the write": {
			times: 1, fault: func(context.Context, func() error) error { return errors.New("injected") }, writes: 1, fails: true,
		},
		"it reports an error after the write": {
			times: 1, fault: func(_ context.Context, patch func() error) error { return errors.Join(patch(), errors.New("injected")) },
			writes: 1, fails: true,
		},
		"it does not wait for an answer that never comes": {
			times: 1, fault: func(ctx context.Context, _ func() error) error { <-ctx.Done(); return ctx.Err() }, writes: 1, fails: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.patch(entries(upgradeable("True", "X", "x")))
			left := tc.times
			f.operator.atPatch(func(ctx context.Context, _ string, patch func() error) error {
				if left--; left >= 0 {
					return tc.fault(ctx, patch)
				}
				return patch()
			})
			p := f.publisher(func(c *olm.Config) { c.RequestTimeout = time.Second })
			err := p.Close(t.Context(), closed("Held", "h"))
			require.Equal(t, tc.fails, err != nil, "%v", err)
			require.Equal(t, tc.writes, f.operator.writes())
			f.operator.atPatch(nil)
			require.NoError(t, p.Close(t.Context(), closed("Held", "h")), "a second attempt succeeds")
			require.Equal(t, "Upgradeable=False Held: h", f.said()[0])
		})
	}
}

func TestConflictsAreRetriedEverMoreSlowly(t *testing.T) {
	f := newFixture(t)
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	clk := clocktesting.NewFakeClock(start)
	var at []time.Duration
	f.operator.atPatch(func(context.Context, string, func() error) error {
		at = append(at, clk.Since(start)/time.Millisecond)
		return apierrors.NewConflict(schema.GroupResource{}, conditionName, errors.New("injected"))
	})
	p := f.publisher(func(c *olm.Config) { c.Clock = clk })
	done := make(chan error, 1)
	go func() { done <- p.Close(t.Context(), closed("Held", "h")) }()
	for _, delay := range []time.Duration{10, 20, 40, 80, 160, 320} {
		f.eventually(clk.HasWaiters, "it waits")
		clk.Step(delay * time.Millisecond)
	}
	require.True(t, apierrors.IsConflict(<-done))
	require.Equal(t, []time.Duration{0, 0, 10, 30, 70, 150, 310, 630}, at)
}

// Between the opening that got no answer and the closing, OLM may hold either.
func TestClosingOvertakesAnOpeningWithoutAnAnswer(t *testing.T) {
	f := newFixture(t)
	p := f.publisher(nil)
	require.NoError(t, p.Close(t.Context(), closed("Held", "h")))
	held, err := p.Refresh(t.Context())
	require.NoError(t, err)
	var late func() error
	f.operator.atPatch(func(_ context.Context, _ string, patch func() error) error {
		late = patch
		return context.DeadlineExceeded
	})
	require.Error(t, p.Open(t.Context(), opened("m"), held.ResourceVersion))
	f.operator.atPatch(nil)
	require.NoError(t, p.Close(t.Context(), closed("Held", "h")))
	require.NotEqual(t, held.ResourceVersion, f.raw().GetResourceVersion(),
		"equal or not, it must be written, to move the resource version")
	require.Error(t, late())
	require.Equal(t, []string{"Upgradeable=False Held: h"}, f.said())
}

func TestAnOpeningThatLandedWithoutAnAnswerIsClosedByClose(t *testing.T) {
	f := newFixture(t)
	p := f.publisher(nil)
	require.NoError(t, p.Close(t.Context(), closed("Held", "h")))
	held, err := p.Refresh(t.Context())
	require.NoError(t, err)
	f.operator.atPatch(func(_ context.Context, _ string, patch func() error) error {
		return errors.Join(patch(), context.DeadlineExceeded)
	})
	require.Error(t, p.Open(t.Context(), opened("m"), held.ResourceVersion))
	f.operator.atPatch(nil)
	require.Equal(t, []string{"Upgradeable=True AllComponentsReady: m"}, f.said())
	require.NoError(t, p.Close(t.Context(), closed("Held", "h")), "equal to what was read before the opening")
	require.Equal(t, []string{"Upgradeable=False Held: h"}, f.said())
}

func TestWithoutOLMv0NothingIsReadOrWritten(t *testing.T) {
	for _, mode := range []v1alpha1.OLMMode{v1alpha1.OLMModeV1, v1alpha1.OLMModeNone} {
		t.Run(string(mode), func(t *testing.T) {
			p, err := olm.NewPublisher(olm.Config{Mode: mode, Name: "ignored"})
			require.NoError(t, err)
			require.NoError(t, p.Close(t.Context(), gate.Announcement{}))
			require.NoError(t, p.Open(t.Context(), gate.Announcement{}, ""))
			held, err := p.Refresh(t.Context())
			require.NoError(t, err)
			require.Equal(t, gate.Publication{Mode: mode}, held)
			require.Equal(t, held, p.Publication())
		})
	}
}

func TestAPublisherNeedsItsParts(t *testing.T) {
	for name, c := range map[string]olm.Config{
		"a mode":                      {Client: &faultyClient{}, Namespace: "n", Name: "x"},
		"a mode that exists":          {Mode: "OLMv2", Client: &faultyClient{}, Namespace: "n", Name: "x"},
		"a client under OLM v0":       {Mode: v1alpha1.OLMModeV0, Namespace: "n", Name: "x"},
		"a namespace under OLM v0":    {Mode: v1alpha1.OLMModeV0, Client: &faultyClient{}, Name: "x"},
		"a name, as well, under OLM ": {Mode: v1alpha1.OLMModeV0, Client: &faultyClient{}, Namespace: "n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := olm.NewPublisher(c)
			require.Error(t, err)
		})
	}
}
