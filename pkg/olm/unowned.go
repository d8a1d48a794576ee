package olm

import "context"

// Unowned is the Ownership of a process that OLM v0 did not install: there is no
// ClusterServiceVersion to be handed over, and nobody to say farewell to.
type Unowned struct{}

var _ Ownership = Unowned{}

// Check always answers that this process may write.
func (Unowned) Check(context.Context) (bool, error) { return false, nil }

// Stopped always answers no.
func (Unowned) Stopped(context.Context) (bool, error) { return false, nil }
