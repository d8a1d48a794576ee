package component

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/conditions"
)

// MaxMessage is the most characters that an assessment's Message may have.
const MaxMessage = 1024

// Assessment is the judgement of one component. The zero Assessment is not
// ready.
type Assessment struct {
	Name     string
	Optional bool
	// Ready is True only for a component that is proven ready. Anything else,
	// the empty string included, is not ready.
	Ready  metav1.ConditionStatus
	Reason string
	// Fact explains Reason in our own words only, so that it may be told to OLM.
	// It and Quote are one line each, at most MaxMessage characters.
	Fact string
	// Quote is what the component itself, or the user, says about it; it may be
	// empty.
	Quote string

	// Object that was judged: group/Kind namespace/name.
	Object string
	// UID of the object, empty when it was not found.
	UID types.UID
	// Generation and ObservedGeneration are 0 when they are not known.
	Generation         int64
	ObservedGeneration int64
	Proof              v1alpha1.Proof

	// Available, Progressing and Degraded roll up into the gate's conditions of
	// the same names. Empty means Unknown.
	Available   metav1.ConditionStatus
	Progressing bool
	Degraded    metav1.ConditionStatus
}

// Blocks reports whether the component keeps its gate closed.
func (a Assessment) Blocks() bool {
	return !a.Optional && a.Ready != metav1.ConditionTrue
}

// Message is the fact and what the component itself says, at most MaxMessage
// characters.
func (a Assessment) Message() string {
	if a.Quote == "" {
		return conditions.Line(a.Fact, MaxMessage)
	}
	return conditions.Line(a.Fact+": "+a.Quote, MaxMessage)
}

// verdict is the outcome of one rule. The zero verdict means that the rule does
// not apply.
type verdict struct {
	ready  metav1.ConditionStatus
	reason string
	fact   string
	quote  string
}

func notReady(reason, fact string, arguments ...any) verdict {
	return verdict{ready: metav1.ConditionFalse, reason: reason, fact: fmt.Sprintf(fact, arguments...)}
}

func unknown(reason, fact string, arguments ...any) verdict {
	return verdict{ready: metav1.ConditionUnknown, reason: reason, fact: fmt.Sprintf(fact, arguments...)}
}

// quoting adds what the component says in a condition.
func (v verdict) quoting(c conditions.Condition) verdict {
	switch {
	case c.Reason != "" && c.Message != "":
		v.quote = c.Reason + ": " + c.Message
	default:
		v.quote = c.Reason + c.Message
	}
	return v
}
