// Package upgradegate carries one pass over the gates of the operator's
// namespace, from their specs to OLM and their statuses.
//
// All gates are judged in one pass, because OLM is told one thing about all of
// them. The order of the steps is the safety argument: closing tells OLM first
// and writes statuses then; opening reads every component anew, writes statuses
// under an optimistic lock, and tells OLM last.
package upgradegate

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
	"github.com/upgrade-gate/upgrade-gate/pkg/probe"
)

// Times that bound a pass.
const (
	// startGrace is how long a new leader leaves alone what OLM holds while it
	// has no complete evaluation.
	startGrace = 10 * time.Second
	// openingLimit bounds the time between the first live read of an opening and
	// telling OLM: evidence older than that is read anew. It also ends the
	// opening of a process that was paused in the middle of it.
	openingLimit = 15 * time.Second
	// writeLimit bounds the writes to one gate.
	writeLimit = 5 * time.Second
	// proofLifetime is how long an opening counts before everything is read live
	// again.
	proofLifetime = 10 * time.Minute
)

// Watcher keeps wanted objects in memory and answers from there, without I/O.
type Watcher interface {
	probe.Reader
	// Want replaces the set of objects to keep. It does not wait.
	Want(targets []component.Target)
}

// Preparer checks and compiles the components of one gate; see probe.Registry.
type Preparer interface {
	Prepare(components []v1alpha1.Component, namespace string) ([]probe.Prepared, field.ErrorList)
}

// Publisher is the only thing that tells OLM anything.
type Publisher interface {
	// Publication is what OLM held when it was last read; no I/O.
	Publication() gate.Publication
	// Refresh reads it live.
	Refresh(ctx context.Context) (gate.Publication, error)
	// Close tells OLM Upgradeable=False, whatever it holds.
	Close(ctx context.Context, a gate.Announcement) error
	// Open tells OLM Upgradeable=True if the OperatorCondition still is at
	// resourceVersion, and fails with a conflict if it is not.
	Open(ctx context.Context, a gate.Announcement, resourceVersion string) error
}

// Owner knows whether this process still speaks for its CSV.
type Owner interface {
	// Check reads live whether our Deployment belongs to another CSV by now; then
	// this process writes nothing more.
	Check(ctx context.Context) (frozen bool, err error)
}

// Config is what a Reconciler is made of. Every field is needed.
type Config struct {
	// Client reads gates from a cache of Namespace and writes them.
	Client client.Client
	// Live reads gates from the API server.
	Live client.Reader
	// LiveComponents reads components from the API server.
	LiveComponents probe.Reader
	Watch          Watcher
	Probes         Preparer
	Publisher      Publisher
	Owner          Owner
	Metrics        *Metrics
	Events         events.EventRecorder
	Clock          clock.PassiveClock
	Log            logr.Logger
	// Namespace is the operator's own; gates elsewhere are not honoured.
	Namespace       string
	OperatorVersion string
	Policy          gate.Policy
}

// Reconciler judges all gates of a namespace. It is not safe for concurrent
// passes: run it with one worker.
type Reconciler struct {
	Config
	memory map[types.UID]*memory
	// wanted are the gates whose components are watched, by generation.
	wanted map[types.UID]int64
	// start is when this process became leader and made its first pass.
	start time.Time
	// evaluated is set after the first complete evaluation.
	evaluated bool
	proof     proof
	wake      wake
	own       ownWrites
	deadline  deadline
}

// New makes a reconciler that has seen nothing yet.
func New(c Config) *Reconciler {
	return &Reconciler{Config: c, memory: map[types.UID]*memory{}}
}

// Reconcile makes one pass. The request says nothing: every pass looks at all
// gates of the namespace.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	pass, err := r.begin(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if generations := pass.generations(); !maps.Equal(generations, r.wanted) {
		r.Watch.Want(pass.targets())
		r.wanted = generations
	}
	pass.judge(ctx, r.Watch)
	if r.holdsBack(pass) {
		return reconcile.Result{RequeueAfter: min(r.patience(), startGrace-pass.now.Sub(r.start))}, nil
	}
	err = r.commit(ctx, pass)
	switch {
	case errors.Is(err, errAgain) || apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: again}, nil
	case errors.Is(err, errUnconfirmed):
		return reconcile.Result{RequeueAfter: unconfirmed}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.next(pass)}, nil
}

const (
	// again is how soon a pass is repeated whose evidence or lock was lost.
	again = 50 * time.Millisecond
	// unconfirmed is how soon an opening is tried again that the live reads did
	// not confirm. Mostly a watch brings the news before that; but a read that
	// failed once, or a right to get that was granted, wakes nobody.
	unconfirmed = 10 * time.Second
)

var (
	// errAgain ends a pass that has to be made anew from the start.
	errAgain = errors.New("the evidence of this pass is out of date")
	// errUnconfirmed ends a pass that would open by what is in memory, and is
	// closed by what was read live.
	errUnconfirmed = errors.New("the live reads do not confirm what is in memory")
)

// holdsBack reports whether this pass must not speak yet. A new leader leaves
// alone what OLM holds until it has read that, and every component, once, for
// startGrace at most, unless it already knows of a reason to close what is open:
// half of the components would only make a message that is wrong a moment later.
func (r *Reconciler) holdsBack(p *pass) bool {
	if r.evaluated || p.now.Sub(r.start) >= startGrace {
		return false
	}
	held := r.Publisher.Publication()
	if held.Problem == v1alpha1.ReasonPublishFailed {
		return !p.bad()
	}
	return !p.complete() && (!p.bad() || held.Entry != nil && !held.Entry.Open)
}

// patience is how soon a pass that was held back is made anew although nothing
// wakes it.
func (r *Reconciler) patience() time.Duration {
	if r.Publisher.Publication().Problem != "" {
		return time.Second
	}
	return startGrace
}

// next is when a pass is due although nothing wakes it.
func (r *Reconciler) next(p *pass) time.Duration {
	soonest := proofLifetime
	for _, g := range p.gates {
		if after := g.decision.RecheckAfter; after > 0 && after < soonest {
			soonest = after
		}
	}
	if p.told.Open && !r.proof.at.IsZero() {
		soonest = min(soonest, max(again, proofLifetime-r.Clock.Since(r.proof.at)))
	}
	return soonest
}
