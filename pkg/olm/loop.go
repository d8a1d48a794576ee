package olm

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
)

const (
	shortest = 200 * time.Millisecond
	longest  = 10 * time.Second
	// jitter spreads the retries of several replicas.
	jitter = 0.25
	// partingLimit is how long the last words may take; Kubernetes allows a pod
	// 30 s by default, and others must stop, too.
	partingLimit = 3 * time.Second
)

// NeedLeaderElection is false: each replica must be able to speak for a version
// of which OLM holds nothing yet, and must know whether OLM has acknowledged.
func (p *Publisher) NeedLeaderElection() bool {
	return false
}

// Start runs the loop until ctx ends, and then returns nil.
//
// First of all, if OLM holds no Upgradeable entry, it writes False with reason
// Initializing and retries until that succeeds: OLM creates the object of each
// version empty, and reads that as consent (operator-lifecycle-manager,
// pkg/controller/operators/operatorconditiongenerator_controller.go). An entry
// that is there, whatever it says, is the leader's business.
//
// After that it reads the object each Interval, sooner after a write, and
// repairs: an entry that went missing, and one that is no longer what this
// process last announced, if that was closed. If it was open, the controller is
// woken, because opening needs new proof.
//
// When ctx ends, OLM is told OperatorStopped if our Deployment is scaled to 0 and
// still ours, and nothing otherwise: a hand-over must not leave a False that
// nobody is left to correct.
func (p *Publisher) Start(ctx context.Context) error {
	p.show(func(s *shown) { s.started = true })
	if !p.enforced() {
		<-ctx.Done()
		return nil
	}
	pace := pace{interval: p.config.Interval}
	notified := p.Publication()
	for ctx.Err() == nil {
		unproven, err := p.step(ctx)
		now := p.Publication()
		if (unproven || matters(notified, now)) && p.config.Changed != nil {
			p.config.Changed()
		}
		notified = now
		if p.sleep(ctx, pace.next(now.Acknowledged, err)) {
			pace.waiting = 0
		}
	}
	return p.part(ctx)
}

// step reads and repairs. unproven is true when the controller must look again: to
// prove anew what it announced open, or because a trouble is over.
func (p *Publisher) step(ctx context.Context) (unproven bool, err error) {
	if err := p.take(ctx); err != nil {
		return false, err
	}
	defer p.release()
	if err := p.look(ctx); err != nil {
		return false, err
	}
	p.show(func(s *shown) { s.lastRead = p.config.Clock.Now() })
	announced := p.memory.announced
	unproven = p.memory.troubled || announced != nil && announced.Open && !p.memory.last.says(*announced)
	p.memory.troubled = false
	if due := p.due(); due != nil {
		err = frozenIsFine(p.write(ctx, *due))
	}
	return unproven, err
}

// due is what must be written without being asked; nil when nothing is. After an
// open announcement a missing entry becomes Initializing: what blocked before the
// opening is no longer true.
func (p *Publisher) due() *gate.Announcement {
	announced, last := p.memory.announced, p.memory.last
	if announced != nil && !announced.Open {
		if last.says(*announced) {
			return nil
		}
		return announced
	}
	if len(last.upgradeable()) == 0 {
		a := initializing(p.config.Namespace, p.config.Name)
		return &a
	}
	return nil
}

// sleep returns after delay, or soon after a write, or when ctx ends. wrote is
// true when there was a write.
func (p *Publisher) sleep(ctx context.Context, delay time.Duration) (wrote bool) {
	end := p.config.Clock.Now().Add(delay)
	for left := delay; left > 0; left = end.Sub(p.config.Clock.Now()) {
		timer := p.config.Clock.NewTimer(left)
		select {
		case <-ctx.Done():
			timer.Stop()
			return wrote
		case <-timer.C():
			return wrote
		case <-p.written:
			timer.Stop()
			wrote = true
			if soon := p.config.Clock.Now().Add(shortest); soon.Before(end) {
				end = soon
			}
		}
	}
	return wrote
}

// part says the last word.
func (p *Publisher) part(ctx context.Context) error {
	if p.config.Owner == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), partingLimit)
	defer cancel()
	off, err := p.config.Owner.Stopped(ctx)
	if err != nil {
		p.config.Log.Info("could not find out whether the operator is switched off; OLM keeps what it was told", "error", err.Error())
		return nil
	}
	if !off {
		return nil
	}
	if err := p.sayStopped(ctx); err != nil {
		p.config.Log.Info("OLM could not be told that the operator is switched off", "error", err.Error())
	}
	return nil
}

func (p *Publisher) sayStopped(ctx context.Context) error {
	if err := p.take(ctx); err != nil {
		return err
	}
	defer p.release()
	p.memory.stopping = true
	return frozenIsFine(p.publish(ctx, stopped(p.config.Namespace, p.config.Name)))
}

// pace says when to look again: after a failure ever later, while OLM has not
// acknowledged soon and then ever later, else each interval.
type pace struct {
	interval time.Duration
	waiting  time.Duration
	failing  time.Duration
}

func (p *pace) next(acknowledged bool, err error) time.Duration {
	if err != nil && !errors.Is(err, context.Canceled) {
		p.failing = grown(p.failing, longest)
		return min(wait.Jitter(p.failing, jitter), longest)
	}
	p.failing = 0
	if acknowledged {
		p.waiting = 0
		return p.interval
	}
	p.waiting = grown(p.waiting, p.interval)
	return p.waiting
}

// grown is twice delay, at least shortest and at most limit.
func grown(delay, limit time.Duration) time.Duration {
	return min(max(2*delay, shortest), limit)
}
