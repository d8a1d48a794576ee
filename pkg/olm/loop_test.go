package olm_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
	"github.com/upgrade-gate/upgrade-gate/pkg/olm"
)

// watched is a publisher whose loop runs on a fake clock, and what it reported.
type watched struct {
	*olm.Publisher
	clock   *clocktesting.FakeClock
	changed atomic.Int64
	mu      sync.Mutex
	foreign []gate.Announcement
	stop    func()
}

func (f *fixture) watch(change func(*olm.Config)) *watched {
	f.Helper()
	w := &watched{clock: clocktesting.NewFakeClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))}
	w.Publisher = f.publisher(func(c *olm.Config) {
		c.Clock = w.clock
		c.Changed = func() { w.changed.Add(1) }
		c.ForeignWrite = func(found gate.Announcement) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.foreign = append(w.foreign, found)
		}
		if change != nil {
			change(c)
		}
	})
	w.stop = f.start(w.Publisher)
	return w
}

func (w *watched) foreignWrites() []gate.Announcement {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.foreign)
}

// idle waits until the loop sleeps.
func (f *fixture) idle(w *watched) {
	f.Helper()
	f.eventually(w.clock.HasWaiters, "the loop sleeps")
}

// rounds lets the loop look n times more, however long it sleeps.
func (f *fixture) rounds(w *watched, n int) {
	f.Helper()
	for range n {
		f.idle(w)
		w.clock.Step(10 * time.Second)
	}
	f.idle(w)
}

func (f *fixture) says(want string) func() bool {
	return func() bool { return slices.Equal(f.said(), []string{want}) }
}

func (f *fixture) open(p *olm.Publisher, message string) {
	f.Helper()
	held, err := p.Refresh(f.Context())
	require.NoError(f, err)
	require.NoError(f, p.Open(f.Context(), opened(message), held.ResourceVersion))
}

func TestStartSaysInitializingWhenNothingIsSaid(t *testing.T) {
	f := newFixture(t)
	w := f.watch(nil)
	f.idle(w)
	require.Equal(t, []string{f.initially()}, f.said())
	require.Equal(t, int64(1), w.changed.Load())
	require.False(t, w.NeedLeaderElection())
}

func TestStartLeavesAnEntryThatIsThere(t *testing.T) {
	for name, entry := range map[string]string{
		"closed":  one("False"),
		"open":    one("True"),
		"unknown": one("Unknown"),
		"twice":   entries(upgradeable("True", "X", "x"), upgradeable("False", "X", "x")),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.patch(entry)
			version := f.raw().GetResourceVersion()
			w := f.watch(nil)
			f.rounds(w, 3)
			w.stop()
			require.Equal(t, version, f.raw().GetResourceVersion())
			require.Zero(t, f.operator.writes())
			require.Empty(t, w.foreignWrites())
		})
	}
}

func TestAStandbyLeavesWhatOthersWrite(t *testing.T) {
	f := newFixture(t)
	w := f.watch(nil)
	f.idle(w)
	f.patch(one("True"))
	f.rounds(w, 2)
	require.Equal(t, []string{"Upgradeable=True X: x"}, f.said())
	require.Empty(t, w.foreignWrites())
	require.Equal(t, &gate.Announcement{Open: true, Reason: "X", Message: "x"}, w.Publication().Entry)
	require.Equal(t, int64(2), w.changed.Load())
}

func TestTheFirstWriteIsRetriedUntilItSucceeds(t *testing.T) {
	for name, fault := range map[string]func(ctx context.Context, patch func() error) error{
		"after an error":           func(context.Context, func() error) error { return errors.New("injected") },
		"after an error that lied": func(_ context.Context, patch func() error) error { return errors.Join(patch(), errors.New("injected")) },
		"after no answer":          func(ctx context.Context, _ func() error) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			left := 3
			f.operator.atPatch(func(ctx context.Context, _ string, patch func() error) error {
				if left--; left >= 0 {
					return fault(ctx, patch)
				}
				return patch()
			})
			w := f.watch(func(c *olm.Config) { c.RequestTimeout = 500 * time.Millisecond })
			f.advance(w.clock, f.says(f.initially()), "the first write succeeds")
			f.rounds(w, 1)
			require.Equal(t, "False", string(w.Publication().Entry.Status()))
		})
	}
}

func TestTheFirstWriteNeverOverwrites(t *testing.T) {
	f := newFixture(t)
	f.operator.atPatch(func(_ context.Context, _ string, patch func() error) error {
		f.operator.atPatch(nil)
		f.patch(one("True"))
		return patch()
	})
	w := f.watch(nil)
	f.rounds(w, 3)
	require.Equal(t, []string{"Upgradeable=True X: x"}, f.said(), "another replica was faster")
}

func TestAFrozenProcessSaysNothingAtStart(t *testing.T) {
	f := newFixture(t)
	w := f.watch(func(c *olm.Config) { c.Owner = &ownership{frozen: true} })
	f.rounds(w, 2)
	require.Empty(t, f.said())
	require.True(t, w.Publication().Frozen)
	require.Zero(t, f.operator.writes())
}

func TestTheLoopIsQuietWhenNothingChanges(t *testing.T) {
	f := newFixture(t)
	f.olm()
	w := f.watch(nil)
	f.advance(w.clock, func() bool { return w.Publication().Acknowledged }, "OLM acknowledges")
	f.idle(w)
	require.Equal(t, int64(2), w.changed.Load(), "the entry, and its acknowledgement")
	f.requests.clear()
	f.eventually(w.clock.HasWaiters, "the loop sleeps")
	w.clock.Step(4 * time.Second)
	f.idle(w)
	require.Empty(t, f.requests.all(), "not before the interval is over")
	w.clock.Step(time.Second)
	f.eventually(func() bool { return len(f.requests.all()) > 0 }, "the loop looks")
	f.idle(w)
	require.Equal(t, []string{"GET /apis/operators.coreos.com/v2/namespaces/" + f.namespace +
		"/operatorconditions/gate.v1.0.0"}, f.requests.all())
	require.Equal(t, int64(2), w.changed.Load())
}

func TestTheLoopLooksSoonAfterAWrite(t *testing.T) {
	f := newFixture(t)
	f.olm()
	w := f.watch(nil)
	f.advance(w.clock, func() bool { return w.Publication().Acknowledged }, "OLM acknowledges")
	f.idle(w)
	require.NoError(t, w.Close(t.Context(), closed("Held", "h")))
	require.False(t, w.Publication().Acknowledged)
	f.requests.clear()
	f.eventually(func() bool {
		// The loop may not have noticed the write yet; less than a second in all.
		if w.clock.Since(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)) < 3*time.Second {
			w.clock.Step(20 * time.Millisecond)
		}
		return len(f.requests.all()) > 0
	}, "the loop looks, long before 5 s are over")
	f.advance(w.clock, func() bool { return w.Publication().Acknowledged }, "OLM acknowledges")
	require.Equal(t, &gate.Announcement{Reason: "Held", Message: "h"}, w.Publication().Entry)
}

func TestTheLoopFinishesWhatCloseCouldNot(t *testing.T) {
	f := newFixture(t)
	f.patch(one("True"))
	w := f.watch(nil)
	f.idle(w)
	f.operator.atPatch(func(context.Context, string, func() error) error { return errors.New("injected") })
	require.Error(t, w.Close(t.Context(), closed("Held", "h")))
	require.Equal(t, []string{"Upgradeable=True X: x"}, f.said())
	f.operator.atPatch(nil)
	f.advance(w.clock, f.says("Upgradeable=False Held: h"), "the loop closes")
	require.Empty(t, w.foreignWrites())
}

func TestAnOpeningThatLandedWithoutAnAnswerStays(t *testing.T) {
	f := newFixture(t)
	w := f.watch(nil)
	f.idle(w)
	require.NoError(t, w.Close(t.Context(), closed("Held", "h")))
	held, err := w.Refresh(t.Context())
	require.NoError(t, err)
	f.operator.atPatch(func(_ context.Context, _ string, patch func() error) error {
		return errors.Join(patch(), context.DeadlineExceeded)
	})
	require.Error(t, w.Open(t.Context(), opened("m"), held.ResourceVersion))
	f.operator.atPatch(nil)
	f.rounds(w, 3)
	require.Equal(t, []string{"Upgradeable=True AllComponentsReady: m"}, f.said(), "it was proven, and it is known now")
	require.Empty(t, w.foreignWrites())
}

func TestClosingWinsAgainstAForeignWriter(t *testing.T) {
	f := newFixture(t)
	p := f.publisher(nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			<-ticker.C
			_ = f.admin.Patch(ctx, f.object(), client.RawPatch("application/merge-patch+json",
				[]byte(`{"metadata":{"annotations":{"at":"`+time.Now().String()+`"}}}`)))
		}
	}()
	require.Eventually(t, func() bool { return p.Close(t.Context(), closed("Held", "h")) == nil }, patience, time.Millisecond)
	cancel()
	<-done
	require.Equal(t, []string{"Upgradeable=False Held: h"}, f.said())
}

func TestAnOpeningThatLandedDoesNotOutlastTheClosingAfterIt(t *testing.T) {
	f := newFixture(t)
	w := f.watch(nil)
	f.idle(w)
	held, err := w.Refresh(t.Context())
	require.NoError(t, err)
	f.operator.atPatch(func(_ context.Context, _ string, patch func() error) error {
		return errors.Join(patch(), context.DeadlineExceeded)
	})
	require.Error(t, w.Open(t.Context(), opened("m"), held.ResourceVersion))
	f.operator.atPatch(nil)
	require.NoError(t, w.Close(t.Context(), closed("Held", "h")))
	f.patch(`{"spec":{"conditions":[` + upgradeable("True", "AllComponentsReady", "m") + `]}}`)
	f.rounds(w, 2)
	require.Equal(t, []string{"Upgradeable=False Held: h"}, f.said(), "closed is what was announced last")
}

func TestWhatAnotherReplicaSaysAtStartIsNotForeign(t *testing.T) {
	f := newFixture(t)
	w := f.watch(nil)
	f.idle(w)
	require.NoError(t, w.Close(t.Context(), closed("Held", "h")))
	require.NoError(t, f.admin.Delete(t.Context(), f.object()))
	f.createCondition()
	f.watch(nil)
	f.eventually(f.says(f.initially()), "the standby is faster")
	f.rounds(w, 2)
	require.Equal(t, []string{"Upgradeable=False Held: h"}, f.said())
	require.Empty(t, w.foreignWrites())
}
