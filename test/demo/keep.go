package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

// leaveRunning starts the operator and the played parts once more, in a process
// of its own that outlives this one. It ends by itself when the cluster is gone,
// so that ending the cluster is all there is to do.
func (o *options) leaveRunning(ctx context.Context, p *place, s *screen) error {
	health, err := freeAddress()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(o.folder, "backstage.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(self, "--backstage="+health, "--kubeconfig="+p.kubeconfig, "--operator="+o.operator,
		"--folder="+o.folder, "--root="+o.root, "--log="+o.log)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	if err := waitReady(ctx, health, done, o.patience); err != nil {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-done
		content, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%w\n%s", err, content)
	}
	o.explain(p, s, cmd.Process.Pid)
	return nil
}

func waitReady(ctx context.Context, health string, done <-chan struct{}, patience time.Duration) error {
	late := time.After(patience)
	for !ready(ctx, health) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-done:
			return errors.New("what should be kept running ended by itself")
		case <-late:
			return fmt.Errorf("waited %s for the operator that is kept to be ready", patience)
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// explain prints what a viewer can do now. The lines are for copying: they are
// not folded.
func (o *options) explain(p *place, s *screen, pid int) {
	s.heading("The cluster and the operator go on running. To play with them:")
	s.print(fmt.Sprintf(`
  export KUBECONFIG=%s
  export PATH=%s:$PATH

  kubectl get upgradegate platform -n platform-system -o wide --watch
  kubectl patch database main -n database --type=merge -p '{"spec":{"release":"17"}}'
  kubectl patch upgradegate platform -n platform-system --type=merge -p '{"spec":{"hold":{"message":"not on a Friday"}}}'

`, quoted([]string{p.kubeconfig}), quoted([]string{filepath.Dir(p.kubectl)})))
	if o.kubeconfig != "" {
		s.say("To end the operator and what the demo plays: kill %d", pid)
		return
	}
	s.say("To end it all, from the root of the project: go run -C hack/localcluster . down --name %s", o.name)
}

// playBackstage is the process that leaveRunning starts.
func (o *options) playBackstage(ctx context.Context) (err error) {
	defer os.RemoveAll(o.folder)
	config, c, err := connect(o.kubeconfig)
	if err != nil {
		return err
	}
	pod, err := operatorPod(ctx, c)
	if err != nil {
		return err
	}
	played, wait := playParts(ctx, config)
	defer wait()
	process, err := startOperator(played, c, operatorStart{
		binary: o.operator, log: o.log, health: o.backstage, folder: o.folder, pod: pod, admin: config,
	})
	if err != nil {
		return err
	}
	defer func() { ending(ctx, &err, process.stop) }()
	gone, err := whenGone(played, config)
	if err != nil {
		return err
	}
	select {
	case <-played.Done():
		return context.Cause(played)
	case <-process.done:
		return process.death()
	case <-gone:
		return nil
	}
}

// whenGone tells when the API server has not answered for a while: the cluster
// was ended.
func whenGone(ctx context.Context, config *rest.Config) (<-chan struct{}, error) {
	short := rest.CopyConfig(config)
	short.Timeout = time.Second
	client, err := rest.HTTPClientFor(short)
	if err != nil {
		return nil, err
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for failures := 0; failures < 5; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
			failures++
			if response, err := client.Get(config.Host + "/readyz"); err == nil {
				response.Body.Close()
				if response.StatusCode < http.StatusInternalServerError && response.StatusCode != http.StatusUnauthorized {
					failures = 0
				}
			}
		}
	}()
	return gone, nil
}
