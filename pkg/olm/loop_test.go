package olm_test

import (
	"context"
	"errors"
	"slices"
	"strings"
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

func TestRepair(t *testing.T) {
	const spoiled = `{"spec":{"conditions":null}}`
	for name, tc := range map[string]struct {
		open bool
		// change is what somebody else does after this process announced.
		change string
		want   string
		// foreign is what is reported of it.
		foreign []gate.Announcement
		wakes   bool
	}{
		"a closed entry that was opened is closed again": {
			change: one("True"), want: "Upgradeable=False Held: h",
			foreign: []gate.Announcement{{Open: true, Reason: "X", Message: "x"}},
		},
		"a closed entry whose message was changed is written again": {
			change: one("False"), want: "Upgradeable=False Held: h",
			foreign: []gate.Announcement{{Reason: "X", Message: "x"}},
		},
		"a closed entry that became Unknown is written again, and reported as the consent that it is": {
			change: one("Unknown"), want: "Upgradeable=False Held: h",
			foreign: []gate.Announcement{{Open: true, Reason: "X", Message: "x"}},
		},
		"a closed entry that got a second one is alone again": {
			change:  `{"spec":{"conditions":[` + upgradeable("False", "Held", "h") + `,` + upgradeable("True", "X", "x") + `]}}`,
			want:    "Upgradeable=False Held: h",
			foreign: []gate.Announcement{{Open: true, Reason: "X", Message: "x"}},
		},
		"a closed entry that was removed is written again": {
			change: spoiled, want: "Upgradeable=False Held: h",
			foreign: []gate.Announcement{{}},
		},
		"an open entry that was closed is left, and the controller is woken": {
			open: true, change: one("False"), want: "Upgradeable=False X: x", wakes: true,
			foreign: []gate.Announcement{{Reason: "X", Message: "x"}},
		},
		"an open entry that was changed is left, and the controller is woken": {
			open: true, change: one("True"), want: "Upgradeable=True X: x", wakes: true,
			foreign: []gate.Announcement{{Open: true, Reason: "X", Message: "x"}},
		},
		"an open entry that was removed becomes Initializing, and the controller is woken": {
			open: true, change: spoiled, want: "initially", wakes: true,
			foreign: []gate.Announcement{{}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			w := f.watch(nil)
			f.idle(w)
			if tc.open {
				f.open(w.Publisher, "m")
			} else {
				require.NoError(t, w.Close(t.Context(), closed("Held", "h")))
			}
			f.rounds(w, 1)
			require.Empty(t, w.foreignWrites())
			f.patch(tc.change)
			before := w.changed.Load()
			if tc.want == "initially" {
				tc.want = f.initially()
			}
			f.rounds(w, 4)
			require.Equal(t, []string{tc.want}, f.said())
			require.Equal(t, tc.foreign, w.foreignWrites(), "reported exactly once")
			if tc.wakes {
				require.GreaterOrEqual(t, w.changed.Load(), before+3, "it is woken until OLM holds what it wants")
			}
		})
	}
}

func TestEachForeignWriteIsReported(t *testing.T) {
	f := newFixture(t)
	w := f.watch(nil)
	f.idle(w)
	require.NoError(t, w.Close(t.Context(), closed("Held", "h")))
	for range 3 {
		f.patch(one("True"))
		f.rounds(w, 3)
	}
	require.Len(t, w.foreignWrites(), 3)
	require.Equal(t, []string{"Upgradeable=False Held: h"}, f.said())
}

func TestWhatWasThereBeforeTheFirstAnnouncementIsNotForeign(t *testing.T) {
	f := newFixture(t)
	f.patch(one("True"))
	w := f.watch(nil)
	f.idle(w)
	f.patch(`{"metadata":{"labels":{"a":"b"}}}`)
	require.NoError(t, w.Close(t.Context(), closed("Held", "h")))
	f.rounds(w, 2)
	require.Empty(t, w.foreignWrites())
}

func TestAnObjectThatWasCreatedAnewIsSpokenForAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		announce func(f *fixture, w *watched)
		want     func(f *fixture) string
	}{
		"with Initializing by a standby": {
			announce: func(*fixture, *watched) {},
			want:     func(f *fixture) string { return f.initially() },
		},
		"with what was last said, if that was closed": {
			announce: func(f *fixture, w *watched) {
				require.NoError(f, w.Close(f.Context(), closed("Held", "h")))
			},
			want: func(*fixture) string { return "Upgradeable=False Held: h" },
		},
		"with Initializing if what was last said was open": {
			announce: func(f *fixture, w *watched) {
				require.NoError(f, w.Close(f.Context(), closed("Held", "h")))
				f.open(w.Publisher, "m")
			},
			want: func(f *fixture) string { return f.initially() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			w := f.watch(nil)
			f.idle(w)
			tc.announce(f, w)
			require.NoError(t, f.admin.Delete(t.Context(), f.object()))
			f.rounds(w, 1)
			require.Equal(t, "OperatorConditionNotFound", w.Publication().Problem)
			require.Nil(t, w.Publication().Entry)
			f.createCondition()
			f.advance(w.clock, f.says(tc.want(f)), "it is published again")
			require.Empty(t, w.foreignWrites())
			for _, request := range f.requests.all() {
				require.NotContains(t, request, "POST")
				require.NotContains(t, request, "PUT")
			}
		})
	}
}

func TestAnObjectThatIsRecreatedAtOnceIsNotForeign(t *testing.T) {
	f := newFixture(t)
	w := f.watch(nil)
	f.idle(w)
	require.NoError(t, w.Close(t.Context(), closed("Held", "h")))
	require.NoError(t, f.admin.Delete(t.Context(), f.object()))
	f.createCondition()
	f.advance(w.clock, f.says("Upgradeable=False Held: h"), "it is published again")
	require.Empty(t, w.foreignWrites())
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
		for ctx.Err() == nil {
			_ = f.admin.Patch(ctx, f.object(), client.RawPatch("application/merge-patch+json",
				[]byte(`{"metadata":{"annotations":{"at":"`+time.Now().String()+`"}}}`)))
		}
	}()
	require.Eventually(t, func() bool { return p.Close(t.Context(), closed("Held", "h")) == nil }, patience, time.Millisecond)
	cancel()
	<-done
	require.Equal(t, []string{"Upgradeable=False Held: h"}, f.said())
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
