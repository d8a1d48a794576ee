package watch

import (
	"context"
	"errors"
	"fmt"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/upgrade-gate/upgrade-gate/pkg/component"
)

// failure is a read that did not succeed. detail is for statuses and does not
// change while the cause does not; cause is for the log and may hold anything.
type failure struct {
	access component.Access
	detail string
	cause  error
}

// definite reports whether the API server said something about the kind or the
// rights, rather than failed to answer: that is true at once, while an answer
// that failed to come leaves what was known before true for a while.
func (f *failure) definite() bool {
	switch f.access {
	case component.AccessForbidden, component.AccessKindNotInstalled, component.AccessMisplaced:
		return true
	}
	return false
}

// call is a request about a kind, as failures describe it.
type call struct {
	verb string
	gvk  schema.GroupVersionKind
	// resource is empty for the discovery of the kind itself.
	resource  schema.GroupResource
	namespace string
}

func (c call) String() string {
	where := "the whole cluster"
	if c.namespace != "" {
		where = "namespace " + c.namespace
	}
	return fmt.Sprintf("%s %s in %s", c.verb, c.resource, where)
}

// callError says which call an error came from, through layers that only wrap.
type callError struct {
	call
	err error
}

func (e *callError) Error() string { return e.call.String() + ": " + e.err.Error() }

// Unwrap hides the two kinds of error that client-go's reflector retries by
// itself, during the first read with a pause that no context can end; our own
// loop retries them instead.
func (e *callError) Unwrap() error {
	if unreachable(e.err) || apierrors.IsTooManyRequests(e.err) {
		return nil
	}
	return e.err
}

// explain turns any error of a list, watch or get into a failure. fallback
// describes the call when err does not.
func explain(err error, fallback call) *failure {
	c := fallback
	var from *callError
	if errors.As(err, &from) {
		c, err = from.call, from.err
	}
	switch {
	case apierrors.IsForbidden(err):
		return &failure{access: component.AccessForbidden, cause: err, detail: fmt.Sprintf(
			"the operator may not %s; grant it get, list and watch on %s, for example with a ClusterRole labelled upgradegate.io/aggregate-to-operator: \"true\"",
			c, c.resource)}
	case apierrors.IsNotFound(err):
		return kindNotInstalled(c.gvk, err)
	}
	return answerFailed(err, c.String())
}

// discoveryFailed explains an error of discovery.
func discoveryFailed(err error, gvk schema.GroupVersionKind) *failure {
	switch {
	case apierrors.IsNotFound(err):
		return kindNotInstalled(gvk, err)
	case apierrors.IsForbidden(err):
		return &failure{access: component.AccessForbidden, cause: err, detail: fmt.Sprintf(
			"the operator may not discover %s; grant it the ClusterRole system:discovery", gvk.GroupVersion())}
	}
	return answerFailed(err, "discover "+gvk.GroupVersion().String())
}

// answerFailed explains an error that says nothing about kinds and rights. The
// server's own words stay in the log: they hold addresses, ports and times.
func answerFailed(err error, what string) *failure {
	f := &failure{access: component.AccessFailed, cause: err}
	var status apierrors.APIStatus
	switch {
	case timedOut(err):
		f.access = component.AccessTimedOut
		f.detail = fmt.Sprintf("no answer in time to: %s", what)
	case errors.As(err, &status) && status.Status().Reason != metav1.StatusReasonUnknown:
		f.detail = fmt.Sprintf("the API server answered %s to: %s; the operator's log has the whole answer", status.Status().Reason, what)
	case errors.As(err, &status):
		f.detail = fmt.Sprintf("the API server answered code %d to: %s; the operator's log has the whole answer", status.Status().Code, what)
	default:
		f.detail = fmt.Sprintf("the API server could not be reached to: %s; the operator's log says why", what)
	}
	return f
}

func timedOut(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		errors.As(err, &network) && network.Timeout()
}

func unreachable(err error) bool {
	var status apierrors.APIStatus
	return !errors.As(err, &status)
}

func kindNotInstalled(gvk schema.GroupVersionKind, cause error) *failure {
	return &failure{access: component.AccessKindNotInstalled, cause: cause, detail: fmt.Sprintf(
		"the API server does not serve %s; install the CRD that defines it, or correct apiVersion and kind", kindName(gvk))}
}

func misplaced(format string, gvk schema.GroupVersionKind) *failure {
	return &failure{access: component.AccessMisplaced, detail: fmt.Sprintf(format, kindName(gvk))}
}

func kindName(gvk schema.GroupVersionKind) string {
	return fmt.Sprintf("%s of %s", gvk.Kind, gvk.GroupVersion())
}
