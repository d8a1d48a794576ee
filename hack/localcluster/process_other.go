//go:build !linux

package main

import "syscall"

// childAttributes: a process group of its own, so that Ctrl-C in the terminal reaches only the
// supervisor, which ends its children in order. Only Linux can also end them when the supervisor
// is killed; elsewhere they are left over then.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
