package upgradegate

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/conditions"
	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
	"github.com/upgrade-gate/upgrade-gate/pkg/probe"
)

// world is a reconciler on a real API server with its ports replaced: what is in
// memory and what is live can differ, and every effect is noted in order.
type world struct {
	t          *testing.T
	namespace  string
	client     client.WithWatch
	reconciler *Reconciler
	clock      *clocktesting.FakeClock

	memory, live *shelf
	olm          *fakeOLM
	owner        *fakeOwner
	events       *events.FakeRecorder
	journal      *journal
	// failStatus, when set, is asked before each status write.
	failStatus func(n int) error
}

// journal notes effects in the order in which they happen.
type journal struct {
	mutex sync.Mutex
	lines []string
}

func (j *journal) note(format string, arguments ...any) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, arguments...))
}

func (j *journal) take() []string {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	lines := j.lines
	j.lines = nil
	return lines
}

// shelf answers reads; what is not on it is unread.
type shelf struct {
	mutex    sync.Mutex
	readings map[string]component.Reading
	// onRead runs before each answer.
	onRead func(name string)
	reads  int
}

func (s *shelf) put(name string, reading component.Reading) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.readings[name] = reading
}

func (s *shelf) Read(_ context.Context, target component.Target) component.Reading {
	if s.onRead != nil {
		s.onRead(target.Name)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.reads++
	return s.readings[target.Name]
}

func (s *shelf) Want([]component.Target) {}

// plain prepares components without a probe: one target each, no expressions.
type plain struct{}

type plainPrepared component.Target

func (plain) Prepare(components []v1alpha1.Component, namespace string) ([]probe.Prepared, field.ErrorList) {
	var prepared []probe.Prepared
	var problems field.ErrorList
	for i, c := range components {
		if c.Resource.Name == "refused" {
			problems = append(problems, field.Invalid(field.NewPath("spec", "components").Index(i), c.Name, "refused by the test"))
		}
		prepared = append(prepared, plainPrepared{
			GVK: schema.FromAPIVersionAndKind(c.Resource.APIVersion, c.Resource.Kind), DefaultNamespace: namespace, Name: c.Resource.Name,
		})
	}
	return prepared, problems
}

func (p plainPrepared) Targets() []component.Target { return []component.Target{component.Target(p)} }

func (p plainPrepared) Observe(ctx context.Context, r probe.Reader) component.Observation {
	return component.Observation{Reading: r.Read(ctx, component.Target(p))}
}

// fakeOLM holds one entry, as the real publisher does in an OperatorCondition.
type fakeOLM struct {
	journal *journal
	held    gate.Publication
	version int
	// failClose and failOpen, when set, are returned instead of writing.
	failClose, failOpen error
	// onRefresh runs after a live read.
	onRefresh func()
}

func (o *fakeOLM) Publication() gate.Publication { return o.held }

func (o *fakeOLM) Refresh(context.Context) (gate.Publication, error) {
	held := o.held
	if o.onRefresh != nil {
		o.onRefresh()
	}
	return held, nil
}

func (o *fakeOLM) write(a gate.Announcement) {
	if o.held.Entry != nil && *o.held.Entry == a {
		return
	}
	o.version++
	o.held.ResourceVersion = fmt.Sprint(o.version)
	o.held.Entry, o.held.Acknowledged = &a, true
	o.journal.note("olm %s %s", a.Status(), a.Reason)
}

func (o *fakeOLM) Close(_ context.Context, a gate.Announcement) error {
	if o.failClose != nil {
		return o.failClose
	}
	o.write(a)
	return nil
}

func (o *fakeOLM) Open(_ context.Context, a gate.Announcement, resourceVersion string) error {
	if o.failOpen != nil {
		return o.failOpen
	}
	if resourceVersion != o.held.ResourceVersion {
		o.journal.note("olm conflict")
		return apierrors.NewConflict(schema.GroupResource{Resource: "operatorconditions"}, "x", fmt.Errorf("changed"))
	}
	o.write(a)
	return nil
}

// fakeOwner answers what it is told to.
type fakeOwner struct {
	frozen bool
	err    error
}

func (o *fakeOwner) Check(context.Context) (bool, error) { return o.frozen, o.err }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), journal: &journal{},
		memory: &shelf{readings: map[string]component.Reading{}}, live: &shelf{readings: map[string]component.Reading{}},
		events: events.NewFakeRecorder(1000), owner: &fakeOwner{},
	}
	w.olm = &fakeOLM{journal: w.journal, held: gate.Publication{Mode: v1alpha1.OLMModeV0, Name: "platform.v1.0.0", ResourceVersion: "0"}}
	base, err := client.NewWithWatch(cluster.config, client.Options{Scheme: cluster.scheme})
	require.NoError(t, err)
	writes := 0
	w.client = interceptor.NewClient(base, interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			writes++
			if w.failStatus != nil {
				if err := w.failStatus(writes); err != nil {
					return err
				}
			}
			status := meta.FindStatusCondition(o.(*v1alpha1.UpgradeGate).Status.Conditions, v1alpha1.ConditionUpgradeable)
			err := c.SubResource(sub).Update(ctx, o, opts...)
			if err == nil && status != nil {
				w.journal.note("status %s %s", status.Status, status.Reason)
			}
			return err
		},
	})
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "gate-"}}
	require.NoError(t, base.Create(t.Context(), ns))
	w.namespace = ns.Name
	w.restart()
	return w
}

// restart makes a new reconciler, as a new process would; what OLM holds stays.
func (w *world) restart() {
	w.reconciler = New(Config{
		Client: w.client, Live: w.client, LiveComponents: w.live, Watch: w.memory, Probes: plain{}, Publisher: w.olm, Owner: w.owner,
		Metrics: NewMetrics(prometheus.NewRegistry()), Events: w.events, Clock: w.clock, Log: logr.Discard(), Namespace: w.namespace, OperatorVersion: "1.0.0",
	})
}

// gate creates a gate whose components are the named objects.
func (w *world) gate(name string, minReady int32, objects ...string) *v1alpha1.UpgradeGate {
	w.t.Helper()
	g := &v1alpha1.UpgradeGate{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}}
	g.Spec.MinReadySeconds = &minReady
	g.Spec.Components = []v1alpha1.Component{}
	for _, o := range objects {
		g.Spec.Components = append(g.Spec.Components, v1alpha1.Component{
			Name: o, Resource: &v1alpha1.ResourceReference{APIVersion: "test.example.com/v1", Kind: "Widget", Name: o},
		})
	}
	require.NoError(w.t, w.client.Create(w.t.Context(), g))
	return g
}

// both puts a reading in memory and in the API server.
func (w *world) both(name string, reading component.Reading) {
	w.memory.put(name, reading)
	w.live.put(name, reading)
}

func green(generation int64) component.Reading {
	n := conditions.Number{State: conditions.NumberPresent, Value: generation}
	return component.Reading{Access: component.AccessFound, Snapshot: &component.Snapshot{
		UID: types.UID("uid"), Generation: generation, ObservedGeneration: n,
		Conditions: conditions.List{Items: []conditions.Condition{{Type: "Ready", Status: "True"}}},
	}}
}

func stale() component.Reading {
	r := green(4)
	r.Snapshot.Generation = 5
	return r
}

// pass makes one pass and returns its effects.
func (w *world) pass() (reconcile.Result, []string) {
	w.t.Helper()
	result, err := w.reconciler.Reconcile(w.t.Context(), reconcile.Request{})
	require.NoError(w.t, err)
	return result, w.journal.take()
}

// condition is one condition of a gate as stored: status, reason.
func (w *world) condition(name, conditionType string) string {
	w.t.Helper()
	c := meta.FindStatusCondition(w.stored(name).Status.Conditions, conditionType)
	require.NotNil(w.t, c, conditionType)
	return strings.Join([]string{string(c.Status), c.Reason}, " ")
}

func (w *world) stored(name string) *v1alpha1.UpgradeGate {
	w.t.Helper()
	var g v1alpha1.UpgradeGate
	require.NoError(w.t, w.client.Get(w.t.Context(), types.NamespacedName{Namespace: w.namespace, Name: name}, &g))
	return &g
}
