package olm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
)

const (
	defaultInterval       = 5 * time.Second
	defaultStaleAfter     = 60 * time.Second
	defaultRequestTimeout = 5 * time.Second
)

var (
	// ErrFrozen is returned instead of writing once our Deployment belongs to
	// another ClusterServiceVersion: what this process knows is then no longer
	// anybody's business, and its OperatorCondition is the old version's.
	ErrFrozen = errors.New("our Deployment belongs to another ClusterServiceVersion; this process writes nothing more")
	// ErrStopping is returned by Open after the operator was found to be switched
	// off, so that a pass that is under way does not open what was just closed.
	ErrStopping = errors.New("the operator is being stopped and opens nothing more")
)

// Ownership says whether this process still speaks for its ClusterServiceVersion;
// see Owner.
type Ownership interface {
	// Check reports whether our Deployment belongs to another
	// ClusterServiceVersion. Once true, it stays true.
	Check(ctx context.Context) (frozen bool, err error)
	// Stopped reports whether our Deployment is still ours and scaled to 0.
	Stopped(ctx context.Context) (bool, error)
}

// Config is what a Publisher is made of.
type Config struct {
	// Mode decides whether anything is read or written at all; see DetectMode.
	Mode v1alpha1.OLMMode
	// Client must not answer from a cache. It, Namespace and Name are needed in
	// mode OLMv0 only.
	Client    Client
	Namespace string
	// Name of the OperatorCondition, which is the ClusterServiceVersion's.
	Name string
	// Owner is asked before each write; nil means that we are always the owner
	// and never stopped.
	Owner Ownership
	// Interval is how often the OperatorCondition is read when nothing happens;
	// 0 means 5 s.
	Interval time.Duration
	// StaleAfter is how old the loop's last successful read may be before Ready
	// fails; 0 means 60 s.
	StaleAfter time.Duration
	// RequestTimeout bounds each request; 0 means 5 s.
	RequestTimeout time.Duration
	// Clock gives times and delays; nil means the real one.
	Clock clock.Clock
	// Changed is called after a read of the loop that found something else than
	// before, and as long as OLM does not hold what was announced open. It must
	// not block. nil is allowed.
	Changed func()
	// ForeignWrite is called once for each change of our entry by somebody else;
	// found is what OLM makes of it, and is the zero Announcement when the entry
	// was removed. It must not block and must not call the Publisher, except for
	// Publication. nil is allowed.
	ForeignWrite func(found gate.Announcement)
	Log          logr.Logger
}

// Publisher is the only thing that writes to OLM. All its methods may be called
// at the same time; those that do I/O follow one another.
//
// In the modes OLMv1 and None there is nobody to tell: Refresh, Close and Open do
// nothing and succeed, and Publication says the mode.
type Publisher struct {
	config Config
	store  store
	// turn holds a token for whoever talks to the API server or looks at memory.
	turn   chan struct{}
	memory memory
	// written wakes the loop, because a write wants an acknowledgement.
	written chan struct{}

	mu    sync.RWMutex
	shown shown
}

// shown is what can be asked without waiting for I/O; guarded by Publisher.mu.
type shown struct {
	publication gate.Publication
	// started is set when the loop runs.
	started bool
	// lastRead is when the loop last read successfully; acknowledged is set for
	// good by the first acknowledgement.
	lastRead     time.Time
	acknowledged bool
	deployments  []string
}

// memory is what one operation leaves to the next; guarded by Publisher.turn.
type memory struct {
	// last is what was last read or written; nil when that is not certain.
	last *document
	uid  types.UID
	// announced is what the controller wants OLM to hold; nil before its first
	// word. A closed one holds from the moment it is asked for, an open one only
	// once it is written.
	announced *gate.Announcement
	// sent is the last announcement that was sent, with whatever outcome, and
	// held is the last one of this process that the object is known to have held.
	sent, held *gate.Announcement
	// refused is what could not be written; nil once that does not matter.
	refused *gate.Announcement
	doubt   *doubt
	// troubled is set when the object could not be read. The controller may have
	// seen that between two reads of the loop, and waits to hear that it is over.
	troubled bool
	// foreign is the foreign content that was last reported.
	foreign  string
	stopping bool
}

// doubt is an opening write without an answer: it may have had its effect, and it
// may still have it, as long as the object keeps its resource version.
type doubt struct {
	announcement    gate.Announcement
	resourceVersion string
	// superseded is set when the controller closed the gate after it.
	superseded bool
}

// NewPublisher checks c; it does no I/O.
func NewPublisher(c Config) (*Publisher, error) {
	switch c.Mode {
	case v1alpha1.OLMModeV1, v1alpha1.OLMModeNone:
		c.Name = ""
	case v1alpha1.OLMModeV0:
		if c.Client == nil || c.Namespace == "" || c.Name == "" {
			return nil, fmt.Errorf("mode %s needs a client, a namespace and the name of the OperatorCondition, have namespace %q and name %q",
				c.Mode, c.Namespace, c.Name)
		}
	default:
		return nil, fmt.Errorf("unknown mode of OLM %q", c.Mode)
	}
	if c.Interval <= 0 {
		c.Interval = defaultInterval
	}
	if c.StaleAfter <= 0 {
		c.StaleAfter = defaultStaleAfter
	}
	if c.RequestTimeout <= 0 {
		c.RequestTimeout = defaultRequestTimeout
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	p := &Publisher{config: c, turn: make(chan struct{}, 1), written: make(chan struct{}, 1)}
	p.store = store{
		client:  c.Client,
		key:     types.NamespacedName{Namespace: c.Namespace, Name: c.Name},
		timeout: c.RequestTimeout,
	}
	p.shown.publication = gate.Publication{Mode: c.Mode, Name: c.Name}
	return p, nil
}

// Publication is what OLM held when it was last read or written, without I/O.
func (p *Publisher) Publication() gate.Publication {
	p.mu.RLock()
	defer p.mu.RUnlock()
	publication := p.shown.publication
	if publication.Entry != nil {
		entry := *publication.Entry
		publication.Entry = &entry
	}
	return publication
}

// Refresh reads the OperatorCondition now. The error explains the Publication's
// Problem. When ctx ended first, nothing was learned, and the Publication is the
// one before.
func (p *Publisher) Refresh(ctx context.Context) (gate.Publication, error) {
	if !p.enforced() {
		return p.Publication(), nil
	}
	if err := p.take(ctx); err != nil {
		return p.Publication(), err
	}
	defer p.release()
	err := p.look(ctx)
	return p.Publication(), err
}

// Close tells OLM Upgradeable=False with a's reason and message, whatever a.Open
// says. A reason that OLM would reject becomes Initializing and a message is cut,
// because a rejected write would leave True in force.
//
// From then on a is what OLM is to hold: if Close fails, or somebody else changes
// the entry, the loop writes it. Nothing is written if OLM was last seen to hold
// exactly a.
func (p *Publisher) Close(ctx context.Context, a gate.Announcement) error {
	if !p.enforced() {
		return nil
	}
	a = closing(a)
	if err := p.take(ctx); err != nil {
		return fmt.Errorf("closing the gate at OLM: %w", err)
	}
	defer p.release()
	p.memory.announced = &a
	if p.memory.doubt != nil {
		p.memory.doubt.superseded = true
	}
	if err := p.publish(ctx, a); err != nil {
		p.wakeLoop()
		return fmt.Errorf("closing the gate at OLM: %w", err)
	}
	return nil
}

// publish writes a, which is closed, over whatever is there.
func (p *Publisher) publish(ctx context.Context, a gate.Announcement) error {
	return retryConflicts(ctx, p.config.Clock, func() error {
		if p.memory.last == nil {
			if err := p.look(ctx); err != nil {
				return err
			}
		}
		return p.write(ctx, a)
	})
}

// Open tells OLM Upgradeable=True, in one write that succeeds only if the
// OperatorCondition still is at resourceVersion. The caller must have got that
// from Refresh before it read the components that prove a.
//
// When the object has changed since, the error satisfies apierrors.IsConflict,
// and the evidence must be gathered anew; Open never retries. After any other
// error OLM may hold True all the same; the next read tells.
func (p *Publisher) Open(ctx context.Context, a gate.Announcement, resourceVersion string) error {
	if !p.enforced() {
		return nil
	}
	a, err := opening(a)
	if err != nil {
		return fmt.Errorf("opening the gate at OLM: %w", err)
	}
	if err := p.take(ctx); err != nil {
		return fmt.Errorf("opening the gate at OLM: %w", err)
	}
	defer p.release()
	if err := p.open(ctx, a, resourceVersion); err != nil {
		// It may have had its effect all the same: look soon.
		p.wakeLoop()
		return fmt.Errorf("opening the gate at OLM: %w", err)
	}
	return nil
}

func (p *Publisher) open(ctx context.Context, a gate.Announcement, resourceVersion string) error {
	last := p.memory.last
	switch {
	case p.memory.stopping:
		return ErrStopping
	case resourceVersion == "":
		return errors.New("without a resource version nothing proves that the object is unchanged")
	case last == nil || last.object.GetResourceVersion() != resourceVersion:
		return p.store.conflict("it has changed, or was not read successfully, since resource version " + resourceVersion)
	}
	if err := p.write(ctx, a); err != nil {
		return err
	}
	p.memory.announced, p.memory.held = &a, &a
	return nil
}

func (p *Publisher) enforced() bool {
	return p.config.Mode == v1alpha1.OLMModeV0
}

// take waits for the turn; the caller must release it.
func (p *Publisher) take(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *Publisher) release() {
	<-p.turn
}
