package olm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	libconditions "github.com/operator-framework/operator-lib/conditions"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	apiv2 "github.com/operator-framework/api/pkg/operators/v2"

	"github.com/upgrade-gate/upgrade-gate/pkg/olm"
)

func (f *fixture) condition(kind string) libconditions.Condition {
	f.Helper()
	var factory libconditions.Factory = olm.Factory{
		Client: f.operator, Namespace: f.namespace, Name: conditionName,
		Clock: clocktesting.NewFakeClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)),
	}
	c, err := factory.NewCondition(apiv2.ConditionType(kind))
	require.NoError(f, err)
	return c
}

func TestFactoryNeedsItsParts(t *testing.T) {
	name, err := olm.Factory{Namespace: "n", Name: "x"}.GetNamespacedName()
	require.NoError(t, err)
	require.Equal(t, &types.NamespacedName{Namespace: "n", Name: "x"}, name)
	for what, factory := range map[string]olm.Factory{
		"a name":      {Client: &faultyClient{}, Namespace: "n"},
		"a namespace": {Client: &faultyClient{}, Name: "x"},
		"a client":    {Namespace: "n", Name: "x"},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := factory.NewCondition("Upgradeable")
			require.Error(t, err)
		})
	}
	_, err = olm.Factory{Client: &faultyClient{}, Namespace: "n", Name: "x"}.NewCondition("")
	require.Error(t, err)
}

func TestConditionSetAndGet(t *testing.T) {
	f := newFixture(t)
	f.patch(entries(upgradeable("True", "X", ""), upgradeable("True", "Y", "")))
	c := f.condition("Upgradeable")
	found, err := c.Get(t.Context())
	require.NoError(t, err)
	require.Equal(t, "Y", found.Reason, "OLM copies the later one last")
	require.NoError(t, c.Set(t.Context(), metav1.ConditionFalse,
		libconditions.WithReason("Held"), libconditions.WithMessage("h")))
	require.Equal(t, []string{"Upgradeable=False Held: h", "Storage=Unknown A: \x00 ☃", "upgradeable=True B: "}, f.said())
	found, err = c.Get(t.Context())
	require.NoError(t, err)
	require.Equal(t, &metav1.Condition{Type: "Upgradeable", Status: "False", Reason: "Held", Message: "h",
		LastTransitionTime: metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))}, found)
	version := f.raw().GetResourceVersion()
	require.NoError(t, c.Set(t.Context(), metav1.ConditionFalse,
		libconditions.WithReason("Held"), libconditions.WithMessage("h")))
	require.Equal(t, version, f.raw().GetResourceVersion())
	require.Equal(t, 1, f.operator.writes())
}

func TestConditionOfAnotherTypeMayBeUnknown(t *testing.T) {
	f := newFixture(t)
	c := f.condition("Storage")
	require.NoError(t, c.Set(t.Context(), metav1.ConditionUnknown, libconditions.WithReason("Asking")))
	require.Equal(t, []string{"Storage=Unknown Asking: "}, f.said())
	_, err := f.condition("Network").Get(t.Context())
	require.ErrorContains(t, err, "has no condition Network")
}

func TestConditionGetReadsATimeThatGoDoesNotParse(t *testing.T) {
	f := newFixture(t)
	f.patch(entries())
	found, err := f.condition("upgradeable").Get(t.Context())
	require.NoError(t, err)
	require.Equal(t, &metav1.Condition{Type: "upgradeable", Status: "True", Reason: "B"}, found)
}

func TestConditionSetIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		kind   string
		status metav1.ConditionStatus
		reason string
	}{
		"Upgradeable=Unknown, which OLM reads as consent": {"Upgradeable", "Unknown", "X"},
		"a status that does not exist":                    {"Storage", "Maybe", "X"},
		"no status":                                       {"Upgradeable", "", "X"},
		"an opening without a reason":                     {"Upgradeable", "True", ""},
		"a reason that OLM would reject":                  {"Storage", "False", "not-good"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			require.Error(t, f.condition(tc.kind).Set(t.Context(), tc.status, libconditions.WithReason(tc.reason)))
			require.Empty(t, f.requests.all())
		})
	}
}

func TestConditionSetNeverFailsToCloseForItsText(t *testing.T) {
	f := newFixture(t)
	c := f.condition("Upgradeable")
	require.NoError(t, c.Set(t.Context(), metav1.ConditionFalse,
		libconditions.WithReason("not-good"), libconditions.WithMessage(strings.Repeat("é", 40000))))
	require.Equal(t, []string{"Upgradeable=False Initializing: " + strings.Repeat("é", 1999) + "…"}, f.said())
}

func TestConditionSetRetriesConflictsFromALiveRead(t *testing.T) {
	f := newFixture(t)
	conflicts := 0
	f.operator.atPatch(func(_ context.Context, _ string, patch func() error) error {
		if conflicts++; conflicts == 1 {
			f.patch(`{"metadata":{"labels":{"a":"b"}}}`)
		}
		return patch()
	})
	require.NoError(t, f.condition("Upgradeable").Set(t.Context(), metav1.ConditionTrue, libconditions.WithReason("X")))
	require.Equal(t, []string{"Upgradeable=True X: "}, f.said())
	require.Equal(t, 2, f.operator.writes())
}

func TestConditionSetReportsOtherErrors(t *testing.T) {
	f := newFixture(t)
	f.operator.atPatch(func(context.Context, string, func() error) error { return errors.New("injected") })
	err := f.condition("Upgradeable").Set(t.Context(), metav1.ConditionTrue, libconditions.WithReason("X"))
	require.ErrorContains(t, err, "injected")
	require.ErrorContains(t, err, f.namespace+"/gate.v1.0.0")
	f.operator.atGet(func(context.Context, func() error) error {
		return apierrors.NewNotFound(schema.GroupResource{}, "x")
	})
	require.True(t, apierrors.IsNotFound(f.condition("Upgradeable").Set(t.Context(), metav1.ConditionTrue, libconditions.WithReason("X"))))
	require.Equal(t, 1, f.operator.writes(), "it is never created")
}
