package olm

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/conditions"
	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
)

// The bounds that the OperatorCondition CRD puts on a reason
// (operator-framework/api, crds/operators.coreos.com_operatorconditions.yaml).
const maxReason = 1024

var reasonPattern = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// OverrideCommand is the command by which an administrator lets OLM upgrade
// whatever the gate says. It can be pasted into a shell as it is.
//
// It replaces the list of overrides; OLM knows no other type of override. The
// override lives on the OperatorCondition of one version and goes away with it.
func OverrideCommand(namespace, name string) string {
	const patch = `{"spec":{"overrides":[{"type":"Upgradeable","status":"True",` +
		`"reason":"AdminOverride","message":"approved by an administrator"}]}}`
	return fmt.Sprintf("kubectl -n %s patch operatorcondition %s --type merge -p '%s'", namespace, name, patch)
}

// closing makes an announcement of a that is closed and that the API server will
// not reject: a rejected write would leave the previous value, possibly True, in
// force.
func closing(a gate.Announcement) gate.Announcement {
	a.Open = false
	a.Message = bounded(a.Message)
	if !validReason(a.Reason) {
		a.Reason = v1alpha1.ReasonInitializing
	}
	return a
}

// opening refuses what does not open or has no usable reason.
func opening(a gate.Announcement) (gate.Announcement, error) {
	if !a.Open {
		return gate.Announcement{}, fmt.Errorf("announcement %q is closed and cannot open the gate", a.Reason)
	}
	if !validReason(a.Reason) {
		return gate.Announcement{}, fmt.Errorf("announcement has reason %.64q, which OLM does not accept", a.Reason)
	}
	a.Message = bounded(a.Message)
	return a, nil
}

func validReason(reason string) bool {
	return len(reason) <= maxReason && reasonPattern.MatchString(reason)
}

func bounded(message string) string {
	return conditions.Truncate(strings.ToValidUTF8(message, "�"), gate.MaxAnnouncement)
}

// initializing is what OLM is told while nobody has announced anything. All
// replicas use the same words, so that they do not rewrite each other's.
func initializing(namespace, name string) gate.Announcement {
	return refusal(v1alpha1.ReasonInitializing, "the components have not been read yet", namespace, name)
}

// stopped is what OLM is told when the operator is switched off.
func stopped(namespace, name string) gate.Announcement {
	return refusal(v1alpha1.ReasonOperatorStopped,
		"the operator's Deployment is scaled to 0, so nobody watches the components", namespace, name)
}

// refusal ends with the way out of a wedged upgrade. Names of objects are at most
// 253 characters long, so the command is never cut.
func refusal(reason, why, namespace, name string) gate.Announcement {
	return closing(gate.Announcement{
		Reason:  reason,
		Message: why + "; to override: " + OverrideCommand(namespace, name),
	})
}
