package watch

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/upgrade-gate/upgrade-gate/pkg/component"
)

func TestFailuresAreExplainedInStableWords(t *testing.T) {
	widgets := schema.GroupResource{Group: "test.example.com", Resource: "widgets"}
	about := call{verb: "list", gvk: schema.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "Widget"}, resource: widgets}
	for name, c := range map[string]struct {
		err      error
		access   component.Access
		detail   string
		definite bool
	}{
		"a missing right": {
			apierrors.NewForbidden(widgets, "w", errors.New("no")), component.AccessForbidden,
			`the operator may not list widgets.test.example.com in the whole cluster; grant it get, list and watch on widgets.test.example.com, for example with a ClusterRole labelled upgradegate.io/aggregate-to-operator: "true"`,
			true,
		},
		"a path that is not served": {
			apierrors.NewNotFound(widgets, ""), component.AccessKindNotInstalled,
			"the API server does not serve Widget of test.example.com/v1; install the CRD that defines it, or correct apiVersion and kind",
			true,
		},
		"an identity that is refused": {
			apierrors.NewUnauthorized("token expired at 12:03"), component.AccessFailed,
			"the API server answered Unauthorized to: list widgets.test.example.com in the whole cluster; the operator's log has the whole answer",
			false,
		},
		"an overloaded server": {
			apierrors.NewTooManyRequests("retry in 3 s", 3), component.AccessFailed,
			"the API server answered TooManyRequests to: list widgets.test.example.com in the whole cluster; the operator's log has the whole answer",
			false,
		},
		"an answer without a reason": {
			&apierrors.StatusError{ErrStatus: metav1.Status{Code: 599, Message: "10.0.0.7:43123"}}, component.AccessFailed,
			"the API server answered code 599 to: list widgets.test.example.com in the whole cluster; the operator's log has the whole answer",
			false,
		},
		"a server that gives up": {
			apierrors.NewTimeoutError("etcd", 1), component.AccessTimedOut,
			"no answer in time to: list widgets.test.example.com in the whole cluster",
			false,
		},
		"a deadline": {
			fmt.Errorf("get: %w", context.DeadlineExceeded), component.AccessTimedOut,
			"no answer in time to: list widgets.test.example.com in the whole cluster",
			false,
		},
		"a network error": {
			errors.New("dial tcp 10.0.0.7:43123: no route to host"), component.AccessFailed,
			"the API server could not be reached to: list widgets.test.example.com in the whole cluster; the operator's log says why",
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := explain(c.err, about)
			require.Equal(t, c.access, f.access)
			require.Equal(t, c.detail, f.detail)
			require.Equal(t, c.definite, f.definite())
			require.Equal(t, c.err, f.cause)

			inner := about
			inner.verb, inner.namespace = "watch", "prod"
			wrapped := explain(fmt.Errorf("failed to list: %w", &callError{call: inner, err: c.err}), about)
			require.Equal(t, c.access, wrapped.access)
			require.Equal(t, explain(c.err, inner).detail, wrapped.detail, "the inner call is the one that failed")
		})
	}
}

func TestClientGoIsNotLeftToRetryByItself(t *testing.T) {
	refused := errors.New("connection refused")
	require.NotErrorIs(t, &callError{err: refused}, refused)
	require.False(t, apierrors.IsTooManyRequests(&callError{err: apierrors.NewTooManyRequests("", 1)}))
	require.True(t, apierrors.IsResourceExpired(&callError{err: apierrors.NewResourceExpired("old")}), "the reflector must see what it can cure")
}

func TestTheFirstListIsReducedWhileItArrives(t *testing.T) {
	object := func(name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}}
		o.SetNamespace("prod")
		o.SetName(name)
		return o
	}
	part, whole := types.NamespacedName{Namespace: "prod", Name: "part"}, types.NamespacedName{Namespace: "prod", Name: "whole"}
	reduce := (&store{keys: map[types.NamespacedName]bool{part: false, whole: true}}).Transformer()
	for name, want := range map[string]any{
		"part":  kept{key: part, snapshot: component.Decode(object("part").Object, false)},
		"whole": kept{key: whole, snapshot: component.Decode(object("whole").Object, true)},
		"other": dropped{},
	} {
		got, err := reduce(object(name))
		require.NoError(t, err)
		require.Equal(t, want, got)
		again, err := reduce(got)
		require.NoError(t, err)
		require.Equal(t, want, again, "what was reduced is reduced again")
	}
	got, err := reduce("no object")
	require.NoError(t, err)
	require.Equal(t, dropped{}, got)
}

func TestAWatchIsAsNarrowAsItsObjectsAllow(t *testing.T) {
	key := func(namespace string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: "x"}
	}
	require.Equal(t, "a", scope(map[types.NamespacedName]bool{key("a"): true, {Namespace: "a", Name: "y"}: true}))
	require.Equal(t, "", scope(map[types.NamespacedName]bool{key("a"): true, key("b"): true, key("c"): true}))
	require.Equal(t, "", scope(map[types.NamespacedName]bool{key(""): true}))
}

func TestAnObjectWantedWholeByOneIsReadWhole(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "Widget"}
	part := component.Target{GVK: gvk, Namespace: "prod", Name: "x"}
	whole, other := part, part
	whole.Whole, other.Name = true, "y"
	for range 50 { // the order of targets is random
		s := newSession(New(Config{}), gvk, targetSet{part: {}, whole: {}, other: {}})
		keys, f := s.locate(placement{namespaced: true})
		require.Nil(t, f)
		require.Equal(t, map[types.NamespacedName]bool{{Namespace: "prod", Name: "x"}: true, {Namespace: "prod", Name: "y"}: false}, keys)
	}
}

func TestAKindThatWasReplacedIsReadAnew(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "Widget"}
	target := component.Target{GVK: gvk, DefaultNamespace: "prod", Name: "x"}
	m := New(Config{})
	s := newSession(m, gvk, targetSet{target: {}})
	m.kinds[gvk] = &kind{serving: s}
	keys, f := s.locate(placement{namespaced: true})
	require.Nil(t, f)
	require.Contains(t, keys, types.NamespacedName{Namespace: "prod", Name: "x"})
	s.watching(true)
	s.listed(map[types.NamespacedName]*component.Snapshot{{Namespace: "prod", Name: "x"}: {UID: "u"}})
	require.Equal(t, component.AccessFound, s.read(target).Access)

	_, f = s.locate(placement{namespaced: false})
	require.Nil(t, f)
	require.Equal(t, component.Reading{}, s.read(target))
}
