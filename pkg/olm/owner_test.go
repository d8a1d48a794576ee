package olm_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/upgrade-gate/upgrade-gate/pkg/olm"
)

// ownership is a scripted olm.Ownership.
type ownership struct {
	frozen, stopped bool
	err             error
}

func (o *ownership) Check(context.Context) (bool, error)   { return o.frozen, o.err }
func (o *ownership) Stopped(context.Context) (bool, error) { return o.stopped, o.err }

func TestAFrozenPublisherWritesNothing(t *testing.T) {
	f := newFixture(t)
	f.patch(one("True"))
	owner := &ownership{frozen: true}
	p := f.publisher(func(c *olm.Config) { c.Owner = owner })
	require.ErrorIs(t, p.Close(t.Context(), closed("Held", "h")), olm.ErrFrozen)
	require.True(t, p.Publication().Frozen)
	owner.frozen = false
	require.ErrorIs(t, p.Close(t.Context(), closed("Held", "h")), olm.ErrFrozen, "for the life of the process")
	held, err := p.Refresh(t.Context())
	require.NoError(t, err)
	require.True(t, held.Frozen)
	require.ErrorIs(t, p.Open(t.Context(), opened("m"), held.ResourceVersion), olm.ErrFrozen)
	require.Equal(t, []string{"Upgradeable=True X: x"}, f.said())
	require.Zero(t, f.operator.writes())
}

func TestWhenTheOwnerCannotBeToldOnlyClosingGoesOn(t *testing.T) {
	f := newFixture(t)
	p := f.publisher(func(c *olm.Config) { c.Owner = &ownership{err: errors.New("injected")} })
	held, err := p.Refresh(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, p.Open(t.Context(), opened("m"), held.ResourceVersion), "injected")
	require.NoError(t, p.Close(t.Context(), closed("Held", "h")))
	require.Equal(t, []string{"Upgradeable=False Held: h"}, f.said())
}

func TestTheEndOfTheProcess(t *testing.T) {
	stopped := "Upgradeable=False OperatorStopped: the operator's Deployment is scaled to 0, " +
		"so nobody watches the components; to override: "
	for name, tc := range map[string]struct {
		owner olm.Ownership
		says  string
	}{
		"changes nothing when the Deployment goes on":      {owner: &ownership{}},
		"changes nothing when nobody knows the Deployment": {},
		"changes nothing when that cannot be found out":    {owner: &ownership{err: errors.New("injected")}},
		"closes when the Deployment is scaled to 0":        {owner: &ownership{stopped: true}, says: stopped},
		"changes nothing when another version took over":   {owner: &ownership{stopped: true, frozen: true}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.patch(one("True"))
			w := f.watch(func(c *olm.Config) { c.Owner = tc.owner })
			f.idle(w)
			held := w.Publication()
			w.stop()
			if tc.says == "" {
				require.Equal(t, []string{"Upgradeable=True X: x"}, f.said())
				return
			}
			require.Equal(t, []string{tc.says + olm.OverrideCommand(f.namespace, conditionName)}, f.said())
			require.ErrorIs(t, w.Open(t.Context(), opened("m"), held.ResourceVersion), olm.ErrStopping)
		})
	}
}

// deploy creates a Deployment, a ReplicaSet of it and a pod of that one, as the
// controllers of Kubernetes would.
func (f *fixture) deploy(labels map[string]string) *appsv1.Deployment {
	f.Helper()
	pod := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "gate"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "gate"}}},
	}
	selector := &metav1.LabelSelector{MatchLabels: pod.Labels}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "gate", Labels: labels}}
	d.Spec.Selector, d.Spec.Template = selector, pod
	f.create(d)
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "gate-1"}}
	set.Spec.Selector, set.Spec.Template = selector, pod
	require.NoError(f, controllerutil.SetControllerReference(d, set, scheme(f.T)))
	f.create(set)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "gate-1-x"}, Spec: pod.Spec}
	require.NoError(f, controllerutil.SetControllerReference(set, p, scheme(f.T)))
	f.create(p)
	return d
}

func (f *fixture) owner(log *[]string) *olm.Owner {
	return olm.NewOwner(olm.OwnerConfig{
		Client: f.operator, Namespace: f.namespace, Pod: "gate-1-x", ConditionName: conditionName,
		Log: funcr.New(func(_, args string) { *log = append(*log, args) }, funcr.Options{}),
	})
}

func (f *fixture) grantOwner(resources ...string) {
	f.Helper()
	f.grant("owner", rbacv1.PolicyRule{APIGroups: []string{"", "apps"}, Resources: resources, Verbs: []string{"get"}})
	f.eventually(func() bool {
		err := f.operator.Get(f.Context(), types.NamespacedName{Namespace: f.namespace, Name: "gate-1-x"}, &corev1.Pod{})
		return !apierrors.IsForbidden(err)
	}, "the API server takes notice of the Role")
	f.requests.clear()
}

func (f *fixture) patchDeployment(d *appsv1.Deployment, body string) {
	f.Helper()
	require.NoError(f, f.admin.Patch(f.Context(), d, client.RawPatch(types.MergePatchType, []byte(body))))
}

func TestOwner(t *testing.T) {
	for name, tc := range map[string]struct {
		labels          map[string]string
		patch           string
		frozen, stopped bool
	}{
		"our own label is ours":                       {labels: map[string]string{"olm.owner": conditionName}},
		"no label is ours":                            {},
		"another name is frozen":                      {labels: map[string]string{"olm.owner": "gate.v1.1.0"}, frozen: true},
		"an empty name is frozen":                     {labels: map[string]string{"olm.owner": ""}, frozen: true},
		"ours, scaled to 0, is stopped":               {labels: map[string]string{"olm.owner": conditionName}, patch: `{"spec":{"replicas":0}}`, stopped: true},
		"another's, scaled to 0, is only frozen":      {labels: map[string]string{"olm.owner": "gate.v1.1.0"}, patch: `{"spec":{"replicas":0}}`, frozen: true},
		"a Deployment without a label can be stopped": {patch: `{"spec":{"replicas":0}}`, stopped: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.grantOwner("pods", "replicasets", "deployments")
			d := f.deploy(tc.labels)
			if tc.patch != "" {
				f.patchDeployment(d, tc.patch)
			}
			var log []string
			o := f.owner(&log)
			stopped, err := o.Stopped(t.Context())
			require.NoError(t, err)
			require.Equal(t, tc.stopped, stopped)
			frozen, err := o.Check(t.Context())
			require.NoError(t, err)
			require.Equal(t, tc.frozen, frozen)
			require.Empty(t, log)
		})
	}
}

func TestOwnerNoticesAHandOverAndNeverForgetsIt(t *testing.T) {
	f := newFixture(t)
	f.grantOwner("pods", "replicasets", "deployments")
	d := f.deploy(map[string]string{"olm.owner": conditionName})
	var log []string
	o := f.owner(&log)
	frozen, err := o.Check(t.Context())
	require.NoError(t, err)
	require.False(t, frozen)
	f.requests.clear()
	f.patchDeployment(d, `{"metadata":{"labels":{"olm.owner":"gate.v1.1.0"}}}`)
	frozen, err = o.Check(t.Context())
	require.NoError(t, err)
	require.True(t, frozen)
	require.Equal(t, []string{"GET /apis/apps/v1/namespaces/" + f.namespace + "/deployments/gate"}, f.requests.all(),
		"the name is remembered, the Deployment is not")
	f.patchDeployment(d, `{"metadata":{"labels":{"olm.owner":"gate.v1.0.0"}}}`)
	f.requests.clear()
	frozen, err = o.Check(t.Context())
	require.NoError(t, err)
	require.True(t, frozen)
	require.Empty(t, f.requests.all())
}

func TestOwnerIsOff(t *testing.T) {
	all := []string{"pods", "replicasets", "deployments"}
	for name, tc := range map[string]struct {
		rights []string
		change func(f *fixture)
		why    string
	}{
		"where the pod does not exist": {
			rights: all, why: `pods \"gate-1-x\" not found`,
			change: func(f *fixture) {
				require.NoError(f, f.admin.Delete(f.Context(), f.pod(), client.GracePeriodSeconds(0)))
			},
		},
		"where the pod has no controller": {
			rights: all, why: "has no controller",
			change: func(f *fixture) { f.patchPod(`{"metadata":{"ownerReferences":null}}`) },
		},
		"where the pod belongs to a Job": {
			rights: all, why: "is controlled by a Job",
			change: func(f *fixture) {
				f.patchPod(`{"metadata":{"ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"x","uid":"x","controller":true}]}}`)
			},
		},
		"where another API has a ReplicaSet, too": {
			rights: all, why: "is controlled by a ReplicaSet",
			change: func(f *fixture) {
				f.patchPod(`{"metadata":{"ownerReferences":[{"apiVersion":"example.com/v1","kind":"ReplicaSet","name":"gate-1","uid":"x","controller":true}]}}`)
			},
		},
		"where the ReplicaSet may not be read": {
			rights: []string{"pods", "deployments"}, why: "cannot get resource", change: func(*fixture) {},
		},
		"where the Deployment may not be read": {
			rights: []string{"pods", "replicasets"}, why: "cannot get resource", change: func(*fixture) {},
		},
		"where the Deployment does not exist": {
			rights: all, why: `deployments.apps \"gate\" not found`,
			change: func(f *fixture) {
				require.NoError(f, f.admin.Delete(f.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "gate"}}))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.grantOwner(tc.rights...)
			f.patchDeployment(f.deploy(map[string]string{"olm.owner": "gate.v1.1.0"}), `{"spec":{"replicas":0}}`)
			tc.change(f)
			var log []string
			o := f.owner(&log)
			for range 2 {
				frozen, err := o.Check(t.Context())
				require.NoError(t, err)
				require.False(t, frozen)
				stopped, err := o.Stopped(t.Context())
				require.NoError(t, err)
				require.False(t, stopped)
			}
			require.Len(t, log, 1, "it is said once")
			require.Contains(t, log[0], tc.why)
		})
	}
}

func TestOwnerWithoutAPodIsOff(t *testing.T) {
	f := newFixture(t)
	var log []string
	o := olm.NewOwner(olm.OwnerConfig{Client: f.operator, Namespace: f.namespace, ConditionName: conditionName,
		Log: funcr.New(func(_, args string) { log = append(log, args) }, funcr.Options{})})
	frozen, err := o.Check(t.Context())
	require.NoError(t, err)
	require.False(t, frozen)
	require.Len(t, log, 1)
	require.Empty(t, f.requests.all())
}

func TestOwnerReportsOtherErrors(t *testing.T) {
	f := newFixture(t)
	f.operator.atGet(func(context.Context, func() error) error { return errors.New("injected") })
	var log []string
	o := f.owner(&log)
	_, err := o.Check(t.Context())
	require.ErrorContains(t, err, "injected")
	_, err = o.Stopped(t.Context())
	require.ErrorContains(t, err, "reading Pod "+f.namespace+"/gate-1-x: injected")
	require.Empty(t, log)
}

// The whole way, with the rights that are documented and nothing else.
func TestScalingToZeroIsTheLastWord(t *testing.T) {
	f := newFixture(t)
	f.grantOwner("pods", "replicasets", "deployments")
	d := f.deploy(map[string]string{"olm.owner": conditionName})
	var log []string
	w := f.watch(func(c *olm.Config) { c.Owner = f.owner(&log) })
	f.idle(w)
	f.open(w.Publisher, "m")
	f.patchDeployment(d, `{"spec":{"replicas":0}}`)
	w.stop()
	require.Len(t, f.said(), 1)
	require.Contains(t, f.said()[0], "Upgradeable=False OperatorStopped: ")
}

func (f *fixture) pod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "gate-1-x"}}
}

func (f *fixture) patchPod(body string) {
	f.Helper()
	require.NoError(f, f.admin.Patch(f.Context(), f.pod(), client.RawPatch(types.MergePatchType, []byte(body))))
}

func TestTheLastWordDoesNotTakeForEver(t *testing.T) {
	f := newFixture(t)
	f.patch(one("True"))
	w := f.watch(func(c *olm.Config) {
		c.Owner = &ownership{stopped: true}
		c.RequestTimeout = time.Hour
	})
	f.idle(w)
	f.operator.atPatch(func(ctx context.Context, _ string, _ func() error) error { <-ctx.Done(); return ctx.Err() })
	begun := time.Now()
	w.stop()
	require.Less(t, time.Since(begun), 10*time.Second)
}
