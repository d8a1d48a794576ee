package watch_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/watch"
)

// ages is a time-out that no test steps over.
const ages = 10_000 * time.Hour

// harness is a running Manager with a clock that only the test moves.
type harness struct {
	*testing.T
	*watch.Manager
	counter
	clock *testingclock.FakeClock
	stop  func()
}

func start(t *testing.T, config *rest.Config, syncTimeout time.Duration) *harness {
	t.Helper()
	h := &harness{T: t, clock: newClock()}
	objects, found := clientsFor(t, config)
	h.Manager = watch.New(watch.Config{
		Client: objects, Discovery: found, Changed: h.changed, Clock: h.clock, SyncTimeout: syncTimeout,
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Start(ctx) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(h.stop)
	return h
}

func (h *harness) access(target component.Target) component.Access {
	return h.Read(h.Context(), target).Access
}

// becomes waits for the target's access. Pauses between attempts are stepped
// over.
func (h *harness) becomes(target component.Target, want component.Access) component.Reading {
	h.Helper()
	var got component.Reading
	require.Eventually(h, func() bool {
		got = h.Read(h.Context(), target)
		if got.Access == want {
			return true
		}
		h.clock.Step(time.Second)
		return false
	}, patience, tick, "access is not %d", want)
	return got
}

// records collects, each time a change is announced, what the target's access is.
func (h *harness) records(target component.Target) func() []component.Access {
	var mu sync.Mutex
	var seen []component.Access
	see := func() {
		access := h.access(target)
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, access)
	}
	h.see.Store(&see)
	return func() []component.Access {
		mu.Lock()
		defer mu.Unlock()
		return append([]component.Access(nil), seen...)
	}
}

// wire stands between a client and the API server and can be cut for one
// resource.
type wire struct {
	resource string
	inner    http.RoundTripper

	mu       sync.Mutex
	cut      func(*http.Request) (*http.Response, error)
	requests int
	refused  int
	open     []io.Closer
}

// through returns a copy of config whose requests about resource go through a
// wire.
func through(config *rest.Config, resource string) (*rest.Config, *wire) {
	w := &wire{resource: resource}
	config = rest.CopyConfig(config)
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		w.inner = inner
		return w
	})
	return config, w
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/"+w.resource) && !strings.Contains(r.URL.Path, "/"+w.resource+"/") {
		return w.inner.RoundTrip(r)
	}
	w.mu.Lock()
	w.requests++
	cut := w.cut
	if cut != nil {
		w.refused++
	}
	w.mu.Unlock()
	if cut != nil {
		return cut(r)
	}
	response, err := w.inner.RoundTrip(r)
	if err == nil {
		w.mu.Lock()
		w.open = append(w.open, response.Body)
		w.mu.Unlock()
	}
	return response, err
}

// breakWith ends what is open and lets nothing through any more.
func (w *wire) breakWith(cut func(*http.Request) (*http.Response, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	for _, body := range w.open {
		_ = body.Close()
	}
	w.open = nil
}

func (w *wire) mend() { w.breakWith(nil) }

func (w *wire) counts() (requests, refused int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.requests, w.refused
}

// silent never answers.
func silent(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// answers returns a server that answers with a status of this reason and words
// that are different each time.
func answers(code int, reason string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + reason +
			`","message":"dial tcp 10.0.0.7:43123: refused at ` + time.Now().String() + `"}`
		return &http.Response{
			StatusCode: code, Status: http.StatusText(code), Request: r,
			Header: http.Header{"Content-Type": []string{"application/json"}},
			Body:   io.NopCloser(bytes.NewBufferString(body)),
		}, nil
	}
}
