package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

var errInterrupted = errors.New("interrupted before the cluster was ready")

// runCommand starts a cluster and stays until a signal or the death of a child.
func runCommand(ctx context.Context, args *arguments, stdout, stderr io.Writer) error {
	assets, err := findPrograms(ctx, args.controlPlaneOnly, stderr)
	if err != nil {
		return err
	}
	i := instance{name: args.name, dir: args.dir}
	lock, err := i.acquire()
	if err != nil {
		return err
	}
	defer lock.release()
	err = supervise(ctx, i, lock, assets, args.controlPlaneOnly, stdout, stderr)
	if err != nil && !errors.Is(err, errInterrupted) {
		return errors.Join(err, i.cleanKeepingLogs())
	}
	return errors.Join(err, i.clean())
}

// findPrograms returns the folder with all the programs that the cluster needs.
func findPrograms(ctx context.Context, controlPlaneOnly bool, progress io.Writer) (string, error) {
	assets, err := ensureAssets(ctx, progress)
	if err != nil {
		return "", err
	}
	if missing := missingBinaries(assets, neededBinaries(controlPlaneOnly)); len(missing) > 0 {
		return "", fmt.Errorf("%s=%s has no %s; unset it to have all built, or use --control-plane-only",
			assetsVariable, assets, strings.Join(missing, ", "))
	}
	return assets, nil
}

// supervise runs the cluster. It returns nil after a signal to a cluster that was ready.
func supervise(ctx context.Context, i instance, lock *pidLock, assets string, controlPlaneOnly bool, stdout, stderr io.Writer) error {
	begin := time.Now()
	running, c, err := startCluster(ctx, i, assets, controlPlaneOnly, stderr)
	if err != nil && ctx.Err() != nil {
		return errInterrupted
	}
	if err != nil {
		return err
	}
	defer c.group.stop()
	if err := writeKubeconfig(i.kubeconfig(), i.name, c.server(), c.credentials); err != nil {
		return err
	}
	if err := i.markReady(lock); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "cluster %q is ready at %s after %.1fs; Ctrl-C ends it\n", i.name, c.server(), time.Since(begin).Seconds())
	fmt.Fprintln(stdout, exportLine(i.kubeconfig()))

	<-running.Done()
	i.unmarkReady(lock)
	var death *childDeath
	if cause := context.Cause(running); errors.As(cause, &death) {
		fmt.Fprintln(stderr, "ending the cluster, because a part of it died")
		return death
	}
	fmt.Fprintf(stderr, "ending cluster %q\n", i.name)
	return nil
}
