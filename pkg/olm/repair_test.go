package olm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
)

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
