package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// instance is the folder of one cluster. Its pid file is locked for as long as the cluster's
// supervisor lives: whoever holds the lock is the supervisor, and a free lock means that it is dead.
type instance struct {
	name string
	dir  string
}

func (i instance) pidFile() string    { return filepath.Join(i.dir, "localcluster.pid") }
func (i instance) kubeconfig() string { return filepath.Join(i.dir, "kubeconfig") }
func (i instance) logFile() string    { return filepath.Join(i.dir, "localcluster.log") }
func (i instance) logDir() string     { return filepath.Join(i.dir, "logs") }
func (i instance) dataDir() string    { return filepath.Join(i.dir, "data") }

// phase of an instance.
type phase int

const (
	stopped phase = iota
	starting
	ready
)

// alreadyUp is the refusal to start a cluster twice.
type alreadyUp struct {
	instance instance
	pid      int
}

func (e *alreadyUp) Error() string {
	return fmt.Sprintf("cluster %q in %s is already up (process %d); \"localcluster down\" ends it",
		e.instance.name, e.instance.dir, e.pid)
}

// create makes the folder, private because keys are in it, with its pid file.
func (i instance) create() error {
	if err := os.MkdirAll(i.dir, 0o700); err != nil {
		return err
	}
	if !i.exists() {
		entries, err := os.ReadDir(i.dir)
		if err != nil {
			return err
		}
		if len(entries) > 0 { // a cluster's end removes files here: not in a folder of someone else's
			return fmt.Errorf("%s is not empty and not the folder of a cluster; give another --dir", i.dir)
		}
	}
	file, err := os.OpenFile(i.pidFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

func (i instance) exists() bool {
	_, err := os.Stat(i.pidFile())
	return err == nil
}

// acquire makes this process the supervisor of the instance and removes what a killed one left.
func (i instance) acquire() (*pidLock, error) {
	if err := i.create(); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(i.pidFile(), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	lock, err := takePidLock(file)
	// "down" holds the lock for an instant while it cleans up.
	for try := 0; errors.Is(err, errLocked) && try < 10; try++ {
		time.Sleep(50 * time.Millisecond)
		lock, err = takePidLock(file)
	}
	if errors.Is(err, errLocked) {
		err = &alreadyUp{instance: i}
		if pid, holderErr := pidLockHolder(file); holderErr == nil {
			err = &alreadyUp{instance: i, pid: pid}
		}
	}
	if err == nil {
		err = i.clean()
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return lock, nil
}

// markReady writes down that this process's cluster is ready. The process id makes the note of an
// earlier supervisor recognisable.
func (i instance) markReady(lock *pidLock) error {
	if err := lock.file.Truncate(0); err != nil {
		return err
	}
	_, err := lock.file.WriteAt([]byte(readyNote(os.Getpid())), 0)
	return err
}

// unmarkReady takes the note back: from now on the cluster is ending. Where that fails, others
// take it for ready for a moment longer, which is no reason not to end it.
func (i instance) unmarkReady(lock *pidLock) {
	_ = lock.file.Truncate(0)
}

func readyNote(pid int) string { return fmt.Sprintf("%d ready\n", pid) }

// inspect tells the phase and the supervisor's process id. It is for other processes than the
// supervisor: see pidLock.
func (i instance) inspect() (phase, int, error) {
	file, err := os.Open(i.pidFile())
	if errors.Is(err, os.ErrNotExist) {
		return stopped, 0, nil
	}
	if err != nil {
		return stopped, 0, err
	}
	defer file.Close()
	pid, err := pidLockHolder(file)
	if err != nil || pid == 0 {
		return stopped, 0, err
	}
	note, err := io.ReadAll(file)
	if err != nil {
		return stopped, 0, err
	}
	if string(note) == readyNote(pid) {
		return ready, pid, nil
	}
	return starting, pid, nil
}

// clean removes all that a cluster writes, except for the pid file (without it the lock would be
// on a file that nobody finds) and the log of "up". The caller holds the lock.
func (i instance) clean() error {
	return errors.Join(i.cleanKeepingLogs(), os.RemoveAll(i.logDir()))
}

// cleanKeepingLogs is for the end of a cluster that failed: its logs say why.
func (i instance) cleanKeepingLogs() error {
	err := os.RemoveAll(i.kubeconfig())
	// The children of a supervisor that was killed just now may be writing for a last moment.
	for try := 0; ; try++ {
		dataErr := os.RemoveAll(i.dataDir())
		if dataErr == nil || try == 10 {
			return errors.Join(err, dataErr)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
