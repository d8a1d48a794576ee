package olm_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	apiv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/olm"
	"github.com/upgrade-gate/upgrade-gate/test/olmdouble"
)

var forbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "operatorconditions"}, conditionName, errors.New("injected"))

// expand fills in the test's namespace.
func (f *fixture) expand(text string) string {
	return strings.ReplaceAll(text, "NS/", f.namespace+"/")
}

// A life with the rights of OLM's Role and no others: start, acknowledgement,
// closing, opening, override.
func TestTheRightsThatOLMGrantsAreEnough(t *testing.T) {
	f := newFixture(t)
	f.olm()
	w := f.watch(nil)
	acknowledged := func() bool { return w.Publication().Acknowledged }
	f.advance(w.clock, acknowledged, "OLM acknowledges Initializing")
	allowed, _ := f.decision()
	require.False(t, allowed)
	f.retryOpen(w)
	f.advance(w.clock, acknowledged, "OLM acknowledges True")
	allowed, _ = f.decision()
	require.True(t, allowed)
	require.NoError(t, w.Close(t.Context(), closed("ComponentsNotReady", "1 of 2")))
	allowed, message := f.decision()
	require.False(t, allowed, "at once, because the generation moved: %s", message)
	f.advance(w.clock, acknowledged, "OLM acknowledges False")
	allowed, message = f.decision()
	require.False(t, allowed)
	require.Equal(t, "operator is not upgradeable: the operator is not upgradeable: 1 of 2", message)
	object := "/apis/operators.coreos.com/v2/namespaces/" + f.namespace + "/operatorconditions/gate.v1.0.0"
	for _, request := range f.requests.all() {
		require.Contains(t, []string{"GET " + object, "PATCH " + object}, request)
	}
}

// retryOpen opens as the controller does, from the start on each conflict.
func (f *fixture) retryOpen(w *watched) {
	f.eventually(func() bool {
		held, err := w.Refresh(f.Context())
		return err == nil && w.Open(f.Context(), opened("m"), held.ResourceVersion) == nil
	}, "opening succeeds")
}

// decision is OLM's.
func (f *fixture) decision() (bool, string) {
	f.Helper()
	var oc apiv2.OperatorCondition
	require.NoError(f, f.admin.Get(f.Context(), f.key(), &oc))
	return olmdouble.Decide(&oc, true)
}

func TestTheOverrideCommandWorksAndIsQuoted(t *testing.T) {
	f := newFixture(t)
	p := f.publisher(nil)
	require.NoError(t, p.Close(t.Context(), closed("Held", "h")))
	command := olm.OverrideCommand(f.namespace, conditionName)
	head, rest, found := strings.Cut(command, " -p '")
	require.True(t, found)
	require.Equal(t, "kubectl -n "+f.namespace+" patch operatorcondition gate.v1.0.0 --type merge", head)
	body, tail, found := strings.Cut(rest, "'")
	require.True(t, found)
	require.Empty(t, tail)
	require.True(t, json.Valid([]byte(body)))
	f.patch(body)
	held, err := p.Refresh(t.Context())
	require.NoError(t, err)
	require.Equal(t, "True", held.Override)
	require.Equal(t, []string{"Upgradeable=False Held: h"}, f.said())
	allowed, _ := f.decision()
	require.True(t, allowed)
}

func TestTheDoubleGrantsWhatOLMGrants(t *testing.T) {
	f := newFixture(t)
	f.olm()
	var role rbacv1.Role
	f.eventually(func() bool { return f.admin.Get(f.Context(), f.key(), &role) == nil }, "there is a Role")
	require.Equal(t, []rbacv1.PolicyRule{{
		APIGroups: []string{"operators.coreos.com"}, Resources: []string{"operatorconditions"},
		ResourceNames: []string{conditionName}, Verbs: []string{"get", "update", "patch"},
	}}, role.Rules)
	var binding rbacv1.RoleBinding
	f.eventually(func() bool { return f.admin.Get(f.Context(), f.key(), &binding) == nil }, "there is a RoleBinding")
	require.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.namespace, Name: "gate"}}, binding.Subjects)
	require.Equal(t, conditionName, binding.RoleRef.Name)
}

func TestTheDoubleCopiesNothingWhileADeploymentIsMissing(t *testing.T) {
	for name, managed := range map[string]string{"does not exist": "", "lacks the label": "false"} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.patch(`{"spec":{"deployments":["comp"]}}`)
			f.patch(one("False"))
			if managed != "" {
				f.create(deployment(f, "comp", managed))
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- olmdouble.Run(ctx, admin, f.namespace) }()
			f.served("a")
			f.served("b")
			allowed, _ := f.decision()
			require.True(t, allowed, "OLM fails open before its first copy")
			cancel()
			require.ErrorContains(t, <-done, "Deployment comp")
			_, found := f.raw().Object["status"]
			require.False(t, found)
		})
	}
}

// served waits until the double has got to an OperatorCondition that comes after
// all others.
func (f *fixture) served(name string) {
	f.Helper()
	later := &apiv2.OperatorCondition{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "later-" + name}}
	later.Spec.Conditions = []metav1.Condition{{Type: "X", Status: "True", Reason: "X", LastTransitionTime: metav1.Now()}}
	f.create(later)
	f.eventually(func() bool {
		return f.admin.Get(f.Context(), client.ObjectKeyFromObject(later), later) == nil && len(later.Status.Conditions) > 0
	}, "the double works")
}

// discovered is what an API server serves: kinds by group and version.
type discovered struct {
	kinds map[string][]string
	fails string
}

func (d discovered) ServerGroupsWithContext(context.Context) (*metav1.APIGroupList, error) {
	if d.fails == "groups" {
		return nil, errors.New("injected")
	}
	list := &metav1.APIGroupList{}
	for version := range d.kinds {
		group, _, _ := strings.Cut(version, "/")
		list.Groups = append(list.Groups, metav1.APIGroup{Name: group,
			Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: version}}})
	}
	return list, nil
}

func (d discovered) ServerResourcesForGroupVersionWithContext(_ context.Context, version string) (*metav1.APIResourceList, error) {
	if d.fails == "resources" {
		return nil, errors.New("injected")
	}
	list := &metav1.APIResourceList{}
	for _, kind := range d.kinds[version] {
		list.APIResources = append(list.APIResources, metav1.APIResource{Kind: kind})
	}
	return list, nil
}

func TestDetectMode(t *testing.T) {
	for name, tc := range map[string]struct {
		name  string
		api   discovered
		want  v1alpha1.OLMMode
		fails bool
	}{
		"the name of an OperatorCondition means OLM v0, and nobody is asked": {
			name: conditionName, api: discovered{fails: "groups"}, want: "OLMv0",
		},
		"ClusterExtensions mean OLM v1": {
			api: discovered{kinds: map[string][]string{"olm.operatorframework.io/v1": {"ClusterCatalog", "ClusterExtension"}}}, want: "OLMv1",
		},
		"of any version": {
			api: discovered{kinds: map[string][]string{"olm.operatorframework.io/v2beta1": {"ClusterExtension"}}}, want: "OLMv1",
		},
		"the group without the kind means none": {
			api: discovered{kinds: map[string][]string{"olm.operatorframework.io/v1": {"ClusterCatalog"}}}, want: "None",
		},
		"the kind in another group means none": {
			api: discovered{kinds: map[string][]string{"example.com/v1": {"ClusterExtension"}}}, want: "None",
		},
		"nothing means none":                            {want: "None"},
		"that groups cannot be listed is an error":      {api: discovered{fails: "groups"}, fails: true},
		"that the resources cannot be read is an error": {api: discovered{kinds: map[string][]string{"olm.operatorframework.io/v1": nil}, fails: "resources"}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			mode, err := olm.DetectMode(t.Context(), tc.name, tc.api)
			require.Equal(t, tc.fails, err != nil)
			require.Equal(t, tc.want, mode)
		})
	}
}
