package upgradegate

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
)

// Bounds of the back-off after a pass that failed. The upper one keeps a right
// that was granted, or a server that came back, from being noticed late.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 10 * time.Second
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// wake lets others ask for a pass before, while and after the controller runs.
type wake struct {
	queue atomic.Pointer[queue]
}

// Wake asks for a pass. It never blocks, and does nothing while this process is
// not the leader, because becoming the leader starts with a pass.
func (r *Reconciler) Wake() {
	if q := r.wake.queue.Load(); q != nil {
		(*q).Add(reconcile.Request{})
	}
}

// SetupWithManager adds the controller to the manager; it runs on the leader.
func (r *Reconciler) SetupWithManager(m manager.Manager) error {
	c, err := controller.New("upgradegate", m, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: 1,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	})
	if err != nil {
		return err
	}
	everyGate := func(context.Context, *v1alpha1.UpgradeGate) []reconcile.Request { return []reconcile.Request{{}} }
	kind := source.Kind(m.GetCache(), &v1alpha1.UpgradeGate{}, handler.TypedEnqueueRequestsFromMapFunc(everyGate),
		predicate.TypedFuncs[*v1alpha1.UpgradeGate]{UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.UpgradeGate]) bool {
			return !r.own.made(e.ObjectNew)
		}})
	if err := c.Watch(kind); err != nil {
		return err
	}
	// The first pass is made although there may be no gate.
	if err := c.Watch(source.Func(func(_ context.Context, q queue) error {
		r.wake.queue.Store(&q)
		q.Add(reconcile.Request{})
		return nil
	})); err != nil {
		return err
	}
	r.deadline.publisher, r.deadline.policy = r.Publisher, r.Policy
	return m.Add(&r.deadline)
}

// deadline closes the gate when a new leader has no complete evaluation in time:
// what OLM holds then was decided by somebody who is gone. It runs beside the
// passes, because even the first one waits for the API server.
type deadline struct {
	publisher Publisher
	policy    gate.Policy
	once      sync.Once
	made      sync.Once
	done      chan struct{}
}

func (d *deadline) channel() chan struct{} {
	d.made.Do(func() { d.done = make(chan struct{}) })
	return d.done
}

// met calls the deadline off.
func (d *deadline) met() {
	d.once.Do(func() { close(d.channel()) })
}

// Start implements manager.Runnable.
func (d *deadline) Start(ctx context.Context) error {
	timer := time.NewTimer(startGrace)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-d.channel():
	case <-timer.C:
		why := "no complete evaluation yet: the components could not all be read in time"
		// The publisher goes on trying by itself.
		_ = d.publisher.Close(ctx, d.policy.Initializing(why))
	}
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (d *deadline) NeedLeaderElection() bool { return true }
