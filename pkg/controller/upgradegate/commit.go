package upgradegate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
)

// proof is the last opening that this process proved with live reads.
type proof struct {
	told  gate.Announcement
	gates map[types.UID]int64
	at    time.Time
}

// errFrozen ends a pass of a process that has nothing to say any more.
var errFrozen = errors.New("our Deployment belongs to another version")

// commit makes the decision true outside: to OLM and in the statuses.
func (r *Reconciler) commit(ctx context.Context, p *pass) error {
	if r.Publisher.Publication().Frozen {
		return nil
	}
	r.complete(p)
	err := r.tellAll(ctx, p)
	if errors.Is(err, errFrozen) {
		return nil
	}
	return err
}

func (r *Reconciler) tellAll(ctx context.Context, p *pass) error {
	if !p.told.Open {
		return r.close(ctx, p)
	}
	if r.proven(p) {
		return r.writeStatuses(ctx, p)
	}
	return r.open(ctx, p)
}

// complete notes the first complete evaluation.
func (r *Reconciler) complete(p *pass) {
	if !r.evaluated && p.complete() {
		r.evaluated = true
		r.deadline.met()
	}
}

// close tells OLM first. That it could not be told is no reason not to write the
// statuses, which then say so.
func (r *Reconciler) close(ctx context.Context, p *pass) error {
	r.proof = proof{}
	told := r.Publisher.Close(ctx, p.told)
	held := r.Publisher.Publication()
	if held.Frozen {
		return errFrozen
	}
	// An OperatorCondition that does not exist holds nothing, and nobody can ever
	// be told: a gate that is being deleted must not wait for that.
	announced := told == nil && held.Problem == "" || held.Problem == v1alpha1.ReasonOperatorConditionNotFound
	if told != nil && (held.Problem != "" || held.Refusal != "") {
		// The status shows it, and the publisher goes on trying by itself and
		// wakes us when it succeeds.
		r.Log.V(1).Info("OLM could not be told", "error", told.Error())
		told = nil
	}
	written := r.writeStatuses(ctx, p)
	released := error(nil)
	if announced && written == nil {
		released = r.release(ctx, p)
	}
	return join([]error{told, written, released})
}

// proven reports whether OLM holds this opening, and this process proved it for
// the same gates not too long ago.
func (r *Reconciler) proven(p *pass) bool {
	if r.proof.told != p.told || !maps.Equal(r.proof.gates, p.generations()) {
		return false
	}
	if p.now.Sub(r.proof.at) >= proofLifetime {
		return false
	}
	held := r.Publisher.Publication()
	return held.Mode != v1alpha1.OLMModeV0 || held.Entry != nil && *held.Entry == p.told
}

func (p *pass) generations() map[types.UID]int64 {
	generations := make(map[types.UID]int64, len(p.gates))
	for _, g := range p.gates {
		generations[g.object.UID] = g.generation
	}
	return generations
}

// open reads everything anew, from the API server, before it tells OLM.
//
// What OLM holds is read first: whoever writes to it after that makes the last
// step fail. Each status is written under an optimistic lock. Reading hundreds of
// components takes a while, so the last look before OLM is told is at the gates
// once more, and at what the watches have brought meanwhile.
func (r *Reconciler) open(ctx context.Context, p *pass) error {
	started := r.Clock.Now()
	limited, cancel := context.WithTimeout(ctx, openingLimit)
	defer cancel()
	held, err := r.Publisher.Refresh(limited)
	if err != nil {
		// The status must still say what was found and that OLM does not hold it.
		r.Log.V(1).Info("cannot read what OLM holds", "error", err.Error())
	}
	live, err := r.judgeLive(limited)
	if err != nil {
		return err
	}
	if !live.told.Open {
		if err := r.close(ctx, live); err != nil {
			return err
		}
		return errUnconfirmed
	}
	if err := r.writeStatuses(limited, live); err != nil {
		return err
	}
	if r.Publisher.Publication().Problem != "" {
		// Nobody can be told. The statuses say so.
		return errUnconfirmed
	}
	if err := r.confirm(limited, live); err != nil {
		return err
	}
	if r.Clock.Since(started) > openingLimit {
		return errAgain
	}
	if err := r.Publisher.Open(limited, live.told, held.ResourceVersion); err != nil {
		return fmt.Errorf("opening the gate: %w", err)
	}
	r.proof = proof{told: live.told, gates: live.generations(), at: started}
	return nil
}

// confirm fails with errAgain when a gate has come, gone or changed since it was
// judged live, or a watch knows by now of a component that is not ready.
func (r *Reconciler) confirm(ctx context.Context, live *pass) error {
	var list v1alpha1.UpgradeGateList
	if err := r.Live.List(ctx, &list, client.InNamespace(r.Namespace)); err != nil {
		return fmt.Errorf("listing UpgradeGates in namespace %s: %w", r.Namespace, err)
	}
	now := r.newPass(list.Items, r.Clock.Now())
	if !maps.Equal(now.generations(), live.generations()) {
		return errAgain
	}
	now.judge(ctx, r.Watch)
	if !now.told.Open {
		return errAgain
	}
	return nil
}

// judgeLive makes a pass from the API server alone.
func (r *Reconciler) judgeLive(ctx context.Context) (*pass, error) {
	var list v1alpha1.UpgradeGateList
	if err := r.Live.List(ctx, &list, client.InNamespace(r.Namespace)); err != nil {
		return nil, fmt.Errorf("listing UpgradeGates in namespace %s: %w", r.Namespace, err)
	}
	live := r.newPass(list.Items, r.Clock.Now())
	live.live = true
	live.judge(ctx, readAhead(ctx, live.targets(), r.LiveComponents))
	return live, nil
}

// writeStatuses writes every status that differs, each under the lock of the
// resource version that was read.
func (r *Reconciler) writeStatuses(ctx context.Context, p *pass) error {
	r.Metrics.show(p, r.Publisher.Publication())
	var problems []error
	for _, g := range p.gates {
		err := r.writeStatus(ctx, p, g)
		if errors.Is(err, errFrozen) {
			return err
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("writing the status of UpgradeGate %s: %w", g.object.Name, err))
		}
	}
	return join(problems)
}

// join keeps a conflict recognisable among several errors of its kind: only when
// all are conflicts is a new pass all that is needed.
func join(problems []error) error {
	problems = slices.DeleteFunc(problems, func(err error) bool { return err == nil })
	for _, err := range problems {
		if !apierrors.IsConflict(err) {
			return errors.Join(problems...)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return problems[0]
}

func (r *Reconciler) writeStatus(ctx context.Context, p *pass, g *judged) error {
	// A request that hangs must not keep the next closing waiting.
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	before := g.object.Status
	after := gate.Project(before, p.report(g, r.Publisher.Publication(), r.OperatorVersion))
	same := apiequality.Semantic.DeepEqual(before, after)
	if same && !needsFinalizer(g.object) {
		return nil
	}
	if frozen, err := r.Owner.Check(ctx); err != nil || frozen {
		if frozen {
			return errFrozen
		}
		return fmt.Errorf("finding out whether our Deployment is still ours: %w", err)
	}
	object := g.object.DeepCopy()
	if err := r.addFinalizer(ctx, object); err != nil {
		return err
	}
	if !same {
		object.Status = after
		if err := r.Client.Status().Update(ctx, object); err != nil {
			// A gate that is gone needs no status.
			return client.IgnoreNotFound(err)
		}
		r.tell(object, before, after)
	}
	g.memory.written.note(g.object.ResourceVersion, object)
	r.own.note(object)
	g.object = object
	return nil
}

func needsFinalizer(object *v1alpha1.UpgradeGate) bool {
	return object.DeletionTimestamp == nil && !controllerutil.ContainsFinalizer(object, v1alpha1.GateFinalizer)
}

func (r *Reconciler) addFinalizer(ctx context.Context, object *v1alpha1.UpgradeGate) error {
	if !needsFinalizer(object) {
		return nil
	}
	base := object.DeepCopy()
	controllerutil.AddFinalizer(object, v1alpha1.GateFinalizer)
	return r.Client.Patch(ctx, object, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
}

// release lets gates go that are being deleted, once OLM has been told that they
// are closed.
func (r *Reconciler) release(ctx context.Context, p *pass) error {
	var problems []error
	for _, g := range p.gates {
		if g.object.DeletionTimestamp == nil || !controllerutil.ContainsFinalizer(g.object, v1alpha1.GateFinalizer) {
			continue
		}
		object := g.object.DeepCopy()
		controllerutil.RemoveFinalizer(object, v1alpha1.GateFinalizer)
		r.own.forget(object)
		err := r.Client.Patch(ctx, object, client.MergeFromWithOptions(g.object, client.MergeFromWithOptimisticLock{}))
		if client.IgnoreNotFound(err) != nil {
			problems = append(problems, fmt.Errorf("removing the finalizer of UpgradeGate %s: %w", g.object.Name, err))
		}
	}
	return join(problems)
}
