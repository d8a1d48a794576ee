package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// playHelper is the life of another process, for tests about processes that die.
func playHelper(helper string) {
	dir := os.Args[1]
	var err error
	switch helper {
	case "supervisor": // holds the instance's lock, says so, and waits for its end
		var lock *pidLock
		i := instance{name: "test", dir: dir}
		if lock, err = i.acquire(); err == nil {
			err = i.markReady(lock)
			defer lock.release()
		}
	case "parent": // has a child, and waits for its end
		_, group := newProcessGroup(context.Background(), dir, os.Environ())
		err = group.start(program{name: "sleep", path: "/bin/sleep", args: []string{"600"}})
		if err == nil {
			fmt.Println(group.children[0].cmd.Process.Pid)
		}
	}
	fmt.Println("started", err)
	time.Sleep(time.Minute) // the test kills it
}

// startHelper starts a helper process and returns it with the lines that it printed first.
func startHelper(t *testing.T, helper, dir string) (*exec.Cmd, []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], dir)
	cmd.Env = append(os.Environ(), helperVariable+"="+helper)
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var lines []string
	for scanner := bufio.NewScanner(output); scanner.Scan(); {
		if strings.HasPrefix(scanner.Text(), "started") {
			if scanner.Text() != "started <nil>" {
				t.Fatal(scanner.Text())
			}
			return cmd, lines
		}
		lines = append(lines, scanner.Text())
	}
	t.Fatal("the helper did not start")
	return nil, nil
}

func expectPhase(t *testing.T, i instance, want phase, wantPid int) {
	t.Helper()
	if got, pid, err := i.inspect(); got != want || pid != wantPid || err != nil {
		t.Errorf("inspect() = %v, %d, %v; want %v, %d", got, pid, err, want, wantPid)
	}
}

func TestLockTellsWhetherTheSupervisorLives(t *testing.T) {
	i := instance{name: "test", dir: filepath.Join(t.TempDir(), "cluster")}
	expectPhase(t, i, stopped, 0)
	supervisor, _ := startHelper(t, "supervisor", i.dir)
	expectPhase(t, i, ready, supervisor.Process.Pid)

	var up *alreadyUp
	if _, err := i.acquire(); !errors.As(err, &up) || up.pid != supervisor.Process.Pid {
		t.Errorf("a second supervisor: %v", err)
	}
	if err := supervisor.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = supervisor.Wait()
	// The note with its process id is still in the file, and means nothing any more.
	if note, err := os.ReadFile(i.pidFile()); err != nil || string(note) != readyNote(supervisor.Process.Pid) {
		t.Errorf("note = %q, %v", note, err)
	}
	expectPhase(t, i, stopped, 0)
}

func TestStaleNoteIsNotTakenForANewSupervisor(t *testing.T) {
	i := instance{name: "test", dir: t.TempDir()}
	supervisor, _ := startHelper(t, "supervisor", i.dir)
	if err := os.WriteFile(i.pidFile(), []byte(readyNote(1)), 0o600); err != nil {
		t.Fatal(err)
	}
	expectPhase(t, i, starting, supervisor.Process.Pid)
}

func TestDownEndsTheSupervisorAndCleansUp(t *testing.T) {
	dir := t.TempDir()
	startHelper(t, "supervisor", dir)
	for _, file := range []string{"kubeconfig", "localcluster.log", "of-the-user"} {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var stderr bytes.Buffer
	if code := execute(t.Context(), []string{"down", "--dir", dir}, &stderr, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	entries, err := filepath.Glob(filepath.Join(dir, "*"))
	want := []string{filepath.Join(dir, "localcluster.pid"), filepath.Join(dir, "of-the-user")}
	if err != nil || strings.Join(entries, " ") != strings.Join(want, " ") {
		t.Errorf("left: %v, %v; want %v", entries, err, want)
	}
}

func TestFolderOfSomeoneElseIsRefused(t *testing.T) {
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	i := instance{name: "test", dir: dir}
	if _, err := i.acquire(); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("err = %v", err)
	}
	if _, err := os.Stat(kubeconfig); err != nil {
		t.Error(err)
	}
}

func TestFileLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := tryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tryLock(path); !errors.Is(err, errLocked) {
		t.Errorf("a second lock: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := waitForLock(ctx, path, func() {}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a wait that ends: %v", err)
	}
	second, err := waitForLock(t.Context(), path, first.release)
	if err != nil {
		t.Fatal(err)
	}
	second.release()
}
