package scenarios

import (
	"os/exec"
	"syscall"
)

// endWithParent ends the process when this test dies, for whatever reason: a
// test binary that hits its time-out cleans up nothing.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
