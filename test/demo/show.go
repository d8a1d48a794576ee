package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/upgrade-gate/upgrade-gate/test/olmdouble"
)

// show is the whole demo. Everything that it starts is ended when it returns,
// unless it was asked to keep it and the story was seen to its end.
func (o *options) show(ctx context.Context, stdout, stderr io.Writer) (err error) {
	s := newScreen(stdout)
	introduce(s)
	folder, err := os.MkdirTemp("", "upgrade-gate-demo-") // mode 0700: credentials are in it
	if err != nil {
		return err
	}
	kept := false
	defer func() {
		if !kept {
			os.RemoveAll(folder)
		}
	}()
	o.folder = folder
	o.operator, err = o.build(ctx, o.operator, ".", "./cmd/upgrade-gate-operator", filepath.Join(folder, operatorName))
	if err != nil {
		return err
	}
	p, end, err := o.openPlace(ctx, folder, &indented{out: stderr})
	defer func() {
		if kept {
			return
		}
		if o.kubeconfig == "" {
			s.say("Ending the cluster.")
		}
		var problem error
		if ending(ctx, &problem, end); problem != nil {
			// Said here, because an interrupted demo says nothing else.
			s.say("It could not be ended: %v", problem)
			err = errors.Join(err, problem)
		}
	}()
	if err != nil {
		return err
	}
	if err := o.perform(ctx, p, s); err != nil {
		return err
	}
	if o.keep {
		if err := o.leaveRunning(ctx, p, s); err != nil {
			return err
		}
		kept = true
	}
	return nil
}

func introduce(s *screen) {
	s.heading("upgrade-gate: OLM must not upgrade an operator while its product is not ready for it")
	s.say("OLM installs every new version of an operator at once, unless the OperatorCondition of the one that" +
		" runs says Upgradeable=False. upgrade-gate says so until each component of the product is proven" +
		" to have reconciled its current spec.")
	s.print("\n")
	s.say("Real here: the Kubernetes control plane, the operator, its rights, and every object that you see.")
	s.say("Played by the demo: OLM, which makes the OperatorCondition and acknowledges what the operator" +
		" writes there by copying it from spec to status; the work of the controllers of Database and Storage;" +
		" and, by kwok, the node and its pods.")
}

// perform plays the story in a cluster, and ends what that needs.
func (o *options) perform(ctx context.Context, p *place, s *screen) (err error) {
	config, c, err := connect(p.kubeconfig)
	if err != nil {
		return err
	}
	if err := refuseForeign(ctx, c); err != nil {
		return err
	}
	health, err := freeAddress()
	if err != nil {
		return err
	}
	t := &story{
		screen: s, client: c, patience: o.patience,
		kubectl: &kubectl{place: p, root: o.root, folder: o.folder, screen: s},
		start:   operatorStart{binary: o.operator, log: o.log, health: health, folder: o.folder, admin: config},
	}
	defer func() {
		if t.operator != nil {
			ending(ctx, &err, t.operator.stop)
		}
	}()
	if err := t.setUp(ctx); err != nil {
		return err
	}
	played, wait := playParts(ctx, config)
	if err := t.tell(played); err != nil {
		// A part that failed is why the story did; and nothing is left to say
		// about a story that was interrupted.
		if cause := context.Cause(played); cause != nil && ctx.Err() == nil {
			err = cause
		}
		wait()
		return err
	}
	wait()
	s.heading("Every step was seen.")
	s.say("The operator's log: %s", o.log)
	return nil
}

// playParts plays OLM and the components' controllers. The context that it
// returns ends when one of them fails; wait ends them.
func playParts(ctx context.Context, config *rest.Config) (played context.Context, wait func()) {
	played, cancel := context.WithCancelCause(ctx)
	var parts sync.WaitGroup
	for name, play := range map[string]func() error{
		"OLM":             func() error { return olmdouble.Run(played, config, namespace) },
		"the controllers": func() error { return runControllers(played, config) },
	} {
		parts.Go(func() {
			if err := play(); err != nil && played.Err() == nil {
				cancel(fmt.Errorf("the part of %s cannot be played: %w", name, err))
			}
		})
	}
	return played, func() {
		cancel(nil)
		parts.Wait()
	}
}
