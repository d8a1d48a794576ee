package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// width is what a line takes at most, and margin what the time before it takes.
const (
	width  = 100
	margin = "         "
)

// colours, as a terminal understands them.
const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
)

// screen is where the story is told. Each call is one write, so that nothing gets
// between the lines of it.
type screen struct {
	mu      sync.Mutex
	out     io.Writer
	start   time.Time
	colours bool
}

func newScreen(out io.Writer) *screen {
	return &screen{out: out, start: time.Now(), colours: isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// heading begins a part of the story.
func (s *screen) heading(text string) {
	s.print("\n" + s.lines(s.stamp(time.Now()), text, bold))
}

// say explains, without a time.
func (s *screen) say(format string, arguments ...any) {
	text := ""
	for _, line := range fold(fmt.Sprintf(format, arguments...), width-len(margin), "") {
		text += margin + line + "\n"
	}
	s.print(text)
}

// happened tells what was seen at a time.
func (s *screen) happened(at time.Time, text, colour string) {
	s.print(s.lines(s.stamp(at), text, colour))
}

// command shows a command and what it printed.
func (s *screen) command(line, output string) {
	text := margin
	// Folded so that the lines can be copied together.
	for i, part := range fold("$ "+line, width-len(margin)-len(` \`), "    ") {
		if i > 0 {
			text += s.colour(bold, ` \`) + "\n" + margin
		}
		text += s.colour(bold, part)
	}
	text += "\n"
	for _, row := range strings.Split(strings.TrimRight(output, "\n"), "\n") {
		if row != "" {
			text += margin + strings.TrimRight(row, " ") + "\n"
		}
	}
	s.print(text)
}

func (s *screen) print(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A reader that went away is no reason to end the story in the middle.
	_, _ = io.WriteString(s.out, text)
}

func (s *screen) stamp(at time.Time) string {
	return s.colour(dim, fmt.Sprintf("[%5.1fs] ", at.Sub(s.start).Seconds()))
}

// lines folds a text behind its first prefix; the lines after it are indented.
func (s *screen) lines(prefix, text, colour string) string {
	out := prefix
	for i, line := range fold(text, width-len(margin), "  ") {
		if i > 0 {
			out += margin
		}
		out += s.colour(colour, line) + "\n"
	}
	return out
}

func (s *screen) colour(code, text string) string {
	if !s.colours || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// indented puts what other programs tell under the story's own lines.
type indented struct {
	out  io.Writer
	open bool // the last line has not ended yet
}

func (w *indented) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		if !w.open {
			line = margin + line
		}
		w.open = !strings.HasSuffix(line, "\n")
		if _, err := io.WriteString(w.out, line); err != nil {
			return 0, err
		}
	}
	return len(text), nil
}

// fold breaks a text at its spaces, and indents the lines after the first. A word
// that is too long stays whole, so that it can be copied.
func fold(text string, columns int, indent string) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns:
			lines = append(lines, line)
			line = indent + word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
