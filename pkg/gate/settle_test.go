package gate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
)

// at is a moment of the day on which the table takes place.
func at(clock string) time.Time {
	t, err := time.Parse("15:04:05", clock)
	if err != nil {
		panic(err)
	}
	return t.AddDate(2026, 0, 0)
}

func replaced(name string, uid types.UID) component.Assessment {
	a := ready(name)
	a.UID = uid
	return a
}

func TestSettle(t *testing.T) {
	type look struct {
		clock    string
		found    []component.Assessment
		readyFor time.Duration
	}
	both := []component.Assessment{ready("a"), ready("b")}
	for name, looks := range map[string][]look{
		"time counts from the first look": {
			{"10:00:00", both, 0}, {"10:00:30", both, 30 * time.Second}, {"11:00:00", both, time.Hour},
		},
		"one that is not ready starts anew": {
			{"10:00:00", both, 0},
			{"10:00:10", []component.Assessment{ready("a"), stale("b")}, 10 * time.Second},
			{"10:00:20", both, 0}, {"10:00:30", both, 10 * time.Second},
		},
		"one that cannot be read starts anew": {
			{"10:00:00", both, 0}, {"10:00:10", []component.Assessment{ready("a"), forbidden("b")}, 10 * time.Second}, {"10:00:20", both, 0},
		},
		"one that nobody filled in starts anew": {
			{"10:00:00", both, 0}, {"10:00:10", []component.Assessment{ready("a"), {Name: "b"}}, 10 * time.Second}, {"10:00:20", both, 0},
		},
		"the latest counts": {
			{"10:00:00", []component.Assessment{ready("a"), stale("b")}, 0}, {"10:00:10", both, 0}, {"10:00:15", both, 5 * time.Second},
		},
		"a replaced object starts anew": {
			{"10:00:00", both, 0}, {"10:01:00", []component.Assessment{ready("a"), replaced("b", "u-2")}, 0},
			{"10:01:05", []component.Assessment{ready("a"), replaced("b", "u-2")}, 5 * time.Second},
			{"10:01:10", both, 0},
		},
		"a new component starts anew": {
			{"10:00:00", both, 0}, {"10:01:00", append(both[:2:2], ready("c")), 0}, {"10:01:07", append(both[:2:2], ready("c")), 7 * time.Second},
		},
		"a component that is gone counts no more": {
			{"10:00:00", []component.Assessment{ready("a")}, 0}, {"10:00:20", both, 0},
			{"10:00:25", []component.Assessment{ready("a")}, 25 * time.Second},
		},
		"a component that was gone starts anew": {
			{"10:00:00", both, 0}, {"10:00:10", both[:1], 10 * time.Second}, {"10:00:20", both, 0},
		},
		"optional components are not waited for": {
			{"10:00:00", []component.Assessment{ready("a"), optional(stale("b"))}, 0},
			{"10:00:10", []component.Assessment{ready("a"), optional(ready("b"))}, 10 * time.Second},
		},
		"one that becomes required starts then": {
			{"10:00:00", []component.Assessment{ready("a"), optional(ready("b"))}, 0}, {"10:00:10", both, 0},
		},
		"the order does not matter": {
			{"10:00:00", both, 0}, {"10:00:10", []component.Assessment{ready("b"), ready("a")}, 10 * time.Second},
		},
		"a clock that goes back starts anew": {
			{"10:00:00", both, 0}, {"09:00:00", both, 0}, {"09:00:05", both, 5 * time.Second}, {"10:00:00", both, time.Hour},
		},
		"nothing is never ready": {
			{"10:00:00", nil, 0}, {"11:00:00", nil, 0}, {"12:00:00", []component.Assessment{stale("a")}, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var settle gate.Settle
			for _, look := range looks {
				before := settle.ReadyFor(at(look.clock))
				next := settle.Next(look.found, at(look.clock))
				require.Equal(t, before, settle.ReadyFor(at(look.clock)), "Next changed its receiver")
				settle = next
				require.Equal(t, look.readyFor, settle.ReadyFor(at(look.clock)), look.clock)
			}
		})
	}
}

func TestTheZeroSettleHasSeenNothing(t *testing.T) {
	require.Zero(t, gate.Settle{}.ReadyFor(at("10:00:00")))
}

func TestSettledOutlastsEveryWindowAndStartsAnewLikeAnyOther(t *testing.T) {
	both := []component.Assessment{ready("a"), ready("b")}
	settle := gate.Settled(both, at("10:00:00"))
	require.GreaterOrEqual(t, settle.ReadyFor(at("10:00:00")), 86400*time.Second)
	settle = settle.Next(both, at("10:00:01"))
	require.GreaterOrEqual(t, settle.ReadyFor(at("10:00:01")), 86400*time.Second)

	settle = settle.Next([]component.Assessment{ready("a"), stale("b")}, at("10:00:02"))
	settle = settle.Next(both, at("10:00:03"))
	require.Zero(t, settle.ReadyFor(at("10:00:03")), "not ready once")

	settle = gate.Settled(both, at("10:00:00")).Next(append(both[:2:2], ready("c")), at("10:00:01"))
	require.Zero(t, settle.ReadyFor(at("10:00:01")), "a new component")
	settle = gate.Settled(both, at("10:00:00")).Next([]component.Assessment{ready("a"), replaced("b", "u-2")}, at("10:00:01"))
	require.Zero(t, settle.ReadyFor(at("10:00:01")), "a replaced object")
	require.Zero(t, gate.Settled([]component.Assessment{stale("a")}, at("10:00:00")).ReadyFor(at("10:00:00")), "nothing was ready")
}
