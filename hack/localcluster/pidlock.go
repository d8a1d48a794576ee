package main

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// pidLock marks a file as held by this process. It is a POSIX record lock, and not a flock as for
// builds, because for this one the kernel tells who holds it: a process id that was written to a
// file may belong to a stranger by now, the kernel's answer cannot. Like a flock it goes with its
// process, however that dies.
//
// A POSIX lock has one trap: it is lost as soon as its process closes any other descriptor of the
// same file. The holder must not open the file a second time.
type pidLock struct {
	file *os.File
}

// takePidLock takes the lock on an open file, or fails with errLocked.
func takePidLock(file *os.File) (*pidLock, error) {
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	err := syscall.FcntlFlock(file.Fd(), syscall.F_SETLK, &lock)
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return nil, errLocked
	}
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return &pidLock{file: file}, nil
}

// pidLockHolder returns the id of the process that holds the lock on file, 0 for none. It does not
// see a lock of the process that asks.
func pidLockHolder(file *os.File) (int, error) {
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	if err := syscall.FcntlFlock(file.Fd(), syscall.F_GETLK, &lock); err != nil {
		return 0, os.NewSyscallError("fcntl", err)
	}
	if lock.Type == syscall.F_UNLCK {
		return 0, nil
	}
	return int(lock.Pid), nil
}

func (l *pidLock) release() {
	l.file.Close()
}
