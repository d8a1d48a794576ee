package olm_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/olm"
)

func TestReadyWhenOLMHasAcknowledged(t *testing.T) {
	f := newFixture(t)
	p := f.publisher(nil)
	require.EqualError(t, p.Ready(nil), "the publishing loop has not started")
	w := f.watch(nil)
	f.idle(w)
	require.EqualError(t, w.Ready(nil), "OLM has not acknowledged OperatorCondition "+f.namespace+"/gate.v1.0.0")
	f.olm()
	f.advance(w.clock, func() bool { return w.Ready(nil) == nil }, "OLM acknowledges")
	require.Equal(t, []string{f.initially()}, f.said(), "closed, and Ready all the same")
	f.patch(`{"spec":{"deployments":["missing"]}}`)
	require.NoError(t, w.Close(t.Context(), closed("Held", "h")))
	require.NoError(t, w.Ready(nil), "once is enough")
	f.patch(`{"spec":{"deployments":null}}`)
	f.advance(w.clock, func() bool { return w.Publication().Acknowledged }, "OLM acknowledges")
}

func TestReadyWaitsForTheDeploymentsThatOLMWaitsFor(t *testing.T) {
	f := newFixture(t)
	f.patch(`{"spec":{"deployments":["comp-a","comp-b"]}}`)
	f.create(deployment(f, "comp-a", "true"))
	w := f.watch(nil)
	f.idle(w)
	require.EqualError(t, w.Ready(nil), "OLM has not acknowledged OperatorCondition "+f.namespace+"/gate.v1.0.0; "+
		"it waits while one of these Deployments is missing or lacks the label olm.managed=true: comp-a, comp-b")
	f.create(deployment(f, "comp-b", "true"))
	f.olm()
	f.advance(w.clock, func() bool { return w.Ready(nil) == nil }, "OLM acknowledges")
}

func deployment(f *fixture, name, managed string) *appsv1.Deployment {
	labels := map[string]string{"app": name, "olm.managed": managed}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name, Labels: labels}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}
	return d
}

func TestReadyFailsWhenTheLoopReadsNothingAnyMore(t *testing.T) {
	f := newFixture(t)
	f.patch(one("False"))
	f.patchStatus(status(`{"type":"Upgradeable","status":"False","observedGeneration":2}`))
	w := f.watch(nil)
	f.idle(w)
	require.NoError(t, w.Ready(nil))
	f.operator.atGet(func(context.Context, func() error) error { return errors.New("injected") })
	for range 5 {
		w.clock.Step(10 * time.Second)
		f.idle(w)
		require.NoError(t, w.Ready(nil), "not for the first minute")
	}
	w.clock.Step(11 * time.Second)
	f.idle(w)
	require.EqualError(t, w.Ready(nil), "OperatorCondition "+f.namespace+"/gate.v1.0.0 was not read for 1m0s: "+
		"OperatorCondition "+f.namespace+"/gate.v1.0.0: the API server cannot be reached")
	_, err := w.Refresh(t.Context())
	require.Error(t, err)
	f.operator.atGet(nil)
	_, err = w.Refresh(t.Context())
	require.NoError(t, err)
	require.Error(t, w.Ready(nil), "only the loop's own reads prove that it lives")
	f.rounds(w, 1)
	require.NoError(t, w.Ready(nil))
}

func TestReadyNamesWhatIsMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(f *fixture)
		want  string
	}{
		"the object": {
			spoil: func(f *fixture) { require.NoError(f, f.admin.Delete(f.Context(), f.object())) },
			want:  "OperatorConditionNotFound: OperatorCondition NS/gate.v1.0.0 does not exist",
		},
		"the right to read": {
			spoil: func(f *fixture) {
				require.NoError(f, f.admin.Delete(f.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "olm"}}))
				f.eventually(func() bool { return f.operator.Get(f.Context(), f.key(), f.object()) != nil }, "the right is gone")
			},
			want: "Forbidden: access to OperatorCondition NS/gate.v1.0.0 is denied",
		},
		"the right to write": {
			spoil: func(f *fixture) {
				f.operator.atPatch(func(context.Context, string, func() error) error { return forbidden })
			},
			want: "cannot tell OLM anything: access to OperatorCondition NS/gate.v1.0.0 is denied",
		},
		"an answer": {
			spoil: func(f *fixture) {
				f.operator.atGet(func(context.Context, func() error) error { return context.DeadlineExceeded })
			},
			want: "cannot read what OLM holds: OperatorCondition NS/gate.v1.0.0: no answer in time",
		},
		"an entry that says one thing": {
			spoil: func(f *fixture) {
				f.patch(entries(upgradeable("True", "X", "x"), upgradeable("False", "X", "x")))
			},
			want: "OperatorCondition NS/gate.v1.0.0 has no Upgradeable entry that can be used",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			tc.spoil(f)
			w := f.watch(nil)
			f.idle(w)
			require.EqualError(t, w.Ready(nil), f.expand(tc.want))
		})
	}
}

func TestReadyOutsideOLMv0NeedsOnlyTheLoop(t *testing.T) {
	for _, mode := range []v1alpha1.OLMMode{v1alpha1.OLMModeV1, v1alpha1.OLMModeNone} {
		t.Run(string(mode), func(t *testing.T) {
			f := &fixture{T: t}
			p, err := olm.NewPublisher(olm.Config{Mode: mode})
			require.NoError(t, err)
			require.Error(t, p.Ready(nil))
			f.start(p)
			f.eventually(func() bool { return p.Ready(nil) == nil }, "the loop runs")
		})
	}
}
