package watch

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/upgrade-gate/upgrade-gate/pkg/component"
)

// firstPause is the pause after the first failed attempt; it doubles up to
// Config.RetryInterval.
const firstPause = 500 * time.Millisecond

// session watches one kind for one set of targets, which never changes. It
// attempts to until it is cancelled.
type session struct {
	manager *Manager
	gvk     schema.GroupVersionKind
	targets targetSet
	// cancel ends run. It is set when the session is launched.
	cancel context.CancelFunc

	// The rest is guarded by manager.mu.

	// access is AccessFound while objects can be read, and says else why not.
	access component.Access
	detail string
	// lost is why the watch ended, or did not begin, while older knowledge goes
	// on being served; nil otherwise.
	lost    *failure
	place   *placement
	objects map[types.NamespacedName]*component.Snapshot
	// established is set while a watch is open. A list alone does not count: it
	// would make a kind that may be listed and not watched come and go.
	established bool
	staged      map[types.NamespacedName]*component.Snapshot
	retired     bool
}

func newSession(m *Manager, gvk schema.GroupVersionKind, targets targetSet) *session {
	return &session{manager: m, gvk: gvk, targets: targets}
}

// retire ends a session; whatever it still delivers is ignored. manager.mu is
// held. A nil session may be retired.
func (s *session) retire() {
	if s == nil {
		return
	}
	s.retired = true
	s.cancel()
}

// read answers for one of the session's targets. manager.mu is held.
func (s *session) read(target component.Target) component.Reading {
	var key types.NamespacedName
	if s.place != nil {
		located, f := s.place.locate(target)
		if f != nil {
			return component.Reading{Access: f.access, Detail: f.detail}
		}
		key = located
	}
	if s.access != component.AccessFound {
		return component.Reading{Access: s.access, Detail: s.detail}
	}
	snapshot := s.objects[key]
	if snapshot == nil {
		return component.Reading{Access: component.AccessAbsent}
	}
	return component.Reading{Access: component.AccessFound, Snapshot: snapshot}
}

// run is the session's life: attempts one after the other, with pauses, and a
// deadline by which one has to succeed; it means nothing once one has, until it
// is set anew. run returns when ctx has ended and no attempt is under way.
func (s *session) run(ctx context.Context) {
	cfg := s.manager.cfg
	deadline := cfg.Clock.NewTimer(cfg.SyncTimeout)
	defer deadline.Stop()
	var retry <-chan time.Time
	pause, began := firstPause, cfg.Clock.Now()
	ended := s.begin(ctx)
	for {
		select {
		case <-ctx.Done():
			if retry == nil {
				<-ended
			}
			return
		case <-deadline.C():
			s.expire()
		case f := <-ended:
			if ctx.Err() != nil {
				return
			}
			if s.ended(f) {
				deadline.Reset(cfg.SyncTimeout)
			}
			if cfg.Clock.Since(began) > cfg.RetryInterval {
				pause = firstPause
			}
			retry = cfg.Clock.After(pause)
			pause = min(2*pause, cfg.RetryInterval)
		case <-retry:
			retry, began = nil, cfg.Clock.Now()
			ended = s.begin(ctx)
		}
	}
}

// begin makes one attempt in the background and delivers how it ended.
func (s *session) begin(ctx context.Context) <-chan *failure {
	ended := make(chan *failure, 1)
	go func() { ended <- s.attempt(ctx) }()
	return ended
}

// attempt discovers the kind, reads and watches it until the watch ends. Nil
// means that it ended in the normal course of things.
func (s *session) attempt(ctx context.Context) *failure {
	cfg := s.manager.cfg
	discovering, cancel := context.WithTimeout(ctx, cfg.SyncTimeout)
	place, f := discover(discovering, cfg.Discovery, s.gvk)
	cancel()
	if f != nil {
		return f
	}
	keys, f := s.locate(place)
	if f != nil {
		return f
	}
	if f := place.watchable(s.gvk); f != nil {
		return f
	}
	about := call{verb: "list and watch", gvk: s.gvk, resource: place.resource.GroupResource(), namespace: scope(keys)}
	client := cfg.Client.Resource(place.resource).Namespace(about.namespace)
	example := &unstructured.Unstructured{}
	example.SetGroupVersionKind(s.gvk)
	// The reflector's own lines are for debugging: it warns of every watch that
	// a server ends.
	log := klog.Logger(cfg.Log.V(2))
	reflector := cache.NewReflectorWithOptions(s.listWatch(client, about), example, &store{session: s, keys: keys},
		cache.ReflectorOptions{
			Name: about.String(), Logger: &log,
			Backoff: &wait.Backoff{Duration: firstPause, Factor: 2, Steps: 5, Cap: cfg.RetryInterval},
		})
	if err := reflector.ListAndWatchWithContext(logr.NewContext(ctx, log)); err != nil {
		return explain(err, about)
	}
	return nil
}

// locate resolves all targets and remembers where they are. It fails when none
// can exist.
func (s *session) locate(place placement) (map[types.NamespacedName]bool, *failure) {
	keys := map[types.NamespacedName]bool{}
	var last *failure
	for target := range s.targets {
		key, f := place.locate(target)
		if f != nil {
			last = f
			continue
		}
		keys[key] = keys[key] || target.Whole
	}
	s.manager.mu.Lock()
	defer s.manager.mu.Unlock()
	if s.place != nil && *s.place != place {
		// The kind was replaced: what was read belongs to the former one.
		s.access, s.detail, s.objects = component.AccessUnread, "", nil
	}
	s.place = &place
	if len(keys) == 0 {
		return nil, last
	}
	return keys, nil
}

// watching notes whether a watch is open; a list that waited for one is now
// known to be kept up to date.
func (s *session) watching(open bool) {
	s.manager.mu.Lock()
	s.established = open
	staged := s.staged
	s.staged = nil
	s.manager.mu.Unlock()
	if open && staged != nil {
		s.commit(staged)
	}
}

// listed takes all wanted objects that exist.
func (s *session) listed(found map[types.NamespacedName]*component.Snapshot) {
	s.manager.mu.Lock()
	established := s.established
	if !established {
		s.staged = found
	}
	s.manager.mu.Unlock()
	if established {
		s.commit(found)
	}
}

// commit makes found what the session serves.
func (s *session) commit(found map[types.NamespacedName]*component.Snapshot) {
	s.update(func() bool {
		before := s.objects
		if k := s.manager.kinds[s.gvk]; k.next == s {
			before = k.serving.objects
		}
		changed := len(before) != len(found)
		for key, snapshot := range found {
			if old := before[key]; old != nil && reflect.DeepEqual(old, snapshot) {
				// The same pointer tells a reader that nothing changed.
				found[key] = old
			} else {
				changed = true
			}
		}
		s.objects, s.lost = found, nil
		return changed
	}, component.AccessFound, "", nil)
}

// put takes one changed object; nil when it is gone.
func (s *session) put(key types.NamespacedName, snapshot *component.Snapshot) {
	s.manager.mu.Lock()
	old := s.objects[key]
	changed := !s.retired && s.objects != nil && !reflect.DeepEqual(old, snapshot)
	if changed && snapshot == nil {
		delete(s.objects, key)
	} else if changed {
		s.objects[key] = snapshot
	}
	s.manager.mu.Unlock()
	if changed {
		s.manager.cfg.Changed()
	}
}

// ended takes how an attempt ended, and reports whether the time in which a
// watch may be lost begins now.
func (s *session) ended(f *failure) bool {
	if f == nil {
		f = &failure{access: component.AccessFailed, detail: fmt.Sprintf("the watch of %s ended and could not be resumed", kindName(s.gvk))}
	}
	s.manager.mu.Lock()
	k := s.manager.kinds[s.gvk]
	known := s.access == component.AccessFound || k != nil && k.next == s
	bear := known && !f.definite()
	newly := bear && s.lost == nil
	if bear {
		s.lost = f
	}
	s.manager.mu.Unlock()
	if !bear {
		s.fail(f)
	}
	return newly
}

// expire gives up waiting, for the first read or for a lost watch.
func (s *session) expire() {
	s.manager.mu.RLock()
	f := s.lost
	if f == nil && s.access == component.AccessUnread {
		f = &failure{access: component.AccessTimedOut, detail: fmt.Sprintf("no answer in time to: list and watch %s", kindName(s.gvk))}
	}
	s.manager.mu.RUnlock()
	if f != nil {
		s.fail(f)
	}
}

func (s *session) fail(f *failure) {
	s.update(func() bool {
		s.lost = nil
		return false
	}, f.access, f.detail, f.cause)
}

// update applies a change of the session's state under the lock, lets the
// session take over if it was waiting to, and tells others what happened.
func (s *session) update(apply func() bool, access component.Access, detail string, cause error) {
	m := s.manager
	m.mu.Lock()
	if s.retired {
		m.mu.Unlock()
		return
	}
	changed := apply()
	turned := s.access != access || s.detail != detail
	s.access, s.detail = access, detail
	if k := m.kinds[s.gvk]; k.next == s {
		k.serving.retire()
		k.serving, k.next = s, nil
		changed = true
	}
	m.mu.Unlock()
	if turned {
		s.report(access, detail, cause)
	}
	if turned || changed {
		m.cfg.Changed()
	}
}

func (s *session) report(access component.Access, detail string, cause error) {
	log := s.manager.cfg.Log.WithValues("kind", kindName(s.gvk))
	if access == component.AccessFound {
		log.Info("watching")
		return
	}
	if cause != nil {
		log = log.WithValues("cause", cause.Error())
	}
	log.Info("cannot watch", "detail", detail)
}
