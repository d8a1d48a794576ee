package scenarios

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// process is one run of the operator, as a process of this machine.
type process struct {
	name            string
	cmd             *exec.Cmd
	log             *tail
	health, metrics string
	done            chan struct{}
	// mayExit is set when the scenario ends the process or expects its end.
	mayExit atomic.Bool
	paused  bool
	// starting guards cmd.Process against the proxy's kill.
	starting sync.Mutex
}

// startOperator runs the operator through the scenario's proxy. It takes an
// environment and flags beside the usual ones; those given later win.
func (s *scenario) startOperator(name string, environment map[string]string, flags []string) error {
	if p := s.operators[name]; p != nil && p.running() {
		return fmt.Errorf("operator %q runs already", name)
	}
	p := &process{name: name, log: &tail{}, done: make(chan struct{}), health: freeAddress(), metrics: freeAddress()}
	server, closeDoor, err := s.proxy.listen(name, p.interrupt)
	if err != nil {
		return err
	}
	config := filepath.Join(s.folder, name+".kubeconfig")
	if err := kubeconfig(config, server); err != nil {
		return err
	}
	p.cmd = exec.Command(s.c.operator, append([]string{
		"--kubeconfig=" + config,
		"--health-probe-bind-address=" + p.health,
		"--metrics-bind-address=" + p.metrics, "--metrics-secure=false",
		// Short, so that another one takes over while a test waits for it.
		"--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=500ms",
	}, flags...)...)
	p.cmd.Env = []string{"HOME=" + s.folder}
	for key, value := range environment {
		p.cmd.Env = append(p.cmd.Env, key+"="+value)
	}
	slices.Sort(p.cmd.Env)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	endWithParent(p.cmd)
	p.starting.Lock()
	err = p.cmd.Start()
	p.starting.Unlock()
	if err != nil {
		closeDoor()
		return err
	}
	go func() {
		_ = p.cmd.Wait()
		closeDoor()
		close(p.done)
	}()
	s.operators[name] = p
	s.started = append(s.started, p)
	return nil
}

// usualEnvironment is what OLM and the Deployment give the operator.
func (s *scenario) usualEnvironment(name, operatorCondition string) map[string]string {
	return map[string]string{"POD_NAMESPACE": s.ns, "POD_NAME": name, "OPERATOR_CONDITION_NAME": operatorCondition}
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *process) signal(sig syscall.Signal) error {
	if !p.running() {
		return fmt.Errorf("operator %q does not run:\n%s", p.name, p.log.last(20))
	}
	return p.cmd.Process.Signal(sig)
}

// kill ends the process at once, as a lost node does.
func (p *process) kill() {
	p.mayExit.Store(true)
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.done
}

// stop ends it as Kubernetes does, and expects that it goes in peace.
func (p *process) stop() error {
	p.mayExit.Store(true)
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	code, err := p.wait(30 * time.Second)
	if err == nil && code != 0 {
		err = fmt.Errorf("operator %q ended with exit code %d after SIGTERM:\n%s", p.name, code, p.log.last(20))
	}
	return err
}

func (p *process) wait(limit time.Duration) (int, error) {
	p.mayExit.Store(true)
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-time.After(limit):
		return 0, fmt.Errorf("operator %q still runs after %s:\n%s", p.name, limit, p.log.last(20))
	}
}

// unexpectedExit reports an operator that ended by itself.
func (s *scenario) unexpectedExit() error {
	for _, p := range s.operators {
		if !p.mayExit.Load() && !p.running() {
			return fmt.Errorf("operator %q ended by itself, exit code %d:\n%s", p.name, p.cmd.ProcessState.ExitCode(), p.log.last(20))
		}
	}
	return nil
}

func (s *scenario) find(name string) (*process, error) {
	if p := s.operators[name]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("operator %q was never started", name)
}

// interrupt is the proxy's way to end an operator in the middle of a request.
func (p *process) interrupt() {
	p.mayExit.Store(true)
	p.starting.Lock()
	defer p.starting.Unlock()
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
}

// freeAddress is a loopback address on which nobody listens at this moment.
func freeAddress() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(errors.Join(errors.New("no free port on loopback"), err))
	}
	defer listener.Close()
	return listener.Addr().String()
}

// tail keeps what a process prints.
type tail struct {
	mu   sync.Mutex
	text strings.Builder
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(b)
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// last returns the last lines.
func (t *tail) last(n int) string {
	lines := strings.Split(strings.TrimRight(t.String(), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
