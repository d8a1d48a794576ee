package main

import "syscall"

// childAttributes: a process group of its own, so that Ctrl-C in the terminal reaches only the
// supervisor, which ends its children in order; and SIGKILL from the kernel when the supervisor
// dies without having done so.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
