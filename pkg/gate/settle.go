package gate

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/upgrade-gate/upgrade-gate/pkg/component"
)

// Settle remembers since when each required component of one gate has been
// ready, as far as this process has seen it. The zero Settle has seen nothing.
type Settle struct {
	since map[string]readySince
}

type readySince struct {
	uid  types.UID
	time time.Time
}

// Next returns what is remembered after one more complete evaluation, made at
// now. A component that is not ready is forgotten, and so is one whose object
// was replaced: the new object has to settle on its own.
func (s Settle) Next(assessments []component.Assessment, now time.Time) Settle {
	next := Settle{since: make(map[string]readySince, len(assessments))}
	for _, a := range assessments {
		if a.Optional || a.Ready != metav1.ConditionTrue {
			continue
		}
		entry, known := s.since[a.Name]
		if !known || entry.uid != a.UID || entry.time.After(now) {
			entry = readySince{uid: a.UID, time: now}
		}
		next.since[a.Name] = entry
	}
	return next
}

// Kept is the assessment of a component as it was when it was last seen ready; a
// itself if it never was. It is for components that could not be read this time.
func (s Settle) Kept(a component.Assessment) component.Assessment {
	if entry, known := s.since[a.Name]; known {
		a.Ready, a.UID = metav1.ConditionTrue, entry.uid
	}
	return a
}

// ReadyFor is how long, at now, every remembered component has been ready; 0
// when none is remembered.
func (s Settle) ReadyFor(now time.Time) time.Duration {
	var latest time.Time
	for _, entry := range s.since {
		if entry.time.After(latest) {
			latest = entry.time
		}
	}
	if latest.IsZero() {
		return 0
	}
	return now.Sub(latest)
}

// Settled is what is remembered after an evaluation, made at now, that agrees
// with a True which OLM has already acknowledged: its ready components have
// settled, in an earlier process, so that a restart does not flap the gate.
func Settled(assessments []component.Assessment, now time.Time) Settle {
	return Settle{}.Next(assessments, now.Add(-longest))
}

// longest is more than minReadySeconds can be.
const longest = 48 * time.Hour
