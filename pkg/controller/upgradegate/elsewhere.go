package upgradegate

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/conditions"
)

// Elsewhere tells the owners of gates outside the operator's namespace that
// their gates have no effect. A gate that another operator honours, which shows by
// its finalizer, is left alone. It does nothing else with them, and nothing at all
// unless the operator was given the rights to list, watch and update the status
// of gates in the whole cluster.
type Elsewhere struct {
	Client    client.Client
	NewCache  func() (cache.Cache, error)
	Clock     clock.PassiveClock
	Log       logr.Logger
	Namespace string
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (e *Elsewhere) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable. The rights are looked at once: granting
// them later takes a restart.
func (e *Elsewhere) Start(ctx context.Context) error {
	allowed, err := e.allowed(ctx)
	if err != nil || !allowed {
		e.Log.V(1).Info("gates in other namespaces are not looked at", "allowed", allowed, "error", fmt.Sprint(err))
		return nil
	}
	if err := e.watch(ctx); err != nil {
		// A courtesy must not stop the operator.
		e.Log.Error(err, "gates in other namespaces are not looked at any more")
	}
	return nil
}

func (e *Elsewhere) watch(ctx context.Context) error {
	gates, err := e.NewCache()
	if err != nil {
		return fmt.Errorf("making a cache of gates in all namespaces: %w", err)
	}
	informer, err := gates.GetInformer(ctx, &v1alpha1.UpgradeGate{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching gates in all namespaces: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { e.notice(ctx, o) },
		UpdateFunc: func(_, o any) { e.notice(ctx, o) },
	})
	if err != nil {
		return fmt.Errorf("watching gates in all namespaces: %w", err)
	}
	return gates.Start(ctx)
}

// allowed asks the API server for the three rights.
func (e *Elsewhere) allowed(ctx context.Context) (bool, error) {
	for _, right := range []struct{ verb, subresource string }{{"list", ""}, {"watch", ""}, {"update", "status"}} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: v1alpha1.GroupVersion.Group, Resource: "upgradegates", Verb: right.verb, Subresource: right.subresource,
			},
		}}
		if err := e.Client.Create(ctx, review); err != nil {
			return false, err
		}
		if !review.Status.Allowed {
			return false, nil
		}
	}
	return true, nil
}

func (e *Elsewhere) notice(ctx context.Context, o any) {
	found, ok := o.(*v1alpha1.UpgradeGate)
	if !ok || found.Namespace == e.Namespace {
		return
	}
	if controllerutil.ContainsFinalizer(found, v1alpha1.GateFinalizer) {
		// Another operator, of another product, honours it.
		return
	}
	object := found.DeepCopy()
	wanted := []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNamespaceNotHonoured,
		Message:            fmt.Sprintf("this gate has no effect: create it in namespace %s, where the operator runs", e.Namespace),
		ObservedGeneration: object.Generation,
	}}
	object.Status = v1alpha1.UpgradeGateStatus{
		ObservedGeneration: object.Generation,
		Conditions:         conditions.Merge(object.Status.Conditions, wanted, metav1.NewTime(e.Clock.Now())),
	}
	if apiequality.Semantic.DeepEqual(found.Status, object.Status) {
		return
	}
	if err := e.Client.Status().Update(ctx, object); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		e.Log.Error(err, "cannot tell the owner of a gate that it has no effect", "namespace", object.Namespace, "gate", object.Name)
	}
}
