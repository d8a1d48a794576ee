// Command upgrade-gate-operator holds OLM's upgrade brake until every component
// of a product has reconciled.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes.
const (
	exitOK = 0
	// exitFailed: the operator ended with an error, or lost its leadership.
	exitFailed = 1
	// exitUsage: flags, environment or kubeconfig cannot be used.
	exitUsage = 2
)

// version and commit are set by the linker.
var (
	version = "0.0.0-dev"
	commit  = "unknown"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole command, with everything that it takes from outside as
// arguments. It returns the exit code.
func run(ctx context.Context, arguments []string, env lookup, stdout, stderr io.Writer) int {
	o, err := parse(arguments, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return refuse(stderr, err)
	case o.showVersion:
		fmt.Fprintln(stdout, versionText())
		return exitOK
	}
	if err := o.complete(env, serviceAccountNamespace); err != nil {
		return refuse(stderr, err)
	}
	config, err := o.restConfig()
	if err != nil {
		return refuse(stderr, err)
	}
	if err := operate(ctx, o, config, stderr); err != nil {
		fmt.Fprintln(stderr, "upgrade-gate-operator:", err)
		return exitFailed
	}
	return exitOK
}

func refuse(stderr io.Writer, err error) int {
	fmt.Fprintln(stderr, "upgrade-gate-operator:", err)
	return exitUsage
}
