//go:build !linux

package main

import "syscall"

// ownGroup keeps a child out of reach of Ctrl-C in the terminal, which the demo
// answers in order.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
