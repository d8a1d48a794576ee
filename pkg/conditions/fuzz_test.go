package conditions_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/upgrade-gate/upgrade-gate/pkg/conditions"
)

// FuzzDecode decodes whatever JSON a status may hold under conditions. Text that
// is no JSON is decoded as a message, because not every decoder repairs UTF-8.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`null`, `true`, `5`, `"Ready"`, `{}`, `[]`, `[null]`, `[[]]`, `[{}]`, `[5,"x",{"type":5}]`,
		`[{"type":null,"status":null,"reason":null,"message":null,"observedGeneration":null}]`,
		`[{"type":"Ready","status":"True","observedGeneration":5}]`,
		`[{"type":"Ready","status":true,"observedGeneration":"5"}]`,
		`[{"type":"Ready","status":["True"],"reason":{},"message":7,"observedGeneration":1e99}]`,
		`[{"type":"Ready","status":"True"},{"type":"Ready","status":"False"}]`,
		`[{"type":"Ready","status":"True","message":"a\u0000b\nc\u202ed\u2028e"}]`,
		`[{"type":"Ready","status":"True","message":"\ud800"}]`,
		`[{"type":"Ready","status":"True","message":"` + strings.Repeat("ä", 4000) + `"}]`,
		`[` + strings.TrimSuffix(strings.Repeat(`{"type":"Ready"},`, 300), ",") + `]`,
		"\xff\xfe\xfd", "a\x00\u200fb", strings.Repeat("\xe4", 3000),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var value any
		if json.Unmarshal(data, &value) != nil {
			value = []any{map[string]any{"type": "Ready", "status": string(data), "reason": string(data), "message": string(data)}}
		}
		list := conditions.Decode(value)
		require.LessOrEqual(t, len(list.Items), conditions.MaxForeign)
		if list.Unreadable || list.Overflow {
			require.Empty(t, list.Items)
		}
		for _, c := range list.Items {
			require.NotEmpty(t, c.Type)
			require.Contains(t, []string{"True", "False", "Unknown", ""}, c.Status)
			requireLine(t, c.Reason, conditions.MaxForeignReason)
			requireLine(t, c.Message, conditions.MaxForeignText)
			found, count := list.Find(c.Type)
			require.Positive(t, count)
			require.Equal(t, c.Type, found.Type)
		}
		require.Equal(t, list, conditions.Decode(value), "decoding twice differs")
	})
}

func requireLine(t *testing.T, text string, limit int) {
	t.Helper()
	require.True(t, utf8.ValidString(text), "%q", text)
	require.LessOrEqual(t, utf8.RuneCountInString(text), limit)
	unfit := strings.IndexFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
	})
	require.Equal(t, -1, unfit, "%q", text)
}
