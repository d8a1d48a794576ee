package olm

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiv2 "github.com/operator-framework/api/pkg/operators/v2"
	libconditions "github.com/operator-framework/operator-lib/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
)

var _ libconditions.Factory = Factory{}

// Factory makes operator-lib's Conditions for an OperatorCondition that is named
// explicitly: it reads neither the environment nor a file. The zero Factory makes
// none.
type Factory struct {
	Client    Client
	Namespace string
	Name      string
	// Clock gives transition times; nil means the real one.
	Clock clock.Clock
	// Timeout bounds each request; 0 means 5 s.
	Timeout time.Duration
}

// GetNamespacedName is the name of the OperatorCondition. It fails when the
// Factory lacks one.
func (f Factory) GetNamespacedName() (*types.NamespacedName, error) {
	if f.Namespace == "" || f.Name == "" {
		return nil, fmt.Errorf("the OperatorCondition needs a namespace and a name, have %q and %q", f.Namespace, f.Name)
	}
	return &types.NamespacedName{Namespace: f.Namespace, Name: f.Name}, nil
}

// NewCondition makes a Condition of that type, without I/O.
//
// Unlike operator-lib's own, its Set writes nothing when nothing differs, retries
// conflicts from a live read, leaves exactly one entry of the type, and does not
// touch a byte of the entries of others. It never creates the object. The message
// is cut to gate.MaxAnnouncement characters; a reason that the CRD would reject
// is an error, except that Upgradeable=False is always written, with reason
// Initializing if need be. Upgradeable=Unknown is refused: OLM reads it as
// consent (operator-lifecycle-manager,
// pkg/controller/operators/olm/operatorconditions.go).
func (f Factory) NewCondition(kind apiv2.ConditionType) (libconditions.Condition, error) {
	key, err := f.GetNamespacedName()
	if err != nil {
		return nil, err
	}
	if f.Client == nil || kind == "" {
		return nil, errors.New("a condition needs a client and a type")
	}
	c := &condition{kind: string(kind), clock: f.Clock}
	if c.clock == nil {
		c.clock = clock.RealClock{}
	}
	c.store = store{client: f.Client, key: *key, timeout: f.Timeout}
	if c.store.timeout <= 0 {
		c.store.timeout = defaultRequestTimeout
	}
	return c, nil
}

type condition struct {
	store store
	kind  string
	clock clock.Clock
}

// Get returns the condition as it stands in spec; whether OLM has acknowledged it
// is not said. Of several entries it returns the one that OLM will copy last.
func (c *condition) Get(ctx context.Context) (*metav1.Condition, error) {
	d, err := c.store.read(ctx)
	if err != nil {
		return nil, err
	}
	found := d.entries(c.kind, "spec", "conditions")
	if len(found) == 0 {
		return nil, fmt.Errorf("OperatorCondition %s has no condition %s", c.store.key, c.kind)
	}
	e := found[len(found)-1]
	result := &metav1.Condition{
		Type:               c.kind,
		Status:             metav1.ConditionStatus(e.status),
		ObservedGeneration: e.observed,
		Reason:             e.reason,
		Message:            e.message,
	}
	// A time in a notation that Go does not parse costs the time, not the condition.
	if at, err := time.Parse(time.RFC3339, e.since); err == nil {
		result.LastTransitionTime = metav1.NewTime(at)
	}
	return result, nil
}

// Set makes the condition true in spec; see NewCondition.
func (c *condition) Set(ctx context.Context, status metav1.ConditionStatus, options ...libconditions.Option) error {
	wanted := metav1.Condition{Type: c.kind, Status: status}
	for _, option := range options {
		option(&wanted)
	}
	want, err := c.entry(wanted)
	if err != nil {
		return err
	}
	err = retryConflicts(ctx, c.clock, func() error {
		d, err := c.store.read(ctx)
		if err != nil {
			return err
		}
		body, err := d.patch(change{kind: c.kind, want: want, now: c.clock.Now()})
		if err != nil || body == nil {
			return err
		}
		_, err = c.store.patch(ctx, body)
		return err
	})
	if err != nil {
		return fmt.Errorf("setting condition %s: %w", c.kind, err)
	}
	return nil
}

// entry checks what an option may have made of the condition. Its type stays.
func (c *condition) entry(wanted metav1.Condition) (entry, error) {
	gating := c.kind == apiv2.Upgradeable
	switch {
	case gating && wanted.Status == metav1.ConditionFalse:
		return announce(closing(gate.Announcement{Reason: wanted.Reason, Message: wanted.Message})), nil
	case wanted.Status == metav1.ConditionTrue, wanted.Status == metav1.ConditionFalse:
	case wanted.Status == metav1.ConditionUnknown && !gating:
	default:
		return entry{}, fmt.Errorf("condition %s cannot be set to %q", c.kind, wanted.Status)
	}
	if !validReason(wanted.Reason) {
		return entry{}, fmt.Errorf("condition %s needs a reason that the OperatorCondition accepts, have %.64q", c.kind, wanted.Reason)
	}
	return entry{status: string(wanted.Status), reason: wanted.Reason, message: bounded(wanted.Message)}, nil
}
