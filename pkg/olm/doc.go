// Package olm tells OLM what the gate decided, through the OperatorCondition of
// our own ClusterServiceVersion, and finds out whether OLM took notice.
//
// What it knows about OLM v0 was read in operator-lifecycle-manager,
// pkg/controller/operators/operatorcondition_controller.go (the copy from spec
// to status), operatorconditiongenerator_controller.go (who creates the object)
// and pkg/controller/operators/olm/operatorconditions.go (the decision):
//
//   - only a False, or an out-of-date, Upgradeable in status.conditions stops an
//     upgrade; a missing object, a missing entry and Unknown let it pass;
//   - OLM copies spec.conditions to status.conditions and stamps its own
//     observedGeneration; what the writer put there is discarded;
//   - an override in spec outranks everything, and is the administrator's;
//   - our account may get, update and patch that one object, and nothing else:
//     no list, no watch, no status.
//
// OLM keeps the last answer for ever: if this process is gone, nobody corrects
// it. That is why a False is written before anything else, why closing never
// waits for proof, and why opening is bound to the exact object that was read
// before the components were.
package olm
