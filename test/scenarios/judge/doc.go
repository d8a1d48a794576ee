// Package judge says whether the recorded history of one scenario kept the
// promises of upgrade-gate. It knows nothing of how the operator works: it looks
// at what the API server stored, revision by revision, and at what the operator
// wrote.
//
// It deliberately shares no code with the product, so that a mistake in the
// product's own judgement cannot hide itself here.
package judge
