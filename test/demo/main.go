// Command demo shows what upgrade-gate does, on a real control plane: a product
// of three components, a gate, and the operator as a process with the rights that
// it ships with. It tells the story as it happens, and ends with exit code 0 only
// when it has seen every step of it.
//
//	go run ./test/demo          from the root of the project
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// Exit codes.
const (
	exitSeen    = 0
	exitNotSeen = 1
	exitUsage   = 2
)

// options are the flags.
type options struct {
	root         string
	name         string
	operator     string
	localcluster string
	kubeconfig   string
	kubectl      string
	log          string
	patience     time.Duration
	keep         bool
	// dir is the folder of the local cluster instead of a name, for tests.
	dir string

	// backstage and folder are for the process that --keep leaves behind.
	backstage string
	folder    string
}

func main() {
	// SIGHUP: the terminal was closed. SIGPIPE: whoever read the output went away,
	// which must not leave a cluster behind.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE)
	// The simulated controllers have nothing to tell that the story does not.
	ctrllog.SetLogger(logr.Discard())
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func execute(ctx context.Context, arguments []string, stdout, stderr io.Writer) int {
	o, err := parse(arguments, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitSeen
	case err != nil:
		fmt.Fprintln(stderr, "demo:", err)
		return exitUsage
	}
	if o.backstage != "" {
		err = o.playBackstage(ctx)
	} else {
		err = o.show(ctx, stdout, stderr)
	}
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "demo: interrupted")
		return exitNotSeen
	case err != nil:
		fmt.Fprintln(stderr, "demo:", err)
		return exitNotSeen
	}
	return exitSeen
}

func parse(arguments []string, stderr io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.keep, "keep", false, "leave the cluster and the operator running, and print how to play with them")
	flags.StringVar(&o.name, "name", "demo", "`NAME` of the local cluster that is started; one of that name is ended first")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`FILE`: use this cluster, an empty one with kwok nodes, instead of starting one")
	flags.StringVar(&o.kubectl, "kubectl", "", "`FILE`: kubectl to use with --kubeconfig (default: from PATH)")
	flags.StringVar(&o.operator, "operator", "", "`FILE`: the operator's binary (default: is built)")
	flags.StringVar(&o.localcluster, "localcluster", "", "`FILE`: the binary of hack/localcluster (default: is built)")
	flags.StringVar(&o.root, "root", ".", "`DIR`: the root of the project")
	flags.StringVar(&o.log, "log", "", "`FILE` for the operator's log (default: demo-operator.log in the user's cache folder)")
	flags.DurationVar(&o.patience, "patience", time.Minute, "how long a step is waited for")
	flags.StringVar(&o.backstage, "backstage", "", "internal: `ADDRESS` of the operator's health checks")
	flags.StringVar(&o.folder, "folder", "", "internal: `DIR` for temporary files")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: the demo takes flags only, see --help", flags.Arg(0))
	}
	return o, o.complete()
}

// complete makes every path absolute, because programs are run in the root.
func (o *options) complete() error {
	if _, err := os.Stat(filepath.Join(o.root, "config", "rbac")); err != nil {
		return errors.New("there is no config/rbac here: run the demo from the root of the project, or set --root")
	}
	if o.log == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("no place for the operator's log: %w; set --log", err)
		}
		o.log = filepath.Join(cache, "upgrade-gate", "demo-operator.log")
	}
	for _, path := range []*string{&o.root, &o.operator, &o.localcluster, &o.kubeconfig, &o.kubectl, &o.log, &o.folder} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	return nil
}
