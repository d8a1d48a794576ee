package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
)

// story is a run of the demo in a cluster.
type story struct {
	screen   *screen
	kubectl  *kubectl
	client   client.WithWatch
	patience time.Duration
	start    operatorStart

	operator *operator
	eyes     *eyes
	// seen is how many sights the story has told, and last the newest of them.
	seen int
	last sight
	// mustStayClosed is set while no component can have been proven ready.
	mustStayClosed bool
}

// tell plays the whole story. Each part fails when what it tells is not seen.
func (s *story) tell(ctx context.Context) error {
	for _, part := range []func(context.Context) error{
		s.anEmptyOperatorConditionIsConsent,
		s.theGateIsClosedFromTheStart,
		s.itOpensWhenEveryComponentHasReconciled,
		s.aStaleComponentClosesIt,
		s.itOpensAgainWhenTheComponentCatchesUp,
		s.aRollOutClosesItUntilItIsComplete,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) anEmptyOperatorConditionIsConsent(ctx context.Context) error {
	if err := s.olmWould(ctx, true); err != nil {
		return err
	}
	s.screen.heading("The gate says which components must be ready")
	gate, err := os.ReadFile(filepath.Join(s.kubectl.root, manifests, "gate.yaml"))
	if err != nil {
		return err
	}
	s.screen.command("cat "+manifests+"gate.yaml", string(gate))
	if err := s.kubectl.show(ctx, "apply", "-f", manifests+"gate.yaml"); err != nil {
		return err
	}
	s.eyes, err = openEyes(ctx, s.client)
	return err
}

func (s *story) theGateIsClosedFromTheStart(ctx context.Context) (err error) {
	s.screen.heading("1. The operator starts, and the gate is closed at once")
	s.mustStayClosed = true
	s.screen.say("It runs as a process, with the token of its service account: it may read the components, not change them.")
	if err := s.theOperatorMayNot(ctx, "update", "storages"); err != nil {
		return err
	}
	s.screen.say("Nobody works on Database and Storage yet.")
	if s.start.pod, err = operatorPod(ctx, s.client); err != nil {
		return err
	}
	if s.operator, err = startOperator(ctx, s.client, s.start); err != nil {
		return err
	}
	if err := s.until(ctx, "OLM to be told Upgradeable=False before anything is known (Initializing)", func(v sight) bool {
		return closed(v.told(), v1alpha1.ReasonInitializing)
	}); err != nil {
		return err
	}
	if err := s.until(ctx, "the gate closed, because of database and storage", func(v sight) bool {
		return v.closedBecauseOf("database", v1alpha1.ReasonObservedGenerationMissing) &&
			v.closedBecauseOf("storage", v1alpha1.ReasonObservedGenerationMissing) &&
			v.component("ingress").Ready == metav1.ConditionTrue
	}); err != nil {
		return err
	}
	if err := s.poll(ctx, "the operator to be ready, whatever its components are", func(ctx context.Context) error {
		if ready(ctx, s.start.health) {
			return nil
		}
		return errors.New("/readyz does not answer with 200")
	}); err != nil {
		return err
	}
	if err := s.showGate(ctx); err != nil {
		return err
	}
	if err := s.showComponents(ctx); err != nil {
		return err
	}
	return s.olmWould(ctx, false)
}

func (s *story) itOpensWhenEveryComponentHasReconciled(ctx context.Context) error {
	s.screen.heading("2. The controllers of Database and Storage start and reconcile, and the gate opens")
	if err := s.kubectl.show(ctx, "scale", "deployment/database-controller", "deployment/storage-controller",
		"--replicas=1", "-n", namespace); err != nil {
		return err
	}
	if err := s.untilOpen(ctx); err != nil {
		return err
	}
	if err := s.showGate(ctx); err != nil {
		return err
	}
	if err := s.showComponents(ctx); err != nil {
		return err
	}
	return s.olmWould(ctx, true)
}

func (s *story) aStaleComponentClosesIt(ctx context.Context) error {
	s.screen.heading("3. The controller of Storage is down, and somebody changes Storage: the gate closes")
	if err := s.kubectl.show(ctx, "scale", "deployment/storage-controller", "--replicas=0", "-n", namespace); err != nil {
		return err
	}
	if err := s.poll(ctx, "the controller of Storage to be gone", s.storageControllerIsGone); err != nil {
		return err
	}
	if err := s.kubectl.show(ctx, "patch", "storage", "main", "--type=merge", "-p", `{"spec":{"capacity":"200Gi"}}`); err != nil {
		return err
	}
	if err := s.until(ctx, "the gate closed, because of storage: generation 2, observed 1", func(v sight) bool {
		return v.closedBecauseOf("storage", v1alpha1.ReasonObservedGenerationStale) &&
			strings.Contains(v.component("storage").Message, "generation 2, observed 1")
	}); err != nil {
		return err
	}
	s.mustStayClosed = true
	s.screen.say("Storage still says that all is well. It says so about the old spec, and that is what the gate sees:")
	if err := s.kubectl.show(ctx, "get", "storage", "main"); err != nil {
		return err
	}
	if err := s.showGate(ctx); err != nil {
		return err
	}
	return s.olmWould(ctx, false)
}

func (s *story) itOpensAgainWhenTheComponentCatchesUp(ctx context.Context) error {
	s.screen.heading("4. The controller comes back and reconciles the change, and the gate opens again")
	if err := s.kubectl.show(ctx, "scale", "deployment/storage-controller", "--replicas=1", "-n", namespace); err != nil {
		return err
	}
	if err := s.untilOpen(ctx); err != nil {
		return err
	}
	if err := s.kubectl.show(ctx, "get", "storage", "main"); err != nil {
		return err
	}
	return s.showGate(ctx)
}

func (s *story) aRollOutClosesItUntilItIsComplete(ctx context.Context) error {
	s.screen.heading("5. Deployment ingress gets a new image: the gate is closed while it rolls out")
	if err := s.kubectl.show(ctx, "set", "image", "deployment/ingress", "ingress=ingress:2.0", "-n", "ingress"); err != nil {
		return err
	}
	if err := s.until(ctx, "the gate closed, because ingress is rolling out", func(v sight) bool {
		return v.closedBecauseOf("ingress", v1alpha1.ReasonExpressionFalse)
	}); err != nil {
		return err
	}
	s.mustStayClosed = true
	if err := s.kubectl.show(ctx, "get", "deployment", "ingress", "-n", "ingress"); err != nil {
		return err
	}
	if err := s.showComponents(ctx); err != nil {
		return err
	}
	if err := s.untilOpen(ctx); err != nil {
		return err
	}
	if err := s.kubectl.show(ctx, "get", "deployment", "ingress", "-n", "ingress"); err != nil {
		return err
	}
	if err := s.showGate(ctx); err != nil {
		return err
	}
	return s.olmWould(ctx, true)
}
