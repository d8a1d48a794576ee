// Package watch reads the objects that components refer to, from memory while
// they are watched and live when a gate is about to open.
//
// The Manager keeps one watch per kind and, of everything a watch delivers, only
// the component.Snapshots of the objects that are wanted. A Live reads one
// object from the API server each time. Both report every failure in the
// component.Reading, in words that stay the same while the failure does.
package watch

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/upgrade-gate/upgrade-gate/pkg/component"
)

// The timings that a zero Config stands for.
const (
	// DefaultSyncTimeout is Config.SyncTimeout when it is 0.
	DefaultSyncTimeout = 10 * time.Second
	// DefaultRetryInterval is Config.RetryInterval when it is 0.
	DefaultRetryInterval = 10 * time.Second
)

// Config is what a Manager needs. Client and Discovery are required.
type Config struct {
	// Client lists and watches. Its identity needs get, list and watch on the
	// wanted kinds: in one namespace where all wanted objects of a kind are in
	// that namespace, else in the whole cluster.
	Client dynamic.Interface
	// Discovery finds resource and scope of a kind.
	Discovery Discovery
	// Changed is called after what Read answers may have changed, from several
	// goroutines at once. It must not block. Nil: nobody is told.
	Changed func()
	// Log gets one line each time a watch changes its state.
	Log logr.Logger
	// Clock is the real one when nil.
	Clock clock.Clock
	// SyncTimeout is how long a watch may take to read the kind for the first
	// time before its objects are AccessTimedOut, and how long a watch that was
	// lost goes on answering with what it last knew. 0: DefaultSyncTimeout.
	SyncTimeout time.Duration
	// RetryInterval is the longest pause between two attempts to start a watch,
	// and so the time in which an installed kind or a granted right is noticed.
	// 0: DefaultRetryInterval.
	RetryInterval time.Duration
}

// Manager answers reads of wanted objects from memory and says when an answer
// changes. It is a probe.Reader and a controller-runtime manager.Runnable that
// only the leader runs. All methods may be called at the same time.
//
// What it holds is re-read from the API server whenever a watch ends, which
// client-go makes it do after 5 to 10 minutes at the latest.
type Manager struct {
	cfg      Config
	sessions sync.WaitGroup

	mu sync.RWMutex
	// wanted is the latest complete set of targets, by kind.
	wanted map[schema.GroupVersionKind]targetSet
	kinds  map[schema.GroupVersionKind]*kind
	// launch starts a session. It is nil while the Manager does not run.
	launch  func(*session)
	started bool
}

type targetSet map[component.Target]struct{}

// kind is the state of one kind. serving answers reads; next, if any, was made
// for a newer set of targets and takes over once it knows its objects or knows
// that it cannot read them, so that a change of the set is no gap.
type kind struct {
	serving, next *session
}

// New returns a Manager that wants nothing. It does no I/O before Start.
func New(cfg Config) *Manager {
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	if cfg.Changed == nil {
		cfg.Changed = func() {}
	}
	if cfg.SyncTimeout == 0 {
		cfg.SyncTimeout = DefaultSyncTimeout
	}
	if cfg.RetryInterval == 0 {
		cfg.RetryInterval = DefaultRetryInterval
	}
	return &Manager{cfg: cfg, kinds: map[schema.GroupVersionKind]*kind{}}
}

// NeedLeaderElection makes controller-runtime run the Manager on the leader
// only: a standby does not load the API server.
func (m *Manager) NeedLeaderElection() bool { return true }

// Start watches until ctx ends and returns when every watch has stopped; then
// all reads are unread again. It must be called at most once.
func (m *Manager) Start(ctx context.Context) error {
	if m.cfg.Client == nil || m.cfg.Discovery == nil {
		return errors.New("watch: Config.Client and Config.Discovery are required")
	}
	m.mu.Lock()
	if m.started {
		m.mu.Unlock()
		return errors.New("watch: the Manager was started twice")
	}
	m.started = true
	m.launch = func(s *session) {
		ctx, cancel := context.WithCancel(ctx)
		s.cancel = cancel
		m.sessions.Go(func() { s.run(ctx) })
	}
	m.align()
	m.mu.Unlock()

	<-ctx.Done()
	m.mu.Lock()
	m.launch = nil
	for gvk := range m.kinds {
		m.drop(gvk)
	}
	m.mu.Unlock()
	m.sessions.Wait()
	return nil
}

// Want sets the complete set of objects that Read is asked for. Watches are
// started and stopped as needed; targets that were not wanted before are unread
// until they have been read. An unchanged set costs no I/O, nor does the order
// of targets matter.
func (m *Manager) Want(targets []component.Target) {
	wanted := map[schema.GroupVersionKind]targetSet{}
	for _, target := range targets {
		set := wanted[target.GVK]
		if set == nil {
			set = targetSet{}
			wanted[target.GVK] = set
		}
		set[target] = struct{}{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wanted = wanted
	m.align()
}

// Read answers from memory, without I/O. A target that is not wanted, or was not
// read yet, is unread. The same object unchanged gives the same Snapshot
// pointer.
func (m *Manager) Read(_ context.Context, target component.Target) component.Reading {
	m.mu.RLock()
	defer m.mu.RUnlock()
	k := m.kinds[target.GVK]
	if _, wanted := m.wanted[target.GVK][target]; !wanted || k == nil {
		return component.Reading{}
	}
	for _, s := range []*session{k.serving, k.next} {
		if s == nil {
			continue
		}
		if _, has := s.targets[target]; has {
			return s.read(target)
		}
	}
	return component.Reading{}
}

// align makes the sessions fit the wanted set. m.mu is held.
//
// A session never changes its targets: any difference is a new session, because
// objects that were not wanted before are not in memory and have to be read.
func (m *Manager) align() {
	if m.launch == nil {
		return
	}
	for gvk := range m.kinds {
		if len(m.wanted[gvk]) == 0 {
			m.drop(gvk)
		}
	}
	for gvk, set := range m.wanted {
		k := m.kinds[gvk]
		if k == nil {
			k = &kind{}
			m.kinds[gvk] = k
		}
		if k.next != nil && maps.Equal(k.next.targets, set) {
			continue
		}
		k.next.retire()
		k.next = nil
		if k.serving != nil && maps.Equal(k.serving.targets, set) {
			continue
		}
		s := newSession(m, gvk, set)
		if k.serving == nil {
			k.serving = s
		} else {
			k.next = s
		}
		m.launch(s)
	}
}

// drop ends everything about a kind. m.mu is held.
func (m *Manager) drop(gvk schema.GroupVersionKind) {
	k := m.kinds[gvk]
	k.serving.retire()
	k.next.retire()
	delete(m.kinds, gvk)
}
