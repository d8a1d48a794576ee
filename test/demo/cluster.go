package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// endLimit is how long ending takes at most; whoever waits for it wants to leave.
const endLimit = time.Minute

// place is the cluster in which the demo takes place.
type place struct {
	kubeconfig string
	kubectl    string
}

// build returns the path of a program: the given one, or a fresh one.
func (o *options) build(ctx context.Context, given, module, pkg, output string) (string, error) {
	if given != "" {
		if _, err := os.Stat(given); err != nil {
			return "", fmt.Errorf("%w; leave the flag out to have it built", err)
		}
		return given, nil
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", output, pkg)
	build.Dir = filepath.Join(o.root, module)
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s in %s: %w\n%s", pkg, build.Dir, err, text)
	}
	return output, nil
}

// openPlace starts the local cluster, or uses the one that was given. What it
// returns as end is never nil.
func (o *options) openPlace(ctx context.Context, folder string, progress io.Writer) (_ *place, end func(context.Context) error, err error) {
	end = func(context.Context) error { return nil }
	if o.kubeconfig != "" {
		p := &place{kubeconfig: o.kubeconfig, kubectl: o.kubectl}
		if p.kubectl == "" {
			p.kubectl, err = exec.LookPath("kubectl")
		}
		return p, end, err
	}
	o.localcluster, err = o.build(ctx, o.localcluster, "hack/localcluster", ".", filepath.Join(folder, "localcluster"))
	if err != nil {
		return nil, end, err
	}
	if err := o.endCluster(ctx); err != nil {
		return nil, end, err
	}
	p, err := o.startCluster(ctx, progress)
	return p, o.endCluster, err
}

// startCluster passes on what localcluster tells: the first time it builds for
// minutes.
func (o *options) startCluster(ctx context.Context, progress io.Writer) (*place, error) {
	assets, err := o.runLocalcluster(ctx, progress, "assets")
	if err != nil {
		return nil, err
	}
	up, err := o.runLocalcluster(ctx, progress, append([]string{"up"}, o.which()...)...)
	if err != nil {
		return nil, err
	}
	// up prints a line for a shell, quoted for one.
	unquote := exec.CommandContext(ctx, "sh", "-c", up+"\n"+`printf %s "$KUBECONFIG"`)
	kubeconfig, err := unquote.Output()
	if err != nil {
		return nil, fmt.Errorf("localcluster up printed %q: %w", up, err)
	}
	return &place{kubeconfig: string(kubeconfig), kubectl: filepath.Join(assets, "kubectl")}, nil
}

// endCluster ends the local cluster, whoever started it.
func (o *options) endCluster(ctx context.Context) error {
	var told bytes.Buffer
	if _, err := o.runLocalcluster(ctx, &told, append([]string{"down"}, o.which()...)...); err != nil {
		return fmt.Errorf("%w\n%s", err, &told)
	}
	return nil
}

// which tells localcluster which cluster is meant.
func (o *options) which() []string {
	if o.dir != "" {
		return []string{"--dir", o.dir}
	}
	return []string{"--name", o.name}
}

func (o *options) runLocalcluster(ctx context.Context, progress io.Writer, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, o.localcluster, arguments...)
	cmd.Dir = o.root
	cmd.Stderr = progress
	cmd.SysProcAttr = ownGroup()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endLimit
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("localcluster %s: %w", strings.Join(arguments, " "), err)
	}
	return strings.TrimSpace(string(output)), nil
}

// ending runs a clean-up that must not be cut short because the story was.
func ending(ctx context.Context, err *error, end func(context.Context) error) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer cancel()
	*err = errors.Join(*err, end(limited))
}
