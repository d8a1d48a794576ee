// Package gate decides whether OLM may upgrade the product.
//
// It is pure: no client, no clock, no environment. Everything it needs arrives
// in Input, and equal inputs give equal decisions, byte for byte. Policy lives
// here and nowhere else; callers project a Decision, they never adjust it.
package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/conditions"
)

// MaxMessage is the most characters of a message in an UpgradeGate's status.
const MaxMessage = 1024

// Input is everything that a decision about one gate depends on. The zero Input
// is closed.
type Input struct {
	// Deleting is set while the gate has a deletion timestamp.
	Deleting bool
	// Invalid says what is wrong with the spec, which field and what to do;
	// empty for a valid spec.
	Invalid string
	// Hold is the message of spec.hold; nil when the gate is not held.
	Hold *string
	// Assessed is set when Assessments covers every component of the spec. It
	// tells an empty spec from one that nobody looked at.
	Assessed    bool
	Assessments []component.Assessment
	// MinReady is how long all required components must have been ready.
	MinReady time.Duration
	// ReadyFor is how long they have been; see Settle.
	ReadyFor time.Duration
}

// Decision is the judgement of one gate. The zero Decision is closed.
type Decision struct {
	Open   bool
	Reason string
	// Message is at most MaxMessage characters and names what to do.
	Message string
	// Blockers keep the gate closed, sorted by name.
	Blockers []Blocker
	// RecheckAfter is when a new decision could differ although nothing else
	// happens; 0 when it cannot.
	RecheckAfter time.Duration
}

// Blocker is one component that keeps a gate closed.
type Blocker struct {
	Name, Reason, Fact string
}

func (b Blocker) String() string {
	if b.Fact == "" {
		return b.Name + ": " + b.Reason
	}
	return b.Name + ": " + b.Reason + " (" + b.Fact + ")"
}

// Decide judges one gate. It opens only when every required component is ready
// and has been for long enough, the spec is valid, and nobody holds the gate.
func Decide(in Input) Decision {
	blockers := blockersOf(in.Assessments)
	switch {
	case in.Deleting:
		return closed(v1alpha1.ReasonGateBeingDeleted, "the gate is being deleted", nil)
	case in.Invalid != "":
		return closed(v1alpha1.ReasonInvalidSpec, in.Invalid, nil)
	case !in.Assessed:
		return closed(v1alpha1.ReasonInitializing, "the components have not been read yet", nil)
	case in.Hold != nil:
		return held(*in.Hold, blockers, required(in.Assessments))
	case required(in.Assessments) == 0:
		return Decision{Open: true, Reason: v1alpha1.ReasonNoComponents, Message: "the gate lists no required component"}
	case len(blockers) > 0:
		return blocked(blockers, required(in.Assessments))
	case in.ReadyFor < in.MinReady:
		d := closed(v1alpha1.ReasonSettling,
			fmt.Sprintf("all components are ready; the gate opens when they have stayed so for %s", in.MinReady), nil)
		d.RecheckAfter = in.MinReady - in.ReadyFor
		return d
	}
	return Decision{
		Open: true, Reason: v1alpha1.ReasonAllComponentsReady,
		Message: fmt.Sprintf("all %d required components are ready", required(in.Assessments)),
	}
}

func closed(reason, message string, blockers []Blocker) Decision {
	return Decision{Reason: reason, Message: conditions.Line(message, MaxMessage), Blockers: blockers}
}

func held(why string, blockers []Blocker, of int) Decision {
	message := "held: " + conditions.Line(why, conditions.MaxForeignText)
	if len(blockers) > 0 {
		message += "; also "
		message += summary(blockers, of, MaxMessage-utf8.RuneCountInString(message))
	}
	return closed(v1alpha1.ReasonHeld, message, blockers)
}

// blocked chooses the reason: a reference that cannot be right is a fault of the
// spec, and components that are merely unread say nothing bad yet.
func blocked(blockers []Blocker, of int) Decision {
	reason := v1alpha1.ReasonInitializing
	for _, b := range blockers {
		if b.Reason == v1alpha1.ReasonInvalidSpec {
			reason = v1alpha1.ReasonInvalidSpec
			break
		}
		if b.Reason != v1alpha1.ReasonInitializing {
			reason = v1alpha1.ReasonComponentsNotReady
		}
	}
	return closed(reason, summary(blockers, of, MaxMessage), blockers)
}

// summary takes at most room characters, like spellOut.
func summary(blockers []Blocker, of, room int) string {
	head := fmt.Sprintf("%d of %d required components not ready: ", len(blockers), of)
	return head + spellOut(blockers, room-len(head))
}

// spelledOut is how many blockers a message names at most; the full list stands
// in status.components.
const spelledOut = 10

// spellOut names the first blockers, as many as there is room for, and counts
// the others.
func spellOut(blockers []Blocker, room int) string {
	var text strings.Builder
	room -= len("; and 999999 more")
	for i, b := range blockers {
		word := "; " + b.String()
		if i == 0 {
			word = conditions.Truncate(b.String(), room)
		}
		room -= utf8.RuneCountInString(word)
		if i == spelledOut || i > 0 && room < 0 {
			fmt.Fprintf(&text, "; and %d more", len(blockers)-i)
			break
		}
		text.WriteString(word)
	}
	return text.String()
}

func blockersOf(assessments []component.Assessment) []Blocker {
	var blockers []Blocker
	for _, a := range assessments {
		if a.Blocks() {
			blockers = append(blockers, Blocker{Name: a.Name, Reason: cmp.Or(a.Reason, v1alpha1.ReasonInitializing), Fact: a.Fact})
		}
	}
	slices.SortFunc(blockers, func(a, b Blocker) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Fact, b.Fact))
	})
	return blockers
}

func required(assessments []component.Assessment) int {
	n := 0
	for _, a := range assessments {
		if !a.Optional {
			n++
		}
	}
	return n
}

func ready(assessments []component.Assessment) int {
	n := 0
	for _, a := range assessments {
		if !a.Optional && a.Ready == metav1.ConditionTrue {
			n++
		}
	}
	return n
}
