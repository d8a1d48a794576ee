package conditions_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/upgrade-gate/upgrade-gate/pkg/conditions"
)

func TestTruncate(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"what fits is kept":                {"abc", 3, "abc"},
		"nothing fits everywhere":          {"", 0, ""},
		"the cut is marked":                {"abcd", 3, "ab…"},
		"one character leaves the mark":    {"abcd", 1, "…"},
		"no room leaves nothing":           {"abcd", 0, ""},
		"less than no room leaves nothing": {"abcd", -5, ""},
		"characters count, not bytes":      {"äöü", 3, "äöü"},
		"a character is never split":       {"äöüß", 3, "äö…"},
		"four bytes are one character":     {"😀😀😀", 2, "😀…"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, conditions.Truncate(c.text, c.limit)) })
	}
}

func TestLine(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"plain text is kept":                       {"all well", 10, "all well"},
		"space around is dropped":                  {"  \t all well \r\n", 10, "all well"},
		"line ends become spaces":                  {"a\nb\r\nc\u2028d\u2029e\u0085f", 20, "a b  c d e f"},
		"NUL, escape and delete become spaces":     {"a\x00b\x1bc\x7fd", 20, "a b c d"},
		"marks of direction become spaces":         {"a\u202eb\u200fc\u2066d", 20, "a b c d"},
		"invisible marks become spaces":            {"a\ufeffb\u200bc\u00add", 20, "a b c d"},
		"invalid bytes become one mark":            {"a\xff\xfe\xfdb", 20, "a\uFFFDb"},
		"a lone surrogate half is invalid":         {"a\xed\xa0\x80b", 20, "a\uFFFDb"},
		"the limit counts characters":              {"äöüß", 3, "äö…"},
		"the limit counts after dropping space":    {"   abc   ", 3, "abc"},
		"no room leaves nothing":                   {"abc", 0, ""},
		"control characters alone leave nothing":   {"\x00\n\u202e", 5, ""},
		"other scripts and emoji are kept":         {"日本語 العربية 😀", 20, "日本語 العربية 😀"},
		"the mark for an invalid byte is one rune": {strings.Repeat("\xff", 99), 5, "\uFFFD"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, conditions.Line(c.text, c.limit)) })
	}
}

func TestLineOfHugeTextIsCutOnCharacters(t *testing.T) {
	for _, unit := range []string{"a", "ä", "語", "😀", "a😀"} {
		got := conditions.Line(strings.Repeat(unit, 1<<16), 512)
		require.Equal(t, 512, utf8.RuneCountInString(got), unit)
		require.True(t, strings.HasSuffix(got, "…"), unit)
		require.NotContains(t, got, "\uFFFD", unit)
	}
}

func TestTruncateEncodedCountsWhatJSONWrites(t *testing.T) {
	cases := map[string]struct {
		in    string
		limit int
		want  string
	}{
		"what fits is kept":                      {"abc", 3, "abc"},
		"an ellipsis takes three bytes":          {"abcdef", 5, "ab…"},
		"an angle bracket takes six":             {"<<<", 12, "<…"},
		"a quotation mark takes two":             {`""""`, 7, `""…`},
		"a character is not cut":                 {"障障障", 8, "障…"},
		"nothing fits into less than the mark":   {"abc", 2, ""},
		"a text that fills the space exactly":    {"<a", 7, "<a"},
		"an empty text is empty at every length": {"", 0, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, conditions.TruncateEncoded(c.in, c.limit))
		})
	}
}
