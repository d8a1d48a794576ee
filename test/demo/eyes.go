package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
)

// sight is the gate and what OLM holds, as they were at one moment.
type sight struct {
	at   time.Time
	gate v1alpha1.UpgradeGate
	olm  operatorsv2.OperatorCondition
}

// decision is the gate's Upgradeable; its zero value when there is none.
func (s sight) decision() metav1.Condition {
	if c := meta.FindStatusCondition(s.gate.Status.Conditions, v1alpha1.ConditionUpgradeable); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// told is what the operator wrote for OLM; its zero value when it wrote nothing.
func (s sight) told() metav1.Condition {
	if c := meta.FindStatusCondition(s.olm.Spec.Conditions, operatorsv2.Upgradeable); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// acknowledged reports whether OLM has copied what it was told, at the current
// generation, and the gate knows.
func (s sight) acknowledged() bool {
	told := s.told()
	copied := meta.FindStatusCondition(s.olm.Status.Conditions, operatorsv2.Upgradeable)
	return copied != nil && copied.Status == told.Status && copied.Reason == told.Reason &&
		copied.ObservedGeneration == s.olm.Generation &&
		meta.IsStatusConditionTrue(s.gate.Status.Conditions, v1alpha1.ConditionPublished)
}

// component is a component's row in the gate's status; its zero value when there
// is none.
func (s sight) component(name string) v1alpha1.ComponentStatus {
	for _, c := range s.gate.Status.Components {
		if c.Name == name {
			return c
		}
	}
	return v1alpha1.ComponentStatus{}
}

func (s sight) String() string {
	gate, told := s.decision(), s.told()
	return fmt.Sprintf("gate: Upgradeable=%s %s, %s; OLM was told: Upgradeable=%s %s, acknowledged: %t",
		gate.Status, gate.Reason, gate.Message, told.Status, told.Reason, s.acknowledged())
}

// eyes watch, so that nothing is missed however short it lasts.
type eyes struct {
	mu    sync.Mutex
	seen  []sight
	blind error
	// more is closed, and replaced, when seen or blind changes.
	more chan struct{}
}

func openEyes(ctx context.Context, c client.WithWatch) (*eyes, error) {
	gates, err := c.Watch(ctx, &v1alpha1.UpgradeGateList{}, client.InNamespace(namespace))
	if err != nil {
		return nil, err
	}
	conditions, err := c.Watch(ctx, &operatorsv2.OperatorConditionList{}, client.InNamespace(namespace))
	if err != nil {
		gates.Stop()
		return nil, err
	}
	e := &eyes{more: make(chan struct{})}
	go func() {
		defer gates.Stop()
		defer conditions.Stop()
		e.look(gates.ResultChan(), conditions.ResultChan())
	}()
	return e, nil
}

// look ends when a watch does.
func (e *eyes) look(gates, conditions <-chan watch.Event) {
	var now sight
	for {
		var event watch.Event
		var ok bool
		select {
		case event, ok = <-gates:
		case event, ok = <-conditions:
		}
		switch object := event.Object.(type) {
		case *v1alpha1.UpgradeGate:
			now.gate = *object
		case *operatorsv2.OperatorCondition:
			now.olm = *object
		default:
			ok = false
		}
		if !ok {
			e.note(nil, fmt.Errorf("the watch on the cluster ended: %v", event.Object))
			return
		}
		now.at = time.Now()
		e.note(&now, nil)
	}
}

func (e *eyes) note(s *sight, blind error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s != nil {
		e.seen = append(e.seen, *s)
	}
	e.blind = blind
	close(e.more)
	e.more = make(chan struct{})
}

// errTooLate is the end of a wait.
var errTooLate = errors.New("not seen in time")

// sight returns the sight of that number, and waits for it until late or until
// the operator is gone.
func (e *eyes) sight(ctx context.Context, number int, late <-chan time.Time, gone <-chan struct{}) (sight, error) {
	for {
		e.mu.Lock()
		more, blind := e.more, e.blind
		if number < len(e.seen) {
			defer e.mu.Unlock()
			return e.seen[number], nil
		}
		e.mu.Unlock()
		if blind != nil {
			return sight{}, blind
		}
		select {
		case <-ctx.Done():
			return sight{}, ctx.Err()
		case <-gone:
			return sight{}, errGone
		case <-late:
			return sight{}, errTooLate
		case <-more:
		}
	}
}

// errGone: the operator's process ended.
var errGone = errors.New("the operator ended")
