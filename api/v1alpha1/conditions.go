package v1alpha1

// The condition types of an UpgradeGate. Ready, Available, Progressing and
// Degraded describe the components; Upgradeable is the decision; Published says
// whether OLM holds it.
const (
	// ConditionReady is True when the spec is valid and every required component
	// is proven ready, False when one is not, Unknown when none is known to be
	// bad and some cannot be judged.
	ConditionReady = "Ready"
	// ConditionAvailable is True when every required component is available: by
	// its own Available condition, else by its readiness.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while a required component is rolling out or
	// stale, or while the gate waits for the settle window.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True when a required component says Degraded or
	// Stalled.
	ConditionDegraded = "Degraded"
	// ConditionUpgradeable is True when the gate is open and False when it is
	// closed. It is never Unknown, because OLM v0 reads Unknown as consent
	// (operator-lifecycle-manager, pkg/controller/operators/olm/operatorconditions.go).
	ConditionUpgradeable = "Upgradeable"
	// ConditionPublished is True when OLM holds exactly this decision and has
	// acknowledged it.
	ConditionPublished = "Published"
)
