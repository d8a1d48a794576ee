package upgradegate

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
)

func TestOwnersOfGatesElsewhereAreTold(t *testing.T) {
	cases := map[string]struct {
		home       bool
		finalizers []string
		want       string
	}{
		"a gate elsewhere has no effect":            {false, nil, "False NamespaceNotHonoured"},
		"a gate at home is judged, not told":        {true, nil, ""},
		"a gate of another product is left alone":   {false, []string{v1alpha1.GateFinalizer}, ""},
		"a foreign finalizer does not speak for it": {false, []string{"example.com/x"}, "False NamespaceNotHonoured"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			g := w.gate("platform", 0, "a")
			g.Finalizers = c.finalizers
			require.NoError(t, w.client.Update(t.Context(), g))
			e := &Elsewhere{Client: w.reconciler.Client, Clock: w.clock, Log: logr.Discard(), Namespace: "platform-system"}
			if c.home {
				e.Namespace = w.namespace
			}
			e.notice(t.Context(), g)
			stored := w.stored("platform")
			if c.want == "" {
				require.Empty(t, stored.Status.Conditions)
				return
			}
			require.Equal(t, c.want, w.condition("platform", v1alpha1.ConditionReady))
			require.Nil(t, meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionUpgradeable))
			e.notice(t.Context(), stored)
			require.Equal(t, stored.ResourceVersion, w.stored("platform").ResourceVersion, "it is said once")
		})
	}
}
