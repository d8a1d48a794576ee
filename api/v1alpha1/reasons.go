package v1alpha1

// Every reason matches the pattern that the OperatorCondition CRD demands,
// ^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$; a rejected write would leave the
// previous, possibly True, value in force. A test parses this file and checks
// that, and that docs/conditions.md describes each of them.

// Reasons of a component, in the order in which they are tried.
const (
	// ReasonForbidden: the operator may not read the component's object, or may
	// not publish. Clears by itself within 30 s of the right being granted.
	ReasonForbidden = "Forbidden"
	// ReasonProbeFailed: reading the component failed. Clears with the next
	// successful read.
	ReasonProbeFailed = "ProbeFailed"
	// ReasonProbeTimedOut: reading the component gave no answer in time. Clears
	// with the next successful read.
	ReasonProbeTimedOut = "ProbeTimedOut"
	// ReasonKindNotInstalled: no CRD serves the component's kind at this
	// version. Clears within 30 s of its installation.
	ReasonKindNotInstalled = "KindNotInstalled"
	// ReasonNotFound: the component's object does not exist. Clears when it is
	// created and ready.
	ReasonNotFound = "NotFound"
	// ReasonTerminating: the component's object is being deleted. Clears when it
	// is gone and a new one is ready.
	ReasonTerminating = "Terminating"
	// ReasonObservedGenerationMissing: nothing in the status says which
	// generation it describes. Clears when the component's controller reports
	// observedGeneration.
	ReasonObservedGenerationMissing = "ObservedGenerationMissing"
	// ReasonObservedGenerationStale: the status describes an older generation
	// than the object has. Clears once the component's controller catches up.
	ReasonObservedGenerationStale = "ObservedGenerationStale"
	// ReasonObservedGenerationAhead: the status describes a newer generation
	// than the object has, as after a restore from backup. Clears once the
	// component's controller writes its status anew.
	ReasonObservedGenerationAhead = "ObservedGenerationAhead"
	// ReasonConditionAmbiguous: the status holds two entries of one required
	// condition type. Clears when one is left.
	ReasonConditionAmbiguous = "ConditionAmbiguous"
	// ReasonConditionMissing: a required condition is not reported. Clears when
	// the component's controller reports it.
	ReasonConditionMissing = "ConditionMissing"
	// ReasonConditionUnknown: a required condition, or the component's own
	// Upgradeable, is Unknown or unreadable. Clears when it is True or False.
	ReasonConditionUnknown = "ConditionUnknown"
	// ReasonComponentNotUpgradeable: the component itself says
	// Upgradeable=False. Clears when it no longer does.
	ReasonComponentNotUpgradeable = "ComponentNotUpgradeable"
	// ReasonConditionNotMet: a required condition has the wrong status. Clears
	// when it has the right one.
	ReasonConditionNotMet = "ConditionNotMet"
	// ReasonExpressionFalse: an expression of the spec is false. Clears when it
	// is true.
	ReasonExpressionFalse = "ExpressionFalse"
	// ReasonExpressionFailed: an expression could not be evaluated, for example
	// because a field is absent. Clears when it can, or when the rule uses has().
	ReasonExpressionFailed = "ExpressionFailed"
	// ReasonReady: the component is proven ready.
	ReasonReady = "Ready"
)

// Reasons of a gate, used by Upgradeable and, where they apply, by Ready.
const (
	// ReasonAllComponentsReady: every required component is proven ready and has
	// stayed so for minReadySeconds. The gate is open.
	ReasonAllComponentsReady = "AllComponentsReady"
	// ReasonComponentsNotReady: at least one required component is not proven
	// ready. Clears when all are.
	ReasonComponentsNotReady = "ComponentsNotReady"
	// ReasonInitializing: the components have not all been read yet. It is also
	// the first thing a new version tells OLM, and what a component shows until
	// it has been read, and Published until it is known whether OLM enforces
	// anything. Clears with the first complete evaluation.
	ReasonInitializing = "Initializing"
	// ReasonSettling: every required component is ready, and minReadySeconds
	// have not passed yet. Clears by itself.
	ReasonSettling = "Settling"
	// ReasonHeld: spec.hold is set. Clears when it is removed.
	ReasonHeld = "Held"
	// ReasonNoGateDeclared: there is no UpgradeGate in the operator's namespace,
	// so there is nothing to protect. Open.
	ReasonNoGateDeclared = "NoGateDeclared"
	// ReasonGateRequired: there is no UpgradeGate, and the operator was started
	// with --require-gate. Clears when one is created.
	ReasonGateRequired = "GateRequired"
	// ReasonGateBeingDeleted: the gate is being deleted. Clears when it is gone.
	ReasonGateBeingDeleted = "GateBeingDeleted"
	// ReasonNamespaceNotHonoured: the gate is not in the operator's namespace and
	// has no effect. Clears never; create it in the operator's namespace.
	ReasonNamespaceNotHonoured = "NamespaceNotHonoured"
	// ReasonOperatorStopped: the operator's Deployment was scaled to 0, so nobody
	// watches the components. Clears when it is scaled up again.
	ReasonOperatorStopped = "OperatorStopped"
	// ReasonInvalidSpec: the gate's spec cannot be used; the message names the
	// field and the remedy. A component has it when its reference gives a
	// namespace to a cluster-scoped kind. Clears when the spec is corrected.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonNoComponents: the gate lists no required component. Open.
	ReasonNoComponents = "NoComponents"
)

// Reasons of Available, Progressing and Degraded.
const (
	// ReasonComponentsAvailable: every required component is available.
	ReasonComponentsAvailable = "ComponentsAvailable"
	// ReasonComponentsUnavailable: at least one required component is not
	// available. Clears when all are.
	ReasonComponentsUnavailable = "ComponentsUnavailable"
	// ReasonComponentsProgressing: at least one required component is rolling out
	// or has not observed its current generation. Clears when none is.
	ReasonComponentsProgressing = "ComponentsProgressing"
	// ReasonComponentsSettled: no required component is rolling out.
	ReasonComponentsSettled = "ComponentsSettled"
	// ReasonComponentsDegraded: at least one required component says Degraded or
	// Stalled. Clears when none does.
	ReasonComponentsDegraded = "ComponentsDegraded"
	// ReasonComponentsHealthy: no required component says Degraded or Stalled.
	ReasonComponentsHealthy = "ComponentsHealthy"
	// ReasonComponentsUnknown: none is known to be bad, and at least one required
	// component cannot be judged. Clears when all can.
	ReasonComponentsUnknown = "ComponentsUnknown"
)

// Reasons of Published; ReasonForbidden is one of them, too.
const (
	// ReasonAcknowledged: OLM holds exactly this decision at the current
	// generation of the OperatorCondition.
	ReasonAcknowledged = "Acknowledged"
	// ReasonAwaitingAcknowledgement: the decision is written and OLM has not
	// copied it into the OperatorCondition's status yet. Clears within seconds;
	// if not, a Deployment that the CSV lists is missing or OLM is down.
	ReasonAwaitingAcknowledgement = "AwaitingAcknowledgement"
	// ReasonOverridden: an administrator's override in the OperatorCondition
	// outranks the decision. Clears when the override is removed.
	ReasonOverridden = "Overridden"
	// ReasonHeldByAnotherGate: this gate is open and another gate of the
	// namespace is closed, so OLM is told False. Clears when all are open.
	ReasonHeldByAnotherGate = "HeldByAnotherGate"
	// ReasonOLMv1: the operator was installed by OLM v1, which does not read
	// OperatorConditions. Nothing is enforced.
	ReasonOLMv1 = "OLMv1"
	// ReasonNoOLM: the operator was not installed by OLM. Nothing is enforced.
	ReasonNoOLM = "NoOLM"
	// ReasonOperatorConditionNotFound: the OperatorCondition does not exist, and
	// OLM reads its absence as consent. Clears when OLM creates it.
	ReasonOperatorConditionNotFound = "OperatorConditionNotFound"
	// ReasonPublishFailed: the OperatorCondition could not be read or written.
	// Clears with the next success.
	ReasonPublishFailed = "PublishFailed"
)

// Reasons of events only; every other event has the reason of its condition.
const (
	// ReasonForeignWrite: somebody else changed what OLM is told. The operator
	// repairs it within seconds.
	ReasonForeignWrite = "ForeignWrite"
)
