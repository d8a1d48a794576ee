package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	pollInterval = 100 * time.Millisecond
	// endLimit is more than ending every child takes when each one has to be killed.
	endLimit = 45 * time.Second
)

// upCommand starts "run" detached and waits until it is ready. When it is up already, it says so.
func upCommand(ctx context.Context, args *arguments, stdout, stderr io.Writer) error {
	i := instance{name: args.name, dir: args.dir}
	current, _, err := i.inspect()
	if err != nil {
		return err
	}
	if current == ready {
		fmt.Fprintf(stderr, "cluster %q is already up\n", i.name)
		return announce(i, stdout, stderr)
	}
	// Here, and not in the background, so that the progress of a build is seen.
	if _, err := findPrograms(ctx, args.controlPlaneOnly, stderr); err != nil {
		return err
	}
	if err := i.create(); err != nil {
		return err
	}
	return startAndWait(ctx, i, args.controlPlaneOnly, stdout, stderr)
}

// startDetached starts this program's own "run" in a session of its own, out of reach of the
// terminal's signals, with its output in a log file.
func startDetached(i instance, controlPlaneOnly bool) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(i.logFile(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own copy
	cmd := exec.Command(self, "run", "--dir", i.dir, fmt.Sprintf("--control-plane-only=%t", controlPlaneOnly))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, cmd.Start()
}

// startAndWait starts the supervisor when there is none, and waits until the cluster is ready.
// Other processes may start and end the same cluster meanwhile: a cluster that ends is waited for
// and then started, one that somebody else starts is waited for.
func startAndWait(ctx context.Context, i instance, controlPlaneOnly bool, stdout, stderr io.Writer) error {
	var supervisor *exec.Cmd
	var exited chan struct{} // nil, which never happens, for as long as no supervisor is ours
	for {
		current, _, err := i.inspect()
		if err != nil {
			return err
		}
		if current == ready {
			return announce(i, stdout, stderr)
		}
		if current == stopped && supervisor == nil {
			fmt.Fprintf(stderr, "starting cluster %q\n", i.name)
			if supervisor, err = startDetached(i, controlPlaneOnly); err != nil {
				return err
			}
			exited = make(chan struct{})
			go func() {
				_ = supervisor.Wait()
				close(exited)
			}()
		}
		select {
		case <-exited:
			if current, _, err := i.inspect(); err == nil && current != stopped {
				supervisor, exited = nil, nil // it lost against another one: that one is waited for
				continue
			}
			return fmt.Errorf("cluster %q did not start; last lines of %s:\n%s", i.name, i.logFile(), lastLinesOfFile(i.logFile(), 20))
		case <-ctx.Done():
			if exited != nil {
				_ = supervisor.Process.Signal(syscall.SIGTERM)
				<-exited
			}
			return errInterrupted
		case <-time.After(pollInterval):
		}
	}
}

// announce prints how to use the cluster: the shell command to stdout, so that a shell can eval it.
func announce(i instance, stdout, stderr io.Writer) error {
	fmt.Fprintf(stderr, "kubeconfig: %s\n", i.kubeconfig())
	_, err := fmt.Fprintln(stdout, exportLine(i.kubeconfig()))
	return err
}

// downCommand ends the supervisor, which ends the rest, and waits until it is gone.
func downCommand(ctx context.Context, args *arguments, _, stderr io.Writer) error {
	i := instance{name: args.name, dir: args.dir}
	current, pid, err := i.inspect()
	if err != nil {
		return err
	}
	if current == stopped {
		fmt.Fprintf(stderr, "cluster %q is not up\n", i.name)
		return removeLeftovers(i)
	}
	if pid <= 1 { // the kernel has no id for a process of another pid namespace
		return fmt.Errorf("cluster %q is supervised by a process that is not visible here; end it where it was started", i.name)
	}
	if err := endSupervisor(ctx, i, pid); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "cluster %q is down\n", i.name)
	return removeLeftovers(i)
}

// endSupervisor asks the process that holds the lock to end, and kills it when it does not.
func endSupervisor(ctx context.Context, i instance, pid int) error {
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("ending process %d: %w", pid, err)
	}
	deadline := time.Now().Add(endLimit)
	for {
		current, holder, err := i.inspect()
		if err != nil {
			return err
		}
		if current == stopped || holder != pid {
			return nil
		}
		if time.Now().After(deadline) {
			// Asked again just now, the kernel named this process: it is the supervisor.
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("killing process %d: %w", pid, err)
			}
			deadline = deadline.Add(endLimit)
		}
		select {
		case <-ctx.Done():
			return errors.New("interrupted while waiting for the cluster to end")
		case <-time.After(pollInterval):
		}
	}
}

// removeLeftovers removes what a killed supervisor could not, and the log of "up".
func removeLeftovers(i instance) error {
	if _, err := os.Stat(i.pidFile()); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	lock, err := i.acquire() // cleans
	var up *alreadyUp
	if errors.As(err, &up) {
		return nil // somebody has started it anew: nothing is left over
	}
	if err != nil {
		return err
	}
	defer lock.release()
	return os.RemoveAll(i.logFile())
}

// statusCommand prints what there is to know about a cluster.
func statusCommand(_ context.Context, args *arguments, stdout, _ io.Writer) error {
	i := instance{name: args.name, dir: args.dir}
	current, pid, err := i.inspect()
	if err != nil {
		return err
	}
	switch current {
	case ready:
		fmt.Fprintf(stdout, "cluster %q is up (process %d)\nkubeconfig: %s\nlogs: %s\n", i.name, pid, i.kubeconfig(), i.logDir())
		return nil
	case starting:
		fmt.Fprintf(stdout, "cluster %q is starting or ending (process %d)\nlogs: %s\n", i.name, pid, i.logDir())
	default:
		fmt.Fprintf(stdout, "cluster %q is not up\n", i.name)
		if logs, _ := filepath.Glob(filepath.Join(i.logDir(), "*.log")); len(logs) > 0 {
			fmt.Fprintf(stdout, "its last run failed; logs: %s\n", i.logDir())
		}
	}
	return errNotUp
}
