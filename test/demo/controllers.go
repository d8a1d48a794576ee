package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// workTime is how long the simulated controllers take for a change.
const workTime = 1500 * time.Millisecond

// conditionUpdate says how a kind's conditions change when work on a generation
// begins or is done.
type conditionUpdate func(conditions *[]metav1.Condition, generation int64, done bool)

// simulated is a controller that does what the demo needs of one: it takes a
// while, and reports as many controllers do. It works while its Deployment has a
// pod, so that it can be stopped with kubectl scale.
type simulated struct {
	client.Client
	// live reads past the cache: what has been stopped must not work for even a
	// moment longer.
	live       client.Reader
	kind       schema.GroupVersionKind
	deployment string
	// onStatus is set for a kind that reports one observedGeneration for all.
	onStatus bool
	report   conditionUpdate

	mu    sync.Mutex
	begun map[string]time.Time
}

// runControllers plays the controllers of Database and Storage until ctx ends.
func runControllers(ctx context.Context, config *rest.Config) error {
	off := ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}}
	m, err := ctrl.NewManager(config, off)
	if err != nil {
		return err
	}
	for _, s := range []*simulated{
		{kind: exampleKind("Database"), deployment: "database-controller", report: reportReady},
		{kind: exampleKind("Storage"), deployment: "storage-controller", report: reportAvailable, onStatus: true},
	} {
		s.Client, s.live, s.begun = m.GetClient(), m.GetAPIReader(), map[string]time.Time{}
		if err := s.setup(m); err != nil {
			return err
		}
	}
	return m.Start(ctx)
}

func exampleKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind}
}

func (s *simulated) setup(m ctrl.Manager) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(s.kind)
	repeatable := true // the demo may run twice in one process, in a test
	return ctrl.NewControllerManagedBy(m).
		Named(s.deployment).
		WithOptions(controller.Options{SkipNameValidation: &repeatable}).
		For(object).
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(s.whenStarted)).
		Complete(s)
}

// whenStarted has a controller look at everything when its pod appears.
func (s *simulated) whenStarted(ctx context.Context, d client.Object) []reconcile.Request {
	if d.GetNamespace() != namespace || d.GetName() != s.deployment {
		return nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(s.kind)
	if err := s.List(ctx, list); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// Reconcile implements reconcile.Reconciler.
func (s *simulated) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var deployment appsv1.Deployment
	if err := s.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: s.deployment}, &deployment); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(s.kind)
	if err := s.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if deployment.Status.AvailableReplicas == 0 {
		return reconcile.Result{}, nil
	}
	wait, done := s.work(object)
	err := s.writeStatus(ctx, object, done)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	return reconcile.Result{RequeueAfter: wait}, err
}

// work tells how long the work on an object's generation still takes.
func (s *simulated) work(object *unstructured.Unstructured) (wait time.Duration, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprintf("%s/%d", object.GetUID(), object.GetGeneration())
	begun, known := s.begun[key]
	if !known {
		begun = time.Now()
		s.begun[key] = begun
	}
	wait = workTime - time.Since(begun)
	return max(wait, 0), wait <= 0
}

func (s *simulated) writeStatus(ctx context.Context, object *unstructured.Unstructured, done bool) error {
	before := object.Object["status"]
	var status struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	if content, found, _ := unstructured.NestedMap(object.Object, "status"); found {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status); err != nil {
			return err
		}
	}
	s.report(&status.Conditions, object.GetGeneration(), done)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return err
	}
	if s.onStatus {
		content["observedGeneration"] = object.GetGeneration()
	}
	object.Object["status"] = content
	if apiequality.Semantic.DeepEqual(before, object.Object["status"]) {
		return nil
	}
	return s.Status().Update(ctx, object)
}

// reportAvailable reports Available, Progressing and Degraded. What was available
// stays so while it is changed.
func reportAvailable(conditions *[]metav1.Condition, _ int64, done bool) {
	available := done || meta.IsStatusConditionTrue(*conditions, "Available")
	set(conditions, 0, "Available", available, "AsExpected", "Installing")
	set(conditions, 0, "Progressing", !done, "Reconciling", "AsExpected")
	set(conditions, 0, "Degraded", false, "Failed", "AsExpected")
}

// reportReady reports Ready, and Reconciling only while it is True, as kstatus
// asks for.
func reportReady(conditions *[]metav1.Condition, generation int64, done bool) {
	set(conditions, generation, "Ready", done, "Reconciled", "Reconciling")
	set(conditions, generation, "Stalled", false, "Failed", "AsExpected")
	if done {
		meta.RemoveStatusCondition(conditions, "Reconciling")
		return
	}
	set(conditions, generation, "Reconciling", true, "Working", "")
}

func set(conditions *[]metav1.Condition, generation int64, conditionType string, value bool, whenTrue, whenFalse string) {
	c := metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: whenFalse, ObservedGeneration: generation}
	if value {
		c.Status, c.Reason = metav1.ConditionTrue, whenTrue
	}
	meta.SetStatusCondition(conditions, c)
}
