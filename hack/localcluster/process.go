package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// usualPatience is how long a child may take to end after SIGTERM before it is killed.
const usualPatience = 5 * time.Second

// program is what to start: a binary with its arguments, and what it listens on, for messages.
type program struct {
	name      string
	path      string
	args      []string
	listening string
}

// childDeath is the unexpected end of a child.
type childDeath struct {
	program program
	state   string
	logFile string
	tail    string
}

func (e *childDeath) Error() string {
	where := ""
	if e.program.listening != "" {
		where = " on " + e.program.listening
	}
	return fmt.Sprintf("%s%s ended unexpectedly: %s; last lines of %s:\n%s",
		e.program.name, where, e.state, e.logFile, e.tail)
}

// child is a started program.
type child struct {
	program program
	cmd     *exec.Cmd
	logFile string
	ended   chan struct{}
}

// processGroup starts children, notices when one dies, and ends them all.
type processGroup struct {
	logDir   string
	env      []string
	patience time.Duration
	fail     context.CancelCauseFunc

	mutex    sync.Mutex
	stopping bool
	children []*child
}

// newProcessGroup returns a group and a context that ends, with a childDeath as its cause, when a
// child ends that nobody asked to.
func newProcessGroup(ctx context.Context, logDir string, env []string) (context.Context, *processGroup) {
	ctx, fail := context.WithCancelCause(ctx)
	return ctx, &processGroup{logDir: logDir, env: env, patience: usualPatience, fail: fail}
}

// start starts a program with its output in a log file of its name.
func (g *processGroup) start(p program) error {
	logFile := filepath.Join(g.logDir, p.name+".log")
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own copy
	cmd := exec.Command(p.path, p.args...)
	cmd.Env = g.env
	cmd.Dir = g.logDir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttributes()
	if err := spawnFromOneThread(cmd); err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	c := &child{program: p, cmd: cmd, logFile: logFile, ended: make(chan struct{})}
	g.mutex.Lock()
	g.children = append(g.children, c)
	g.mutex.Unlock()
	go g.watch(c)
	return nil
}

func (g *processGroup) watch(c *child) {
	err := c.cmd.Wait()
	state := "exit status 0"
	if err != nil {
		state = err.Error()
	}
	g.mutex.Lock()
	expected := g.stopping
	g.mutex.Unlock()
	if !expected {
		g.fail(&childDeath{program: c.program, state: state, logFile: c.logFile, tail: lastLinesOfFile(c.logFile, 15)})
	}
	close(c.ended)
}

// stop ends all children by their process ids, the one started last first: each one loses the
// server that it talks to only after its own end.
func (g *processGroup) stop() {
	g.mutex.Lock()
	g.stopping = true
	children := g.children
	g.mutex.Unlock()
	for i := len(children) - 1; i >= 0; i-- {
		children[i].stop(g.patience)
	}
	g.fail(errors.New("stopped")) // frees the context
}

func (c *child) stop(patience time.Duration) {
	// Process.Signal knows whether the child was waited for: it never reaches a stranger who got
	// the same process id later.
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.ended:
		return
	case <-time.After(patience):
	}
	_ = c.cmd.Process.Kill()
	<-c.ended
}

var (
	spawnRequests chan func()
	spawnOnce     sync.Once
)

// spawnFromOneThread starts a process from an OS thread that lives as long as this process. The
// parent-death signal belongs to the thread that forked: from any other thread, which the runtime
// may end whenever it likes, the children could be killed in the middle of their work.
func spawnFromOneThread(cmd *exec.Cmd) error {
	spawnOnce.Do(func() {
		spawnRequests = make(chan func())
		go func() {
			runtime.LockOSThread() // never unlocked: a locked goroutine that never ends keeps its thread
			for request := range spawnRequests {
				request()
			}
		}()
	})
	result := make(chan error, 1)
	spawnRequests <- func() { result <- cmd.Start() }
	return <-result
}

// lastLinesOfFile returns the end of a log for a message; a log that cannot be read is told there.
func lastLinesOfFile(path string, n int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return lastLines(string(content), n)
}
