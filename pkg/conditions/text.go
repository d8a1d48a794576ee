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

// TruncateEncoded cuts s, on a character boundary, so that it takes at most limit
// bytes as a JSON string without its quotes; encoding/json writes <, > and & in
// six bytes each.
func TruncateEncoded(s string, limit int) string {
	const ellipsis = "…"
	size, cut := 0, 0
	for i, r := range s {
		if size+len(ellipsis) <= limit {
			cut = i
		}
		size += encodedSize(r)
	}
	if size <= limit {
		return s
	}
	if limit < len(ellipsis) {
		return ""
	}
	return s[:cut] + ellipsis
}

func encodedSize(r rune) int {
	switch r {
	case '<', '>', '&', '\u2028', '\u2029':
		return 6
	case '"', '\\':
		return 2
	}
	if unicode.IsControl(r) {
		return 6
	}
	return utf8.RuneLen(r)
}
