package upgradegate

import (
	"sync"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
)

// written remembers what this process last wrote to a gate, until the cache shows
// it or something newer. Judging from what the cache still shows would repeat the
// write, lose its lock, and keep a closing waiting meanwhile.
type written struct {
	// object is as the API server returned it.
	object *v1alpha1.UpgradeGate
	// replaced are the resource versions that came before it.
	replaced map[string]bool
}

// mostReplaced bounds what is remembered; no cache lags by more writes than that.
const mostReplaced = 32

// note remembers that before became after.
func (w *written) note(before string, after *v1alpha1.UpgradeGate) {
	if w.replaced == nil || len(w.replaced) >= mostReplaced {
		w.replaced = map[string]bool{}
	}
	w.replaced[before] = true
	w.object = after
}

// newest is the cached object, unless it is known to have been replaced.
func (w *written) newest(cached *v1alpha1.UpgradeGate) *v1alpha1.UpgradeGate {
	switch {
	case w.object == nil || w.object.ResourceVersion == cached.ResourceVersion:
		// A live read shows our own write before the cache does.
		return cached
	case w.replaced[cached.ResourceVersion]:
		return w.object
	}
	*w = written{}
	return cached
}

// ownWrites knows the newest resource version of each gate that this process
// wrote: the watch event that it causes is no news. It may be used from several
// goroutines.
type ownWrites struct {
	versions sync.Map
}

func (o *ownWrites) note(object *v1alpha1.UpgradeGate) {
	o.versions.Store(object.UID, object.ResourceVersion)
}

func (o *ownWrites) forget(object *v1alpha1.UpgradeGate) {
	o.versions.Delete(object.UID)
}

// made reports whether this process made the object what it is.
func (o *ownWrites) made(object *v1alpha1.UpgradeGate) bool {
	version, found := o.versions.Load(object.UID)
	return found && version == object.ResourceVersion
}
