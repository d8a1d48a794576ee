package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
)

const defaultName = "default"

// clusterName keeps a name usable as a folder and in a kubeconfig.
var clusterName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)

// flagSet says which flags a command takes.
type flagSet int

const (
	noFlags       flagSet = iota
	instanceFlags         // which cluster
	startFlags            // which cluster, and what is in it
)

// arguments of a command, checked.
type arguments struct {
	name             string
	dir              string // absolute
	controlPlaneOnly bool
}

// parseArguments reads the flags of a command. For -h it prints the help and returns flag.ErrHelp.
func parseArguments(name string, cmd command, args []string, stdout io.Writer) (*arguments, error) {
	var parsed arguments
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the one place that prints errors is main
	if cmd.flags >= instanceFlags {
		flags.StringVar(&parsed.name, "name", "", "`NAME` of the cluster, for several side by side (default \""+defaultName+"\")")
		flags.StringVar(&parsed.dir, "dir", "", "`DIR` for the cluster's files (default: run/NAME in the cache folder)")
	}
	if cmd.flags >= startFlags {
		flags.BoolVar(&parsed.controlPlaneOnly, "control-plane-only", false,
			"only etcd and kube-apiserver: no controllers, no scheduler, no node")
	}
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(stdout, "localcluster %s %s.\n", name, cmd.summary)
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return nil, err
	case err != nil:
		return nil, usageError{err.Error()}
	case flags.NArg() > 0:
		return nil, usageError{fmt.Sprintf("unexpected argument %q", flags.Arg(0))}
	case cmd.flags == noFlags:
		return &parsed, nil
	}
	return &parsed, parsed.locate()
}

// locate checks which cluster is meant and finds its folder.
func (a *arguments) locate() error {
	if a.name != "" && a.dir != "" {
		return usageError{"give --name or --dir, not both"}
	}
	if a.dir != "" {
		dir, err := filepath.Abs(a.dir)
		if err != nil {
			return err
		}
		a.dir, a.name = dir, filepath.Base(dir)
		return nil
	}
	if a.name == "" {
		a.name = defaultName
	}
	if !clusterName.MatchString(a.name) {
		return usageError{fmt.Sprintf("--name %q: use 1 to 40 lower case letters, digits and hyphens", a.name)}
	}
	root, err := cacheRoot()
	if err != nil {
		return err
	}
	a.dir = filepath.Join(root, "run", a.name)
	return nil
}
