package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// fileLock is an exclusive flock. The kernel drops it when its process dies, however it dies, so a
// lock is never stale and needs no clean-up. The lock file itself stays: removing it would let two
// processes lock two files of one name.
type fileLock struct {
	file *os.File
}

// errLocked says that another process holds the lock.
var errLocked = errors.New("locked by another process")

// tryLock takes the lock at path, or fails with errLocked at once.
func tryLock(path string) (*fileLock, error) {
	// Go opens files close-on-exec: a child never holds the lock of its parent.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return &fileLock{file: file}, nil
	}
	file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errLocked
	}
	return nil, fmt.Errorf("locking %s: %w", path, err)
}

// waitForLock takes the lock at path, waiting for as long as it needs. It calls waiting once when
// it is not free at once. It polls, because a blocked flock cannot be cancelled.
func waitForLock(ctx context.Context, path string, waiting func()) (*fileLock, error) {
	for told := false; ; told = true {
		lock, err := tryLock(path)
		if !errors.Is(err, errLocked) {
			return lock, err
		}
		if !told {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %s: %w", path, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (l *fileLock) release() {
	l.file.Close()
}
