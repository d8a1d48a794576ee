package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestStory plays the demo, as `go run ./test/demo` does, and takes down what it
// started, also when it fails or the test runs out of time.
func TestStory(t *testing.T) {
	ctx := t.Context()
	if deadline, ok := t.Deadline(); ok {
		// Time to end the cluster, before go test ends us.
		limited, cancel := context.WithDeadline(ctx, deadline.Add(-2*endLimit))
		defer cancel()
		ctx = limited
	}
	folder := t.TempDir()
	o := &options{
		root: filepath.Join("..", ".."), dir: filepath.Join(folder, "cluster"),
		log: filepath.Join(folder, "operator.log"), patience: 2 * time.Minute,
		// Built here, to be still there when the demo has cleaned up.
		localcluster: filepath.Join(folder, "localcluster"),
	}
	require.NoError(t, o.complete())
	build := &options{root: o.root}
	_, err := build.build(ctx, "", "hack/localcluster", ".", o.localcluster)
	require.NoError(t, err)

	var told, progress bytes.Buffer
	err = o.show(ctx, &told, &progress)
	t.Log("the demo:\n" + told.String())
	if err != nil {
		log, _ := os.ReadFile(o.log)
		t.Fatalf("%v\n\nthe cluster:\n%s\nthe operator's log:\n%s", err, &progress, log)
	}
	assert.Contains(t, told.String(), "Every step was seen.")
	assert.NotContains(t, told.String(), "\x1b[", "colours are for terminals")
	for _, line := range strings.Split(told.String(), "\n") {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), width, line)
		assert.Equal(t, strings.TrimRight(line, " "), line, "blanks at the end")
	}
	_, err = o.runLocalcluster(t.Context(), &progress, append([]string{"status"}, o.which()...)...)
	assert.Error(t, err, "the cluster must be down")
	assert.NoDirExists(t, o.folder)
}

func TestWhatCannotBeUsedIsExplained(t *testing.T) {
	for name, c := range map[string]struct {
		arguments []string
		says      string
	}{
		"not in the root": {nil, "run the demo from the root of the project"},
		"an argument":     {[]string{"now"}, `unexpected argument "now"`},
		"unknown flag":    {[]string{"--fast"}, "flag provided but not defined"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			assert.Equal(t, exitUsage, execute(t.Context(), c.arguments, &bytes.Buffer{}, &stderr))
			assert.Contains(t, stderr.String(), c.says)
		})
	}
}

func TestMissingProgramIsExplained(t *testing.T) {
	var stderr bytes.Buffer
	code := execute(t.Context(), []string{"--root=../..", "--operator=" + filepath.Join(t.TempDir(), "absent")}, &bytes.Buffer{}, &stderr)
	assert.Equal(t, exitNotSeen, code)
	assert.Contains(t, stderr.String(), "leave the flag out to have it built")
}

func TestWaitThatIsNotMetSaysWhatWasSeen(t *testing.T) {
	var told bytes.Buffer
	s := &story{
		screen: newScreen(&told), patience: time.Millisecond,
		operator: &operator{done: make(chan struct{})},
		eyes:     &eyes{more: make(chan struct{}), seen: []sight{{at: time.Now()}}},
	}
	err := s.until(t.Context(), "the gate open", func(sight) bool { return false })
	assert.ErrorContains(t, err, "waited 1ms for the gate open; seen instead: gate: Upgradeable=")

	s.eyes.note(nil, errors.New("the watch ended"))
	s.patience = time.Minute
	err = s.until(t.Context(), "the gate open", func(sight) bool { return false })
	assert.ErrorContains(t, err, "the watch ended")
}

func TestFold(t *testing.T) {
	assert.Equal(t, []string{"one two", "  three"}, fold("one two  three", 8, "  "))
	assert.Equal(t, []string{"indivisible", "  x"}, fold("indivisible x", 4, "  "))
	assert.Equal(t, []string{""}, fold("", 4, "  "))
}

func TestLongCommandCanBeCopied(t *testing.T) {
	var told bytes.Buffer
	newScreen(&told).command("kubectl "+strings.Repeat("word ", 20), "")
	lines := strings.Split(strings.TrimSpace(told.String()), "\n")
	require.Len(t, lines, 2)
	assert.True(t, strings.HasSuffix(lines[0], ` \`), lines[0])
	assert.Equal(t, "kubectl patch storage main -p '{\"a\":1}' ''",
		"kubectl "+quoted([]string{"patch", "storage", "main", "-p", `{"a":1}`, ""}))
}
