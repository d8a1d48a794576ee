package conditions

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds, in characters, of text that comes from somebody else.
const (
	MaxForeignText   = 512
	MaxForeignReason = 128
)

// Line makes foreign text fit to stand inside a message: valid UTF-8, on one
// line, without control characters, and at most limit characters.
func Line(s string, limit int) string {
	// Bounded before it is mapped, so that a huge text costs no huge copy; no
	// character takes more than utf8.UTFMax bytes.
	if most := (limit + 1) * utf8.UTFMax; len(s) > most {
		s = s[:most]
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
	return Truncate(strings.TrimSpace(s), limit)
}

// Truncate cuts s to at most limit characters, on a character boundary, and
// marks the cut with an ellipsis.
func Truncate(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	if limit < 1 {
		return ""
	}
	kept := 0
	for i := range s {
		if kept == limit-1 {
			return s[:i] + "…"
		}
		kept++
	}
	return s
}
