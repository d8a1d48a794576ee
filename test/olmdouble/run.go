package olmdouble

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// period is how often the double looks. OLM reacts to events; a twentieth of a
// second is about as fast.
const period = 50 * time.Millisecond

// managedLabel is what a Deployment needs for OLM's cache to hold it.
const managedLabel = "olm.managed"

// Run does for the OperatorConditions of namespace what OLM does, until ctx ends:
// it lets spec.serviceAccounts get, update and patch the object, by a Role and a
// RoleBinding of its name, and copies the conditions of spec to status.
//
// As in OLM, nothing is copied while one of spec.deployments is missing or lacks
// the label olm.managed=true (operator-lifecycle-manager,
// pkg/controller/operators/operatorcondition_controller.go; the label is its
// cache's selector), and a Role of that name that somebody else made is
// overwritten.
//
// config must be an administrator's. The error says what failed in the last
// complete round, or why there was none; it is nil if nothing did.
func Run(ctx context.Context, config *rest.Config, namespace string) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiv2.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("the scheme of the double of OLM: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("the client of the double of OLM: %w", err)
	}
	d := double{client: c, namespace: namespace}
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	var last error
	for {
		if err := d.round(ctx); ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return last
		case <-ticker.C:
		}
	}
}

type double struct {
	client    client.Client
	namespace string
}

// round serves each OperatorCondition once; one that fails does not stop the
// others, and is tried again in the next round.
func (d double) round(ctx context.Context) error {
	var list apiv2.OperatorConditionList
	if err := d.client.List(ctx, &list, client.InNamespace(d.namespace)); err != nil {
		return fmt.Errorf("listing OperatorConditions in %s: %w", d.namespace, err)
	}
	var problems []error
	for i := range list.Items {
		oc := &list.Items[i]
		err := d.serve(ctx, oc)
		// On a conflict somebody was faster; the next round sees it.
		if err != nil && !apierrors.IsConflict(err) {
			problems = append(problems, fmt.Errorf("OperatorCondition %s/%s: %w", oc.Namespace, oc.Name, err))
		}
	}
	return errors.Join(problems...)
}

// serve takes OLM's steps in OLM's order; the copy is the last one.
func (d double) serve(ctx context.Context, oc *apiv2.OperatorCondition) error {
	if err := d.ensureRole(ctx, oc); err != nil {
		return fmt.Errorf("ensuring the Role: %w", err)
	}
	if err := d.ensureRoleBinding(ctx, oc); err != nil {
		return fmt.Errorf("ensuring the RoleBinding: %w", err)
	}
	for _, name := range oc.Spec.Deployments {
		deployment := &appsv1.Deployment{}
		if err := d.client.Get(ctx, types.NamespacedName{Namespace: oc.Namespace, Name: name}, deployment); err != nil {
			return fmt.Errorf("reading Deployment %s: %w", name, err)
		}
		if deployment.Labels[managedLabel] != "true" {
			return fmt.Errorf("Deployment %s not found: it lacks the label %s=true", name, managedLabel)
		}
	}
	status, changed := Copy(oc)
	if !changed {
		return nil
	}
	oc.Status.Conditions = status
	// An object that is gone needs no status.
	if err := client.IgnoreNotFound(d.client.Status().Update(ctx, oc)); err != nil {
		return fmt.Errorf("writing status.conditions: %w", err)
	}
	return nil
}

func (d double) ensureRole(ctx context.Context, oc *apiv2.OperatorCondition) error {
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: oc.Namespace, Name: oc.Name}}
	return d.ensure(ctx, oc, role, func() {
		role.Rules = []rbacv1.PolicyRule{{
			Verbs:         []string{"get", "update", "patch"},
			APIGroups:     []string{apiv2.GroupVersion.Group},
			Resources:     []string{"operatorconditions"},
			ResourceNames: []string{oc.Name},
		}}
	})
}

func (d double) ensureRoleBinding(ctx context.Context, oc *apiv2.OperatorCondition) error {
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: oc.Namespace, Name: oc.Name}}
	return d.ensure(ctx, oc, binding, func() {
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: oc.Name}
		binding.Subjects = nil
		for _, account := range oc.Spec.ServiceAccounts {
			binding.Subjects = append(binding.Subjects,
				rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: oc.Namespace, Name: account})
		}
	})
}

// ensure creates object, or updates it where change makes a difference, and lets
// oc own it.
func (d double) ensure(ctx context.Context, oc *apiv2.OperatorCondition, object client.Object, change func()) error {
	err := d.client.Get(ctx, client.ObjectKeyFromObject(object), object)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	before := object.DeepCopyObject()
	change()
	object.SetOwnerReferences(nil)
	if err := controllerutil.SetControllerReference(oc, object, d.client.Scheme(),
		controllerutil.WithBlockOwnerDeletion(false)); err != nil {
		return err
	}
	if apierrors.IsNotFound(err) {
		return d.client.Create(ctx, object)
	}
	if apiequality.Semantic.DeepEqual(before, object) {
		return nil
	}
	return d.client.Update(ctx, object)
}
