package olm

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ownerLabel carries the name of the ClusterServiceVersion that a Deployment
// belongs to (operator-lifecycle-manager, pkg/lib/ownerutil/util.go). OLM changes
// it in place when the next version takes the Deployment over.
const ownerLabel = "olm.owner"

var _ Ownership = &Owner{}

// Getter reads one object, live.
type Getter interface {
	Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error
}

// OwnerConfig is what an Owner is made of.
type OwnerConfig struct {
	// Client must not answer from a cache, and its scheme must know apps/v1. It
	// needs get on pods, replicasets and deployments of Namespace.
	Client    Getter
	Namespace string
	// Pod is the name of the pod that this process runs in.
	Pod string
	// ConditionName is the name of our ClusterServiceVersion, as in
	// OPERATOR_CONDITION_NAME.
	ConditionName string
	Log           logr.Logger
}

// Owner finds the Deployment that this process runs for and says whether it is
// still ours.
//
// It goes from the pod to its ReplicaSet and to that one's Deployment by the
// controller references. If one of them does not exist, may not be read, or is
// controlled by something else, there is nothing to go by: nothing is frozen and
// nothing is stopped. That is logged once.
type Owner struct {
	config OwnerConfig

	mu         sync.Mutex
	deployment string
	frozen     bool
	explained  bool
}

// NewOwner does no I/O.
func NewOwner(c OwnerConfig) *Owner {
	return &Owner{config: c}
}

// Check reports whether our Deployment belongs to another ClusterServiceVersion,
// that is, bears the label olm.owner with another name than ours. It reads the
// Deployment live each time; once it was true it stays true without reading.
func (o *Owner) Check(ctx context.Context) (frozen bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.frozen {
		return true, nil
	}
	_, err = o.read(ctx)
	return o.frozen, err
}

// Stopped reports whether our Deployment is scaled to 0 and still ours.
func (o *Owner) Stopped(ctx context.Context) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.frozen {
		return false, nil
	}
	d, err := o.read(ctx)
	if err != nil || d == nil || o.frozen {
		return false, err
	}
	return d.Spec.Replicas != nil && *d.Spec.Replicas == 0, nil
}

// read returns our Deployment, or nil when it cannot be found.
func (o *Owner) read(ctx context.Context) (*appsv1.Deployment, error) {
	if err := o.find(ctx); err != nil || o.deployment == "" {
		return nil, o.off(err)
	}
	d := &appsv1.Deployment{}
	if err := o.get(ctx, o.deployment, d); err != nil {
		return nil, o.off(fmt.Errorf("reading Deployment %s/%s: %w", o.config.Namespace, o.deployment, err))
	}
	if owner, labelled := d.Labels[ownerLabel]; labelled && owner != o.config.ConditionName {
		o.frozen = true
	}
	return d, nil
}

// find resolves the name of our Deployment, once.
func (o *Owner) find(ctx context.Context) error {
	if o.deployment != "" {
		return nil
	}
	if o.config.Pod == "" {
		o.explain("the name of our pod is not known")
		return nil
	}
	set, err := o.controller(ctx, o.config.Pod, corev1.SchemeGroupVersion.WithKind("Pod"), "ReplicaSet")
	if err != nil || set == "" {
		return err
	}
	deployment, err := o.controller(ctx, set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), "Deployment")
	if err != nil {
		return err
	}
	o.deployment = deployment
	return nil
}

// controller is the name of the object of kind wanted in group apps that controls
// the named one; empty when something else does, or nothing.
func (o *Owner) controller(ctx context.Context, name string, kind schema.GroupVersionKind, wanted string) (string, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	if err := o.get(ctx, name, object); err != nil {
		return "", fmt.Errorf("reading %s %s/%s: %w", kind.Kind, o.config.Namespace, name, err)
	}
	reference := metav1.GetControllerOf(object)
	if reference == nil {
		o.explain(fmt.Sprintf("%s %s/%s has no controller", kind.Kind, o.config.Namespace, name))
		return "", nil
	}
	version, err := schema.ParseGroupVersion(reference.APIVersion)
	if err != nil || version.Group != appsv1.GroupName || reference.Kind != wanted {
		o.explain(fmt.Sprintf("%s %s/%s is controlled by a %s", kind.Kind, o.config.Namespace, name, reference.Kind))
		return "", nil
	}
	return reference.Name, nil
}

func (o *Owner) get(ctx context.Context, name string, object client.Object) error {
	return o.config.Client.Get(ctx, client.ObjectKey{Namespace: o.config.Namespace, Name: name}, object)
}

// off turns what cannot be found or read into "nothing to go by".
func (o *Owner) off(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		o.explain(err.Error())
		return nil
	}
	return err
}

func (o *Owner) explain(why string) {
	if !o.explained {
		o.explained = true
		o.config.Log.Info("our Deployment cannot be found: a hand-over to another version, or a scale to 0, will not be noticed", "why", why)
	}
}
