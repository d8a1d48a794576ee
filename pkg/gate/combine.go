package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/conditions"
)

// MaxAnnouncement is the most characters of a message to OLM. The
// OperatorCondition CRD allows 32,768; more than this nobody reads.
const MaxAnnouncement = 2000

// Named is the decision about the gate of that name.
type Named struct {
	Gate     string
	Decision Decision
	// Required is how many required components the gate lists.
	Required int
}

// Policy is what the operator was started with. The zero Policy lets an operator
// without any gate be upgraded, because there is nothing to protect.
type Policy struct {
	// RequireGate closes while there is no gate.
	RequireGate bool
	// Override is the command by which an administrator overrides the decision;
	// it ends every closed message.
	Override string
}

// severity orders the reasons of closed gates, gravest first: OLM is told one.
func severity(reason string) int {
	order := []string{
		v1alpha1.ReasonGateBeingDeleted, v1alpha1.ReasonInvalidSpec, v1alpha1.ReasonHeld,
		v1alpha1.ReasonComponentsNotReady, v1alpha1.ReasonInitializing, v1alpha1.ReasonSettling,
	}
	if i := slices.Index(order, reason); i >= 0 {
		return i
	}
	return -1
}

// Combine makes of the decisions about all gates what OLM is told: True only
// when every gate is open. The order of the decisions does not matter.
func Combine(decisions []Named, policy Policy) Announcement {
	if len(decisions) == 0 {
		return withoutGate(policy)
	}
	sorted := slices.Clone(decisions)
	slices.SortFunc(sorted, func(a, b Named) int { return strings.Compare(a.Gate, b.Gate) })
	var shut []Named
	for _, n := range sorted {
		if !n.Decision.Open {
			shut = append(shut, n)
		}
	}
	if len(shut) == 0 {
		return allOpen(sorted)
	}
	return policy.refuse(gravest(shut), explain(shut, len(sorted)))
}

func withoutGate(policy Policy) Announcement {
	if policy.RequireGate {
		return policy.refuse(v1alpha1.ReasonGateRequired,
			"there is no UpgradeGate in the operator's namespace and --require-gate is set: create one")
	}
	return Announcement{
		Open: true, Reason: v1alpha1.ReasonNoGateDeclared,
		Message: "there is no UpgradeGate in the operator's namespace",
	}
}

func allOpen(decisions []Named) Announcement {
	a := Announcement{Open: true, Reason: decisions[0].Decision.Reason, Message: decisions[0].Decision.Message}
	if len(decisions) > 1 {
		a.Reason = v1alpha1.ReasonAllComponentsReady
		a.Message = fmt.Sprintf("all %d gates are open", len(decisions))
	}
	return a
}

func gravest(shut []Named) string {
	reason := shut[0].Decision.Reason
	for _, n := range shut[1:] {
		if severity(n.Decision.Reason) < severity(reason) {
			reason = n.Decision.Reason
		}
	}
	if reason == "" {
		return v1alpha1.ReasonInitializing
	}
	return reason
}

// explain says why in one sentence. With one gate it is that gate's own; with
// several, the blockers of all are one list and each carries its gate's name.
func explain(shut []Named, gates int) string {
	if gates == 1 {
		return shut[0].Decision.Message
	}
	var words []string
	var blockers []Blocker
	needed := 0
	for _, n := range shut {
		if len(n.Decision.Blockers) == 0 {
			words = append(words, n.Gate+": "+n.Decision.Message)
			continue
		}
		if n.Decision.Reason == v1alpha1.ReasonHeld {
			words = append(words, n.Gate+": held")
		}
		needed += n.Required
		for _, b := range n.Decision.Blockers {
			blockers = append(blockers, Blocker{Name: n.Gate + "/" + b.Name, Reason: b.Reason, Fact: b.Fact})
		}
	}
	if len(blockers) > 0 {
		// First, with half of the room at most, so that a long text about
		// something else does not crowd out the list.
		words = slices.Insert(words, 0, summary(blockers, needed, MaxAnnouncement/2))
	}
	return fmt.Sprintf("%d of %d gates closed: %s", len(shut), gates, strings.Join(words, "; "))
}

// Initializing is what OLM is told while there is no complete evaluation.
func (p Policy) Initializing(why string) Announcement {
	return p.refuse(v1alpha1.ReasonInitializing, why)
}

// refuse closes with a message that ends with the override command, which is
// never cut: it is the only way out of a wedged upgrade.
func (p Policy) refuse(reason, why string) Announcement {
	if p.Override == "" {
		return Announcement{Reason: reason, Message: conditions.Line(why, MaxAnnouncement)}
	}
	tail := "; to override: " + p.Override
	room := MaxAnnouncement - len([]rune(tail))
	return Announcement{Reason: reason, Message: conditions.Line(why, max(room, 0)) + conditions.Truncate(tail, MaxAnnouncement)}
}
