package gate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
)

// Announcement is what OLM is told. The zero Announcement is closed, but has no
// reason and must not be published.
type Announcement struct {
	Open bool
	// Reason is one of the gate reasons of api/v1alpha1.
	Reason string
	// Message is at most MaxAnnouncement characters of valid UTF-8.
	Message string
}

// Status is the condition status that announces a.
func (a Announcement) Status() metav1.ConditionStatus {
	if a.Open {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// Publication is what OLM holds, as last read. The zero Publication has not been
// read, and proves nothing.
type Publication struct {
	Mode v1alpha1.OLMMode
	// Name of the OperatorCondition; empty unless Mode is OLMv0.
	Name string
	// ResourceVersion of the OperatorCondition that was read.
	ResourceVersion string
	// Problem is empty when the OperatorCondition was read, else one of
	// ReasonForbidden, ReasonOperatorConditionNotFound, ReasonPublishFailed.
	Problem string
	// Detail explains Problem in stable words.
	Detail string
	// Refusal says why the last write failed, as a reason like those of Problem;
	// empty once the OperatorCondition holds what it is to hold. RefusalDetail
	// explains it in stable words.
	Refusal       string
	RefusalDetail string
	// Entry is the Upgradeable entry of spec.conditions; nil when there is none,
	// and also when there are several or it cannot be used.
	Entry *Announcement
	// Acknowledged is true when status.conditions has Upgradeable with the
	// entry's status at the OperatorCondition's current generation.
	Acknowledged bool
	// Override is the status of an Upgradeable override; empty when there is none.
	Override string
	// Frozen is true when our Deployment belongs to another CSV, so that this
	// process writes nothing more.
	Frozen bool
}
