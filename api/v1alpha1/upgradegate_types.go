package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GateFinalizer keeps a gate that is being deleted until OLM has been told that
// it is closed; see ReasonGateBeingDeleted.
const GateFinalizer = "upgradegate.io/gate"

// UpgradeGate holds OLM's upgrade brake for the operator of its namespace.
//
// While a gate is closed, the operator publishes Upgradeable=False in its
// OperatorCondition and OLM does not start the next upgrade. A gate is open only
// while every required component is proven to have reconciled successfully at
// its current generation. Only gates in the operator's own namespace count; of
// several, all must be open.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ugate,categories=upgradegate,path=upgradegates,singular=upgradegate
// +kubebuilder:printcolumn:name="UPGRADEABLE",type=string,JSONPath=`.status.conditions[?(@.type=="Upgradeable")].status`
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.readyComponents`
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.status.conditions[?(@.type=="Upgradeable")].reason`
// +kubebuilder:printcolumn:name="VERSION",type=string,JSONPath=`.status.operatorVersion`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="PUBLISHED",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Published")].reason`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Upgradeable")].message`
type UpgradeGate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which components must be ready before OLM may upgrade.
	// +required
	Spec UpgradeGateSpec `json:"spec"`

	// status is what the operator last found and decided. Conditions that carry
	// an observedGeneration older than metadata.generation are out of date.
	// +optional
	Status UpgradeGateStatus `json:"status,omitempty"`
}

// UpgradeGateList is a list of gates.
//
// +kubebuilder:object:root=true
type UpgradeGateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []UpgradeGate `json:"items"`
}

// UpgradeGateSpec is what a user asks of a gate. The zero value is invalid, and so
// closed: a list of components that is misspelt must not open the gate.
type UpgradeGateSpec struct {
	// minReadySeconds is how many seconds all required components must stay
	// ready before the gate opens. Closing is never delayed. 0 opens at once.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`

	// hold keeps the gate closed by hand for as long as it is set, whatever the
	// components say. Remove it to let the components decide again.
	// +optional
	Hold *Hold `json:"hold,omitempty"`

	// components are what must be ready, in the order in which status shows
	// them. It must be given; an empty list is open with reason NoComponents.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=500
	Components []Component `json:"components"`
}

// Hold keeps a gate closed by hand.
type Hold struct {
	// message says why, to everybody who asks why the upgrade does not move.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message"`
}

// Component is one part of the product that must be ready.
//
// +kubebuilder:validation:XValidation:rule="has(self.resource)",message="exactly one source must be set: resource"
// +kubebuilder:validation:XValidation:rule="!has(self.observedGeneration) || self.observedGeneration != 'NotReported'",message="NotReported needs another proof (a version or a controller block), and this version of upgrade-gate offers none: use Required"
type Component struct {
	// name identifies the component within the gate; an RFC 1123 label.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// optional components are judged and shown, and never close the gate.
	// +optional
	Optional bool `json:"optional,omitempty"`

	// resource names the object whose status tells whether the component is
	// ready. It is read, never written.
	// +optional
	Resource *ResourceReference `json:"resource,omitempty"`

	// observedGeneration says whether the status must prove that it describes
	// the current generation. Required: it must, in status.observedGeneration or
	// in every required condition, and it must equal metadata.generation.
	// NotReported: this kind never reports one; refused unless another proof is
	// declared.
	// +optional
	// +kubebuilder:default=Required
	// +kubebuilder:validation:Enum=Required;NotReported
	ObservedGeneration ObservedGenerationPolicy `json:"observedGeneration,omitempty"`

	// conditions are the conditions that must hold, all of them. Absent: if the
	// object reports Available, then Available=True, Progressing=False and
	// Degraded=False; otherwise Ready=True, and Reconciling and Stalled not
	// True. A component's own Upgradeable=False always closes the gate.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Conditions []ConditionRequirement `json:"conditions,omitempty"`

	// expressions are CEL rules over the object, which is called self; all must
	// be true. A rule that does not compile makes the gate's spec invalid; one
	// that fails while running is ExpressionFailed. Both keep the gate closed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Expressions []Expression `json:"expressions,omitempty"`
}

// ResourceReference names one object. Its identity is group, kind, namespace and
// name as a whole; the version only says how it is read.
type ResourceReference struct {
	// apiVersion is group/version, or the version alone for the core group.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[a-z]([-a-z0-9]*[a-z0-9])?$`
	APIVersion string `json:"apiVersion"`

	// kind as in the object itself, for example Deployment.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	Kind string `json:"kind"`

	// namespace of the object. Absent: the gate's namespace for namespaced
	// kinds. Must be absent for cluster-scoped kinds.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ObservedGenerationPolicy says what proves that a status is current. The zero
// value means ObservedGenerationRequired.
type ObservedGenerationPolicy string

// The policies for the observed generation.
const (
	ObservedGenerationRequired    ObservedGenerationPolicy = "Required"
	ObservedGenerationNotReported ObservedGenerationPolicy = "NotReported"
)

// ConditionRequirement is one condition that must hold.
type ConditionRequirement struct {
	// type of the condition, compared exactly.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Type string `json:"type"`

	// status that the condition must have. Unknown never passes.
	// +required
	// +kubebuilder:validation:Enum="True";"False"
	Status metav1.ConditionStatus `json:"status"`

	// whenMissing says what an absent condition means. NotReady: the component
	// is not ready. Ignore: the condition counts only when it is reported; if
	// none of the listed conditions is reported and there is no expression, the
	// component is not ready.
	// +optional
	// +kubebuilder:default=NotReady
	// +kubebuilder:validation:Enum=NotReady;Ignore
	WhenMissing WhenMissing `json:"whenMissing,omitempty"`
}

// WhenMissing says what an absent condition means. The zero value means
// WhenMissingNotReady.
type WhenMissing string

// The meanings of an absent condition.
const (
	WhenMissingNotReady WhenMissing = "NotReady"
	WhenMissingIgnore   WhenMissing = "Ignore"
)

// Expression is one CEL rule over a component's object.
type Expression struct {
	// rule is a CEL expression of type bool; the whole object is self, for
	// example self.status.phase == "Deployed". Use has() for optional fields.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Rule string `json:"rule"`

	// message is shown when the rule is false. Absent: the rule itself.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// UpgradeGateStatus is what the operator last found and decided.
type UpgradeGateStatus struct {
	// observedGeneration is the generation of the spec that this status judges.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: Ready, Available, Progressing, Degraded, Upgradeable and
	// Published, sorted by type. Upgradeable=True means that this gate is open;
	// Published=True means that OLM holds exactly this decision.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// readyComponents is ready/required, for example 6/7. Optional components
	// are not counted.
	// +optional
	ReadyComponents string `json:"readyComponents,omitempty"`

	// operatorVersion is the version of the operator that decided this.
	// +optional
	OperatorVersion string `json:"operatorVersion,omitempty"`

	// operatorCondition says what OLM holds.
	// +optional
	OperatorCondition *OperatorConditionStatus `json:"operatorCondition,omitempty"`

	// components, in the order of the spec.
	// +optional
	// +listType=map
	// +listMapKey=name
	Components []ComponentStatus `json:"components,omitempty"`
}

// OLMMode says which OLM, if any, enforces the decision. The zero value means
// that nobody found out yet.
type OLMMode string

// The modes of OLM.
const (
	// OLMModeV0 is OLM v0, which reads OperatorConditions and enforces them.
	OLMModeV0 OLMMode = "OLMv0"
	// OLMModeV1 is OLM v1 (operator-controller), which does not read
	// OperatorConditions: nothing is enforced.
	OLMModeV1 OLMMode = "OLMv1"
	// OLMModeNone means that the operator was not installed by OLM.
	OLMModeNone OLMMode = "None"
)

// OperatorConditionStatus says what OLM holds.
type OperatorConditionStatus struct {
	// name of the OperatorCondition, in the gate's namespace. Empty unless mode
	// is OLMv0.
	// +optional
	Name string `json:"name,omitempty"`

	// mode: OLMv0 enforces the decision, OLMv1 and None do not.
	// +optional
	// +kubebuilder:validation:Enum=OLMv0;OLMv1;None
	Mode OLMMode `json:"mode,omitempty"`

	// acknowledged is true when OLM has copied the operator's current decision,
	// at the current generation, into the OperatorCondition's status.
	// +optional
	Acknowledged bool `json:"acknowledged"`

	// overridden is the status of an administrator's override of Upgradeable,
	// which outranks the decision; empty when there is none.
	// +optional
	// +kubebuilder:validation:Enum="";"True";"False";"Unknown"
	Overridden string `json:"overridden"`
}

// Proof names the strongest proof that was asked of a component. The zero value
// means that none was.
type Proof string

// The proofs.
const (
	// ProofGeneration: the status proves that it describes the current
	// generation. It does not prove which version of its operator wrote it.
	ProofGeneration Proof = "Generation"
)

// ComponentStatus is the assessment of one component.
type ComponentStatus struct {
	// name of the component, as in the spec.
	// +required
	Name string `json:"name"`

	// ready: True is proven ready, False is not ready, Unknown cannot be judged.
	// Only True lets the gate open.
	// +required
	// +kubebuilder:validation:Enum="True";"False";"Unknown"
	Ready metav1.ConditionStatus `json:"ready"`

	// reason for ready, one of the documented reasons.
	// +required
	Reason string `json:"reason"`

	// message explains the reason; at most 1,024 characters. It may quote the
	// component's own words.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// object that was judged: group/Kind namespace/name.
	// +optional
	Object string `json:"object,omitempty"`

	// generation is the object's metadata.generation.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// observedGeneration is the generation that the object's status describes;
	// absent when it does not say.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// optional is true for a component that never closes the gate.
	// +optional
	Optional bool `json:"optional,omitempty"`

	// proof is the strongest proof asked for: Generation.
	// +optional
	Proof Proof `json:"proof,omitempty"`

	// lastTransitionTime is when ready last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
}
