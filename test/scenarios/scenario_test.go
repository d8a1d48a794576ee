package scenarios

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/upgrade-gate/upgrade-gate/test/scenarios/judge"
)

const (
	// longestScenario bounds a scenario that hangs.
	longestScenario = 3 * time.Minute
	// patience is how long an expectation may take to come true.
	patience = 30 * time.Second
	// usualCSV is the name of the operator's CSV, and of its OperatorCondition.
	usualCSV = "gate.v1.0.0"
)

// scenario is one script at work: a namespace, an identity, and what runs there.
type scenario struct {
	c      *cluster
	t      *testing.T
	ns     string
	folder string
	ctx    context.Context
	// namespaces of this scenario; ns and those that it made.
	namespaces map[string]bool
	identity   *identity
	proxy      *proxy
	operators  map[string]*process // the last one of each name
	started    []*process
	// clusterWide removes what this scenario applied outside of its namespaces.
	clusterWideMu sync.Mutex
	clusterWide   []func(context.Context)
	stopOLM       func()
	stopNoise     func()
	// remembered is the OperatorCondition's revision at `remember`.
	remembered int64
	// apart is why gates and OLM may disagree at the end; empty when they may not.
	apart string
}

type scenarioKey struct{}

// of returns the scenario of a running script.
func of(ts *testscript.TestScript) *scenario {
	return ts.Value(scenarioKey{}).(*scenario)
}

func setupScenario(env *testscript.Env) error {
	s := newScenario(env.T().(runner).T, env.WorkDir)
	s.t.Cleanup(s.finish)
	if err := s.prepare(); err != nil {
		return err
	}
	env.Setenv("NS", s.ns)
	env.Setenv("OC", usualCSV)
	env.Setenv("KUBECONFIG", s.c.kubeconfig)
	env.Values[scenarioKey{}] = s
	return nil
}

func newScenario(t *testing.T, folder string) *scenario {
	ctx, cancel := context.WithTimeout(context.Background(), longestScenario)
	t.Cleanup(cancel)
	return &scenario{
		c: shared, t: t, folder: folder, ctx: ctx,
		namespaces: map[string]bool{}, operators: map[string]*process{},
		stopOLM: func() {}, stopNoise: func() {},
	}
}

// prepare makes what is there before the first line of a script: a namespace, the
// operator's account with its rights, the proxy, and the OperatorCondition.
func (s *scenario) prepare() error {
	if err := s.makeNamespace(s.t.Name()); err != nil {
		return err
	}
	s.identity = &identity{c: s.c, namespace: s.ns}
	for _, kind := range []string{"test.example.com/widgets", "apps/deployments"} {
		group, resource, _ := strings.Cut(kind, "/")
		s.identity.granted = append(s.identity.granted, readable(group, resource))
	}
	if err := s.identity.install(s.ctx); err != nil {
		return fmt.Errorf("give the operator its rights: %w", err)
	}
	config, err := s.identity.config(s.ctx)
	if err != nil {
		return err
	}
	if s.proxy, err = newProxy(config, s.c.recorder.newest); err != nil {
		return err
	}
	return s.makeOperatorCondition(usualCSV)
}

func (s *scenario) makeNamespace(testName string) error {
	short := strings.ReplaceAll(testName[strings.LastIndex(testName, "/")+1:], "_", "-")
	short = strings.Trim(strings.ToLower(short[:min(len(short), 40)]), "-")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: short + "-"}}
	made, err := s.c.kube.CoreV1().Namespaces().Create(s.ctx, namespace, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	s.ns = made.Name
	s.namespaces[made.Name] = true
	return nil
}

// makeOperatorCondition does what OLM does for a CSV: the object without any
// condition, which OLM reads as consent.
func (s *scenario) makeOperatorCondition(name string) error {
	oc := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operators.coreos.com/v2", "kind": "OperatorCondition",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"serviceAccounts": []any{serviceAccount}},
	}}
	_, err := s.c.dynamic.Resource(operatorConditions).Namespace(s.ns).Create(s.ctx, oc, metav1.CreateOptions{})
	return err
}

// finish judges the scenario, tells what was seen when something is wrong, and
// cleans up.
func (s *scenario) finish() {
	s.stopNoise()
	if !s.t.Failed() && s.proxy != nil {
		for _, wrong := range s.judge() {
			s.t.Errorf("broken promise: %s", wrong)
		}
	}
	if s.t.Failed() && s.proxy != nil {
		s.t.Log(s.picture())
	}
	for _, p := range s.started {
		if p.running() {
			p.kill()
		}
	}
	s.stopOLM()
	s.cleanUp()
}

// judge waits until the gates and OLM agree, and then has the whole history
// checked.
func (s *scenario) judge() []string {
	if err := s.unexpectedExit(); err != nil {
		return []string{err.Error()}
	}
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	var wrong []string
	for s.apart == "" && s.someoneWorks() {
		disagreement := judge.Agree(s.history())
		if disagreement == "" {
			break
		}
		select {
		case <-ctx.Done():
			wrong = append(wrong, "at the end "+disagreement)
		case <-time.After(50 * time.Millisecond):
			continue
		}
		break
	}
	ctx, cancel = context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	for namespace := range s.namespaces {
		if err := s.c.recorder.catchUp(ctx, namespace); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	for _, r := range s.proxy.since(time.Time{}) {
		if (r.verb == "list" || r.verb == "watch") && r.resource == "operatorconditions" {
			wrong = append(wrong, "OLM grants neither list nor watch: "+r.String())
		}
	}
	return append(wrong, judge.Check(s.history())...)
}

// someoneWorks reports whether an operator is left that can make things agree.
func (s *scenario) someoneWorks() bool {
	for _, p := range s.operators {
		if p.running() && !p.paused {
			return true
		}
	}
	return false
}

func (s *scenario) history() judge.History {
	return judge.History{Namespace: s.ns, Revisions: s.c.recorder.in(s.namespaces), Writes: s.proxy.allWrites()}
}

// afterwards has something done when all is over.
func (s *scenario) afterwards(do func(context.Context)) {
	s.clusterWideMu.Lock()
	defer s.clusterWideMu.Unlock()
	s.clusterWide = append(s.clusterWide, do)
}

// cleanUp matters on a cluster that outlives the test; errors do not.
func (s *scenario) cleanUp() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if s.identity != nil {
		s.identity.remove(ctx)
	}
	for _, remove := range s.clusterWide {
		remove(ctx)
	}
	noFinalizers := []byte(`{"metadata":{"finalizers":null}}`)
	seen := map[judge.Key]bool{}
	for _, revision := range s.c.recorder.in(s.namespaces) {
		key := revision.Key
		if object := s.c.recorder.now(key); !seen[key] && object != nil && len(object.GetFinalizers()) > 0 {
			if resource, err := s.c.resourceOf(strings.ToLower(key.Kind) + "." + key.Group); err == nil {
				_, _ = s.c.dynamic.Resource(resource).Namespace(key.Namespace).
					Patch(ctx, key.Name, types.MergePatchType, noFinalizers, metav1.PatchOptions{})
			}
		}
		seen[key] = true
	}
	for namespace := range s.namespaces {
		_ = s.c.kube.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})
	}
}

// eventually repeats check until it says that it saw what it wanted.
func (s *scenario) eventually(limit time.Duration, check func() (bool, string)) error {
	deadline := time.Now().Add(limit)
	for {
		ok, seen := check()
		if ok {
			return nil
		}
		if err := s.unexpectedExit(); err != nil {
			return err
		}
		if err := s.ctx.Err(); err != nil {
			return errors.Join(errors.New("the scenario takes too long; seen: "+seen), err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %s; seen: %s", limit, seen)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
