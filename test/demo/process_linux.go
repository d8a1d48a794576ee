package main

import "syscall"

// ownGroup keeps a child out of reach of Ctrl-C in the terminal, which the demo
// answers in order, and ends it when the demo dies without having done so.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
