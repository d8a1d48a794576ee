package conditions_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upgrade-gate/upgrade-gate/pkg/conditions"
)

func number(v int64) conditions.Number {
	return conditions.Number{State: conditions.NumberPresent, Value: v}
}

func invalid() conditions.Number { return conditions.Number{State: conditions.NumberInvalid} }

func TestDecodeNumber(t *testing.T) {
	for name, c := range map[string]struct {
		value    any
		want     conditions.Number
		positive bool
	}{
		"nothing is absent":                      {nil, conditions.Number{}, false},
		"0 is present and names no generation":   {int64(0), number(0), false},
		"1 names the first generation":           {int64(1), number(1), true},
		"a plain int is a number":                {5, number(5), true},
		"the largest int64 is a number":          {int64(math.MaxInt64), number(math.MaxInt64), true},
		"a negative number is invalid":           {int64(-1), invalid(), false},
		"5.0 is 5":                               {5.0, number(5), true},
		"0.0 is 0":                               {0.0, number(0), false},
		"-0.0 is 0":                              {math.Copysign(0, -1), number(0), false},
		"-5.0 is invalid":                        {-5.0, invalid(), false},
		"5.5 is invalid":                         {5.5, invalid(), false},
		"the last exact float is a number":       {float64(1<<53 - 1), number(1<<53 - 1), true},
		"a float that may be rounded is invalid": {float64(1 << 53), invalid(), false},
		"NaN is invalid":                         {math.NaN(), invalid(), false},
		"infinity is invalid":                    {math.Inf(1), invalid(), false},
		"text is invalid, even 5":                {"5", invalid(), false},
		"a boolean is invalid":                   {true, invalid(), false},
		"an object is invalid":                   {map[string]any{"value": int64(5)}, invalid(), false},
		"a list is invalid":                      {[]any{int64(5)}, invalid(), false},
		"an unknown type of number is invalid":   {uint8(5), invalid(), false},
	} {
		t.Run(name, func(t *testing.T) {
			got := conditions.DecodeNumber(c.value)
			require.Equal(t, c.want, got)
			require.Equal(t, c.positive, got.Positive())
		})
	}
}

func TestDecode(t *testing.T) {
	entry := func(fields ...any) any {
		m := map[string]any{}
		for i := 0; i < len(fields); i += 2 {
			m[fields[i].(string)] = fields[i+1]
		}
		return m
	}
	ready := conditions.Condition{Type: "Ready", Status: "True"}
	for name, c := range map[string]struct {
		value any
		want  conditions.List
	}{
		"nothing reports nothing":       {nil, conditions.List{}},
		"an empty list reports nothing": {[]any{}, conditions.List{Items: []conditions.Condition{}}},
		"text is no list":               {"Ready", conditions.List{Unreadable: true}},
		"an object is no list":          {entry("type", "Ready"), conditions.List{Unreadable: true}},
		"a typed list is no list":       {[]string{"Ready"}, conditions.List{Unreadable: true}},
		"every field is kept": {
			[]any{entry("type", "Ready", "status", "True", "reason", "Fine", "message", "all well", "observedGeneration", int64(3))},
			conditions.List{Items: []conditions.Condition{
				{Type: "Ready", Status: "True", Reason: "Fine", Message: "all well", ObservedGeneration: number(3)},
			}},
		},
		"times and unknown fields are dropped": {
			[]any{entry("type", "Ready", "status", "True", "lastTransitionTime", "2020-01-01T00:00:00Z", "lastHeartbeatTime", "x", "severity", int64(1))},
			conditions.List{Items: []conditions.Condition{ready}},
		},
		"what is no condition is left out": {
			[]any{nil, "Ready", int64(1), []any{}, entry(), entry("type", ""), entry("type", int64(1)), entry("type", nil), entry("type", "Ready", "status", "True")},
			conditions.List{Items: []conditions.Condition{ready}},
		},
		"a status that is none is kept empty": {
			[]any{entry("type", "A", "status", "true"), entry("type", "B", "status", true), entry("type", "C", "status", nil), entry("type", "D"), entry("type", "E", "status", "")},
			conditions.List{Items: []conditions.Condition{{Type: "A"}, {Type: "B"}, {Type: "C"}, {Type: "D"}, {Type: "E"}}},
		},
		"Unknown and False are statuses": {
			[]any{entry("type", "A", "status", "Unknown"), entry("type", "B", "status", "False")},
			conditions.List{Items: []conditions.Condition{{Type: "A", Status: "Unknown"}, {Type: "B", Status: "False"}}},
		},
		"duplicates are kept in order": {
			[]any{entry("type", "Ready", "status", "True"), entry("type", "Ready", "status", "False")},
			conditions.List{Items: []conditions.Condition{ready, {Type: "Ready", Status: "False"}}},
		},
		"reason and message of another type are dropped": {
			[]any{entry("type", "Ready", "status", "True", "reason", int64(1), "message", []any{"x"}, "observedGeneration", "3")},
			conditions.List{Items: []conditions.Condition{{Type: "Ready", Status: "True", ObservedGeneration: invalid()}}},
		},
		"types differ by case": {
			[]any{entry("type", "ready", "status", "True")},
			conditions.List{Items: []conditions.Condition{{Type: "ready", Status: "True"}}},
		},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, conditions.Decode(c.value)) })
	}
}

func TestDecodeLooksAtAllEntriesOrNone(t *testing.T) {
	entries := make([]any, conditions.MaxForeign)
	for i := range entries {
		entries[i] = map[string]any{"type": "Ready", "status": "True"}
	}
	require.Len(t, conditions.Decode(entries).Items, 256)
	require.Equal(t, conditions.List{Overflow: true}, conditions.Decode(append(entries, nil)))
}

func TestFind(t *testing.T) {
	list := conditions.List{Items: []conditions.Condition{
		{Type: "Ready", Status: "True"}, {Type: "Available", Status: "False"}, {Type: "Ready", Status: "False"},
	}}
	found, count := list.Find("Ready")
	require.Equal(t, conditions.Condition{Type: "Ready", Status: "True"}, found)
	require.Equal(t, 2, count)
	found, count = list.Find("Available")
	require.Equal(t, conditions.Condition{Type: "Available", Status: "False"}, found)
	require.Equal(t, 1, count)
	found, count = list.Find("ready")
	require.Zero(t, found)
	require.Zero(t, count)
	_, count = conditions.List{}.Find("Ready")
	require.Zero(t, count)
}
