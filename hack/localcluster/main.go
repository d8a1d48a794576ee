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

const usage = `localcluster runs a real Kubernetes ` + kubeVersion + ` control plane on this machine, on loopback, with RBAC.

Usage:
  localcluster assets   build what is missing and print the folder with the binaries
  localcluster run      start a cluster and supervise it in the foreground; Ctrl-C ends it
  localcluster up       start a cluster in the background and wait until it is ready
  localcluster down     end a cluster that "up" or "run" started, and wait until it is gone
  localcluster status   say whether a cluster is up

"localcluster COMMAND -h" tells the flags of a command.

Environment:
  KUBEBUILDER_ASSETS    a folder with ready-made binaries: used as it is, nothing is built
  XDG_CACHE_HOME        where the binaries and the clusters' files go (default: ~/.cache)

Exit codes: 0 done, 1 failed (status: not up), 2 wrong usage.
`

// command is one subcommand. Its results go to stdout, all that it tells meanwhile to stderr.
type command struct {
	summary string
	run     func(ctx context.Context, args *arguments, stdout, stderr io.Writer) error
	flags   flagSet
}

// commands is a function, not a variable, to show that nothing changes it.
func commands() map[string]command {
	return map[string]command{
		"assets": {"builds what is missing, then prints the folder with the binaries", assetsCommand, noFlags},
		"run":    {"starts a cluster and supervises it in the foreground; Ctrl-C ends it and removes its data", runCommand, startFlags},
		"up":     {"starts a cluster in the background, waits until it is ready and prints how to use it", upCommand, startFlags},
		"down":   {"ends a cluster, waits until it is gone and removes its data", downCommand, instanceFlags},
		"status": {"says whether a cluster is up; exit code 1 when it is not", statusCommand, instanceFlags},
	}
}

// usageError is a wrong command line: exit code 2.
type usageError struct {
	message string
}

func (e usageError) Error() string { return e.message }

// errNotUp is the answer of status, not a failure that needs a message of its own.
var errNotUp = errors.New("not up")

func main() {
	// SIGHUP: the terminal was closed. SIGPIPE: whoever read the output went away; this must not
	// kill the supervisor before it has ended its children.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE)
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// execute runs one command line and returns the exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	name := args[0]
	if name == "-h" || name == "--help" || name == "help" {
		fmt.Fprint(stdout, usage)
		return 0
	}
	cmd, known := commands()[name]
	if !known {
		fmt.Fprintf(stderr, "localcluster: unknown command %q; \"localcluster -h\" lists the commands\n", name)
		return 2
	}
	parsed, err := parseArguments(name, cmd, args[1:], stdout)
	if err == nil {
		err = cmd.run(ctx, parsed, stdout, stderr)
	}
	return exitCode(name, err, stderr)
}

func exitCode(name string, err error, stderr io.Writer) int {
	var wrongUsage usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errNotUp):
		return 1
	case errors.As(err, &wrongUsage):
		fmt.Fprintf(stderr, "localcluster %s: %v; \"localcluster %s -h\" tells the flags\n", name, err, name)
		return 2
	default:
		fmt.Fprintf(stderr, "localcluster %s: %v\n", name, err)
		return 1
	}
}

func assetsCommand(ctx context.Context, _ *arguments, stdout, stderr io.Writer) error {
	dir, err := ensureAssets(ctx, stderr)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, dir)
	return err
}
