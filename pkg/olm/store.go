package olm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apiv2 "github.com/operator-framework/api/pkg/operators/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
)

// Client is all that this package asks of a Kubernetes client: it cannot list,
// watch, create or delete. It must not answer from a cache, because OLM grants
// neither list nor watch on OperatorConditions. A client.Client made by
// client.New will do.
type Client interface {
	Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error
	Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error
}

// store reads and patches one OperatorCondition. Each request ends after timeout,
// so that one that hangs cannot keep a closing write waiting for ever.
type store struct {
	client  Client
	key     types.NamespacedName
	timeout time.Duration
}

func (s store) read(ctx context.Context) (document, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	object := blank(s.key)
	if err := s.client.Get(ctx, s.key, object); err != nil {
		return document{}, fmt.Errorf("reading OperatorCondition %s: %w", s.key, err)
	}
	return document{object: object}, nil
}

// patch never creates: a merge patch of an absent object is NotFound.
func (s store) patch(ctx context.Context, body []byte) (document, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	object := blank(s.key)
	if err := s.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, body)); err != nil {
		return document{}, fmt.Errorf("patching OperatorCondition %s: %w", s.key, err)
	}
	return document{object: object}, nil
}

func (s store) conflict(why string) error {
	resource := apiv2.GroupVersion.WithResource("operatorconditions").GroupResource()
	return apierrors.NewConflict(resource, s.key.Name, errors.New(why))
}

// problem names why s could not be read, in words that stay the same while the
// cause does.
func (s store) problem(err error) (reason, detail string) {
	switch {
	case apierrors.IsNotFound(err):
		return v1alpha1.ReasonOperatorConditionNotFound, fmt.Sprintf("OperatorCondition %s does not exist", s.key)
	case meta.IsNoMatchError(err):
		return v1alpha1.ReasonOperatorConditionNotFound, "the API server does not serve OperatorConditions"
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return v1alpha1.ReasonForbidden, fmt.Sprintf("access to OperatorCondition %s is denied", s.key)
	case timedOut(err):
		return v1alpha1.ReasonPublishFailed, fmt.Sprintf("OperatorCondition %s: no answer in time", s.key)
	}
	if reason := apierrors.ReasonForError(err); reason != "" {
		return v1alpha1.ReasonPublishFailed, fmt.Sprintf("OperatorCondition %s: %s", s.key, reason)
	}
	return v1alpha1.ReasonPublishFailed, fmt.Sprintf("OperatorCondition %s: the API server cannot be reached", s.key)
}

func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

// rejected reports whether the API server refused a write, so that it is certain
// to have had no effect. After any other error it may have had one.
func rejected(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusRequestTimeout
}

const (
	conflictAttempts = 8
	conflictDelay    = 10 * time.Millisecond
)

// retryConflicts calls try until it returns anything but a conflict, at most
// conflictAttempts times. It waits between attempts, twice as long each time, but
// not before the second: the first conflict is nearly always OLM's own status.
func retryConflicts(ctx context.Context, clk clock.Clock, try func() error) error {
	delay := conflictDelay
	for attempt := 1; ; attempt++ {
		err := try()
		if err == nil || !apierrors.IsConflict(err) {
			return err
		}
		if attempt == conflictAttempts {
			return fmt.Errorf("attempt %d: %w", attempt, err)
		}
		if attempt > 1 {
			if waitErr := pause(ctx, clk, delay); waitErr != nil {
				return fmt.Errorf("attempt %d: %w", attempt, errors.Join(err, waitErr))
			}
			delay *= 2
		}
	}
}

func pause(ctx context.Context, clk clock.Clock, delay time.Duration) error {
	timer := clk.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}
