package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

//go:embed stages.yaml
var stages []byte

const (
	// startLimit is generous: seconds are usual, but a machine may be busy with a build.
	startLimit    = 2 * time.Minute
	startAttempts = 3
)

// cluster is one running cluster.
type cluster struct {
	instance         instance
	assets           string
	controlPlaneOnly bool
	credentials      *credentials
	ports            ports
	group            *processGroup
	api              *apiClient
}

func (c *cluster) internalKubeconfig() string {
	return filepath.Join(c.instance.dataDir(), "kubeconfig")
}
func (c *cluster) stagesFile() string { return filepath.Join(c.instance.dataDir(), "stages.yaml") }
func (c *cluster) server() string     { return "https://" + onLoopback(c.ports.apiServer) }

// startCluster starts a cluster and waits until it is ready. The context that it returns ends with
// ctx or, with a childDeath as its cause, when a child dies. When it fails, nothing is left running.
func startCluster(ctx context.Context, i instance, assets string, controlPlaneOnly bool, progress io.Writer) (context.Context, *cluster, error) {
	for attempt := 1; ; attempt++ {
		c := &cluster{instance: i, assets: assets, controlPlaneOnly: controlPlaneOnly}
		running, group := newProcessGroup(ctx, i.logDir(), childEnvironment(i))
		c.group = group
		err := c.prepare()
		if err == nil {
			err = c.startAll(running, progress)
		}
		if err == nil {
			return running, c, nil
		}
		group.stop()
		if attempt == startAttempts || !portWasTaken(err) {
			return nil, nil, err
		}
		fmt.Fprintln(progress, "another process took one of the ports meanwhile, trying again with others")
	}
}

// childEnvironment has no variable of the user's that the programs read as a setting (ETCD_*,
// KWOK_*, KUBECONFIG, proxies), nor the configuration files in the user's home.
func childEnvironment(i instance) []string {
	env := []string{"HOME=" + i.dataDir()}
	for _, name := range []string{"PATH", "TMPDIR"} {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// portWasTaken tells the one failure of a start that another try can mend.
func portWasTaken(err error) bool {
	var death *childDeath
	return errors.As(err, &death) && strings.Contains(death.tail, "address already in use")
}

// prepare writes what the programs read.
func (c *cluster) prepare() error {
	if err := c.instance.clean(); err != nil {
		return err
	}
	for _, dir := range []string{c.instance.dataDir(), c.instance.logDir()} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	var err error
	if c.ports, err = freePorts(); err != nil {
		return err
	}
	if c.credentials, err = createCredentials(filepath.Join(c.instance.dataDir(), "credentials")); err != nil {
		return err
	}
	if c.api, err = newAPIClient(c.server(), c.credentials); err != nil {
		return err
	}
	if err := os.WriteFile(c.stagesFile(), stages, 0o600); err != nil {
		return err
	}
	return writeKubeconfig(c.internalKubeconfig(), c.instance.name, c.server(), c.credentials)
}

// startAll starts one program after the other, each when those that it needs are ready.
func (c *cluster) startAll(ctx context.Context, progress io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not ready after %s", startLimit))
	defer cancel()
	fmt.Fprintf(progress, "starting etcd on %s and kube-apiserver on %s\n", onLoopback(c.ports.etcd), onLoopback(c.ports.apiServer))
	if err := c.group.start(c.etcd()); err != nil {
		return err
	}
	if err := c.poll(ctx, "etcd", c.checkEtcd); err != nil {
		return err
	}
	if err := c.group.start(c.apiServer()); err != nil {
		return err
	}
	if err := c.poll(ctx, "kube-apiserver", c.api.checkReady); err != nil {
		return err
	}
	if c.controlPlaneOnly {
		return nil
	}
	fmt.Fprintln(progress, "starting kube-controller-manager, kube-scheduler and kwok with one node")
	for _, p := range []program{c.controllerManager(), c.scheduler(), c.kwok()} {
		if err := c.group.start(p); err != nil {
			return err
		}
	}
	if err := c.poll(ctx, "creating the node", c.api.createNode); err != nil {
		return err
	}
	if err := c.poll(ctx, "kube-controller-manager", c.api.checkServiceAccount); err != nil {
		return err
	}
	return c.poll(ctx, "kwok and its node", c.api.checkNode)
}

// checkEtcd: once etcd accepts connections, the API server waits for the rest by itself.
func (c *cluster) checkEtcd(context.Context) error {
	connection, err := net.Dial("tcp", onLoopback(c.ports.etcd))
	if err != nil {
		return err
	}
	return connection.Close()
}

// poll repeats check until it succeeds or ctx ends, and says then what was waited for and why.
func (c *cluster) poll(ctx context.Context, what string, check func(context.Context) error) error {
	for {
		last := check(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
			continue
		case <-ctx.Done():
		}
		var death *childDeath
		cause := context.Cause(ctx)
		if errors.As(cause, &death) {
			return death
		}
		return fmt.Errorf("waiting for %s: %w; last answer: %v; logs: %s", what, cause, last, c.instance.logDir())
	}
}
