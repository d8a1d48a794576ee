package watch

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/upgrade-gate/upgrade-gate/pkg/component"
)

// DefaultReadTimeout is LiveConfig.Timeout when it is 0.
const DefaultReadTimeout = 5 * time.Second

// LiveConfig is what a Live needs. Client and Discovery are required.
type LiveConfig struct {
	// Client gets single objects.
	Client dynamic.Interface
	// Discovery finds resource and scope of a kind.
	Discovery Discovery
	// Timeout bounds one Read. 0: DefaultReadTimeout.
	Timeout time.Duration
}

// Live reads every object from the API server each time, with one get. It is a
// probe.Reader for the moment before a gate opens, when memory is not good
// enough. It may be used from several goroutines.
type Live struct {
	cfg LiveConfig

	mu sync.Mutex
	// places saves the discovery in most reads. An entry is as good as the last
	// get that used it: one that finds nothing discovers again.
	places map[schema.GroupVersionKind]placement
}

// NewLive returns a Live. It does no I/O.
func NewLive(cfg LiveConfig) *Live {
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultReadTimeout
	}
	return &Live{cfg: cfg, places: map[schema.GroupVersionKind]placement{}}
}

// Read gets the object now. It is AccessTimedOut when the time-out or ctx's own
// deadline ends it, and AccessFailed when ctx is cancelled: a cancelled read is
// never taken for an answer.
func (l *Live) Read(ctx context.Context, target component.Target) component.Reading {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	snapshot, f := l.read(ctx, target)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return component.Reading{Access: component.AccessFailed, Detail: "the read was cancelled"}
	case f != nil:
		return component.Reading{Access: f.access, Detail: f.detail}
	case snapshot == nil:
		return component.Reading{Access: component.AccessAbsent}
	}
	return component.Reading{Access: component.AccessFound, Snapshot: snapshot}
}

// read returns nil and no failure for an object that does not exist.
func (l *Live) read(ctx context.Context, target component.Target) (*component.Snapshot, *failure) {
	place, known := l.known(target.GVK)
	if known {
		snapshot, f := l.get(ctx, target, place)
		if snapshot != nil || f != nil && f.access != component.AccessMisplaced {
			return snapshot, f
		}
		// Absent, or the kind is gone or has another scope now.
	}
	now, f := discover(ctx, l.cfg.Discovery, target.GVK)
	if f != nil {
		l.forget(target.GVK)
		return nil, f
	}
	if known && now == place {
		return nil, misplacedIn(now, target)
	}
	l.remember(target.GVK, now)
	return l.get(ctx, target, now)
}

func misplacedIn(place placement, target component.Target) *failure {
	_, f := place.locate(target)
	return f
}

// get returns nil and no failure for an object that is not found.
func (l *Live) get(ctx context.Context, target component.Target, place placement) (*component.Snapshot, *failure) {
	key, f := place.locate(target)
	if f != nil {
		return nil, f
	}
	object, err := l.cfg.Client.Resource(place.resource).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, explain(err, call{verb: "get", gvk: target.GVK, resource: place.resource.GroupResource(), namespace: key.Namespace})
	}
	return component.Decode(object.Object, target.Whole), nil
}

func (l *Live) known(gvk schema.GroupVersionKind) (placement, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	place, known := l.places[gvk]
	return place, known
}

func (l *Live) remember(gvk schema.GroupVersionKind, place placement) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.places[gvk] = place
}

func (l *Live) forget(gvk schema.GroupVersionKind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.places, gvk)
}
