package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/test/olmdouble"
)

// until tells what is seen, as it happens, until that is there.
func (s *story) until(ctx context.Context, what string, there func(sight) bool) error {
	timer := time.NewTimer(s.patience)
	defer timer.Stop()
	for {
		v, err := s.eyes.sight(ctx, s.seen, timer.C, s.operator.done)
		switch {
		case errors.Is(err, errGone):
			return s.operator.death()
		case errors.Is(err, errTooLate):
			return fmt.Errorf("waited %s for %s; seen instead: %s", s.patience, what, s.last)
		case err != nil:
			return err
		}
		s.report(s.last, v)
		s.seen, s.last = s.seen+1, v
		if there(v) {
			return nil
		}
		if s.mustStayClosed && v.told().Status == metav1.ConditionTrue {
			return fmt.Errorf("waiting for %s, OLM was told Upgradeable=True too early: %s", what, v)
		}
	}
}

// report tells what changed.
func (s *story) report(before, now sight) {
	if d := now.decision(); d.Status != "" && !same(before.decision(), d) {
		text := fmt.Sprintf("gate platform is closed: %s, %s", d.Reason, d.Message)
		colour := red
		if d.Status == metav1.ConditionTrue {
			text = fmt.Sprintf("gate platform is open: %s, %s", d.Reason, d.Message)
			colour = green
		}
		s.screen.happened(now.at, text, colour)
	}
	if told := now.told(); told.Status != before.told().Status || told.Reason != before.told().Reason {
		s.screen.happened(now.at, fmt.Sprintf("OLM is told Upgradeable=%s, %s", told.Status, told.Reason), "")
	}
}

func same(a, b metav1.Condition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

func (s *story) showGate(ctx context.Context) error {
	if err := s.kubectl.show(ctx, "get", "upgradegate", "platform", "-n", namespace); err != nil {
		return err
	}
	return s.kubectl.show(ctx, "get", "operatorcondition", "-n", namespace, "-o=custom-columns-file=test/demo/views/olm")
}

func (s *story) showComponents(ctx context.Context) error {
	return s.kubectl.show(ctx, "get", "ugate", "platform", "-n", namespace, "-o=go-template-file=test/demo/views/components")
}

// untilOpen waits for the settle window and then for the gate to open: every
// component proven ready, and OLM holding the True that it was told.
func (s *story) untilOpen(ctx context.Context) error {
	if err := s.until(ctx, "all components ready, and the gate waiting for minReadySeconds (Settling)", func(v sight) bool {
		return closed(v.decision(), v1alpha1.ReasonSettling)
	}); err != nil {
		return err
	}
	s.mustStayClosed = false
	return s.until(ctx, "the gate open, and acknowledged by OLM", func(v sight) bool {
		for _, name := range []string{"ingress", "database", "storage"} {
			if v.component(name).Ready != metav1.ConditionTrue {
				return false
			}
		}
		return v.open() && v.acknowledged()
	})
}

func closed(c metav1.Condition, reason string) bool {
	return c.Status == metav1.ConditionFalse && c.Reason == reason
}

func (v sight) open() bool {
	return v.decision().Status == metav1.ConditionTrue && v.decision().ObservedGeneration == v.gate.Generation &&
		v.told().Status == metav1.ConditionTrue
}

// closedBecauseOf reports whether the gate and OLM agree that this component
// keeps the gate closed, OLM has acknowledged it, and was told the component.
func (v sight) closedBecauseOf(component, reason string) bool {
	return v.component(component).Reason == reason &&
		closed(v.decision(), v1alpha1.ReasonComponentsNotReady) &&
		closed(v.told(), v1alpha1.ReasonComponentsNotReady) && v.acknowledged() &&
		strings.Contains(v.told().Message, fmt.Sprintf("%s: %s", component, reason))
}

// olmWould says what OLM would do with a new version of the operator at this
// moment, by OLM's own rule.
func (s *story) olmWould(ctx context.Context, upgrade bool) error {
	var held operatorsv2.OperatorCondition
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: operatorCondition}, &held); err != nil {
		return err
	}
	allowed, message := olmdouble.Decide(&held, true)
	if allowed != upgrade {
		return fmt.Errorf("OLM would upgrade: %t, and should: %t (%s)", allowed, upgrade, message)
	}
	if allowed {
		s.screen.happened(time.Now(), "If a new version of the operator came now, OLM would install it.", green)
		return nil
	}
	// The message ends with the command that overrides the gate, too long for here.
	why, override, _ := strings.Cut(message, "; to override: ")
	s.screen.happened(time.Now(), "If a new version of the operator came now, OLM would wait, and say: "+why, red)
	if override != "" {
		s.screen.say("  (and the command by which an administrator overrides that)")
	}
	return nil
}

func (s *story) storageControllerIsGone(ctx context.Context) error {
	var d appsv1.Deployment
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "storage-controller"}, &d); err != nil {
		return err
	}
	if d.Status.ObservedGeneration != d.Generation || d.Status.AvailableReplicas > 0 {
		return errors.New("Deployment storage-controller still has a pod")
	}
	return nil
}

// theOperatorMayNot shows that something is forbidden to the operator's account.
func (s *story) theOperatorMayNot(ctx context.Context, verb, resource string) error {
	arguments := []string{"auth", "can-i", verb, resource, "--as=system:serviceaccount:" + namespace + ":" + operatorName}
	output, err := s.kubectl.run(ctx, nil, arguments...)
	// kubectl says no, with exit code 1.
	if err == nil || !strings.HasSuffix(err.Error(), "\nno") {
		return fmt.Errorf("the operator's account should not be allowed to %s %s: %s%w", verb, resource, output, err)
	}
	s.screen.command("kubectl "+quoted(arguments), "no")
	return nil
}
