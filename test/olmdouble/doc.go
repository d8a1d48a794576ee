// Package olmdouble stands in for OLM v0 in tests: it follows OLM's rules about
// OperatorConditions, those that fail open included, where OLM itself cannot run.
//
// The rules were read in operator-lifecycle-manager, which each function names.
// It shares no code with the operator, so that a misunderstanding there cannot
// hide here. It does not double: the phases of ClusterServiceVersions, the
// creation of OperatorConditions, and the environment variable in Deployments.
package olmdouble
