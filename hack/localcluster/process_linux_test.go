package main

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestChildrenDieWithAKilledParent(t *testing.T) {
	parent, lines := startHelper(t, "parent", t.TempDir())
	child, err := strconv.Atoi(lines[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(child, 0); err != nil {
		t.Fatalf("the child does not run: %v", err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	for deadline := time.Now().Add(5 * time.Second); !isGone(child); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the child outlived its parent")
		}
	}
}

// isGone: a dead process that nobody has waited for yet is gone as well.
func isGone(pid int) bool {
	stat := lastLinesOfFile("/proc/"+strconv.Itoa(pid)+"/stat", 1)
	return syscall.Kill(pid, 0) != nil || len(stat) > 0 && containsZombieState(stat)
}

func containsZombieState(stat string) bool {
	_, state, found := strings.Cut(stat, ") ")
	return found && strings.HasPrefix(state, "Z")
}
