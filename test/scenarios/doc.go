// Package scenarios runs the scenarios in testdata: small scripts that play a
// component's controller, OLM and an administrator against the real operator
// binary, on a real API server, with no more rights than the operator is shipped
// with. README.md says how to run them and how to write one.
//
//	scenarios_test.go          the Go test, and its flags
//	cluster_test.go            the API server that all scenarios share
//	scenario_test.go           one scenario: what is there before its first line, and after its last
//	rights_test.go             the operator's account, with config/rbac and nothing more
//	process_test.go            the operator as a process
//	proxy_test.go, rule_test.go  what stands between operator and API server: sees, fails, delays, interrupts
//	recorder_test.go           keeps every revision of what matters
//	judge/                     says afterwards whether the promises were kept
//	commands_test.go           the commands, and those about processes
//	objects_test.go, report_test.go, olm_test.go   the commands about objects, components, and OLM
//	expect_test.go, seen_test.go   what can be expected
//	picture_test.go            what is printed when a scenario failed
//	engine_test.go, bad_operator_test.go   tests of all this: a check that cannot fail is worth nothing
package scenarios
