package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/upgrade-gate/upgrade-gate/test/scenarios/judge"
)

// request is one request of an operator, as the proxy saw it.
type request struct {
	at       time.Time
	process  string
	verb     string
	group    string
	resource string // with its subresource, for example upgradegates/status
	ns, name string
	code     int
}

func (r request) String() string {
	return fmt.Sprintf("%s: %s %s %s/%s -> %d", r.process, r.verb, r.resource, r.ns, r.name, r.code)
}

func (r request) isWrite() bool {
	switch r.verb {
	case "create", "update", "patch", "delete", "deletecollection":
		// A question about rights is a POST that stores nothing.
		return r.group != "authorization.k8s.io" && r.group != "authentication.k8s.io"
	}
	return false
}

// proxy stands on loopback between a scenario's operators and the API server. It
// carries the operators' identity, sees every request, and fails, delays or
// interrupts those that the scenario asks for.
type proxy struct {
	upstream  *url.URL
	transport http.RoundTripper
	newest    func(judge.Key) int64

	mu       sync.Mutex
	rules    []*rule
	requests []request
	writes   []judge.Write
	watches  map[*http.Request]cut
}

// cut ends a watch that is going on.
type cut struct {
	resource string
	now      func()
}

// newProxy makes a proxy that acts as the identity of config.
func newProxy(config *rest.Config, newest func(judge.Key) int64) (*proxy, error) {
	upstream, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	return &proxy{upstream: upstream, transport: transport, newest: newest, watches: map[*http.Request]cut{}}, nil
}

// listen opens one more door, for one operator process, and returns its URL.
// kill ends that process.
func (p *proxy) listen(process string, kill func()) (address string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(p.upstream)
			r.Out.Host = ""
		},
		Transport:     p.transport,
		FlushInterval: -1, // watches must not be held back
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	server := &http.Server{Handler: p.handler(process, kill, forward)}
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String(), func() { _ = server.Close() }, nil
}

func (p *proxy) handler(process string, kill func(), forward http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := classify(r)
		seen.process, seen.at = process, time.Now()
		rule := p.match(seen)
		if rule != nil && rule.before(kill, w, r) {
			seen.code = rule.status
			p.remember(seen, &judge.Write{Key: seen.key(), Verb: seen.verb, Code: rule.status})
			return
		}
		if !seen.isWrite() {
			if seen.verb == "watch" {
				var done func()
				r, done = p.cuttable(r, seen.resource)
				defer done()
			}
			// A watch ends late: it is remembered when it is answered.
			forward.ServeHTTP(&answering{ResponseWriter: w, answered: func(code int) {
				seen.code = code
				p.remember(seen, nil)
			}}, r)
			return
		}
		if rule != nil && rule.action == late {
			p.postpone(seen, rule, r)
		}
		answer := p.write(seen, forward, r)
		switch {
		case rule != nil && rule.action == crashAfter:
			kill()
			return
		case rule != nil && rule.action == lose:
			w.WriteHeader(http.StatusGatewayTimeout)
			return
		}
		for key, values := range answer.header {
			w.Header()[key] = values
		}
		w.WriteHeader(answer.code)
		_, _ = w.Write(answer.body.Bytes())
	})
}

// cuttable makes a watch one that `proxy cut` ends.
func (p *proxy) cuttable(r *http.Request, resource string) (*http.Request, func()) {
	ctx, cancel := context.WithCancel(r.Context())
	r = r.WithContext(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watches[r] = cut{resource, cancel}
	return r, func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watches, r)
	}
}

// cut ends the watches of a resource, as an API server does when it restarts:
// whoever wants to go on has to ask again, and may be refused.
func (p *proxy) cut(resource string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.watches {
		if w.resource == resource {
			w.now()
		}
	}
}

// postpone keeps a write on its way until the operator has given it up.
func (p *proxy) postpone(seen request, rule *rule, r *http.Request) {
	arrives := time.After(rule.pause)
	// The server notices that the other side is gone only once it has read all of
	// the request.
	sent, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(sent))
	select {
	case <-r.Context().Done():
		p.remember(seen, &judge.Write{Key: seen.key(), Verb: seen.verb})
		<-arrives
	case <-arrives:
	}
}

// write forwards a write and remembers what came of it.
func (p *proxy) write(seen request, forward http.Handler, r *http.Request) *recordedAnswer {
	sent, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(sent))
	r.Header.Del("Accept-Encoding")
	write := judge.Write{Key: seen.key(), Verb: seen.verb}
	_, write.Subresource, _ = strings.Cut(seen.resource, "/")
	write.Before = max(p.newest(write.Key), resourceVersion(sent))
	answer := &recordedAnswer{header: http.Header{}}
	// Once it is sent, it arrives, whether or not anybody waits for the answer.
	forward.ServeHTTP(answer, r.WithContext(context.WithoutCancel(r.Context())))
	write.Code, seen.code = answer.code, answer.code
	if answer.code < 300 {
		write.RV = resourceVersion(answer.body.Bytes())
	}
	p.remember(seen, &write)
	return answer
}

func (p *proxy) remember(seen request, write *judge.Write) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, seen)
	if write != nil && seen.isWrite() {
		p.writes = append(p.writes, *write)
	}
}

// since returns the requests after a moment.
func (p *proxy) since(t time.Time) []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []request
	for _, r := range p.requests {
		if r.at.After(t) {
			out = append(out, r)
		}
	}
	return out
}

func (p *proxy) allWrites() []judge.Write {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]judge.Write(nil), p.writes...)
}

// key is the identity of what a write is about. The kinds that the judge knows
// have their name, others that of their resource.
func (r request) key() judge.Key {
	resource, _, _ := strings.Cut(r.resource, "/")
	kind := map[string]string{
		"operatorconditions": "OperatorCondition", "upgradegates": "UpgradeGate", "events": "Event",
	}[resource]
	if kind == "" {
		kind = resource
	}
	return judge.Key{Group: r.group, Kind: kind, Namespace: r.ns, Name: r.name}
}

// classify reads verb and object from a request as the API server does.
func classify(r *http.Request) request {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	out := request{verb: strings.ToLower(r.Method), resource: r.URL.Path}
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		out.group, parts = parts[1], parts[3:]
	default: // discovery, version, health
		return out
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		out.ns, parts = parts[1], parts[2:]
	}
	out.resource = parts[0]
	if len(parts) > 1 {
		out.name = parts[1]
	}
	if len(parts) > 2 {
		out.resource += "/" + parts[2]
	}
	switch {
	case r.Method == http.MethodPost:
		out.verb = "create"
	case r.Method == http.MethodPut:
		out.verb = "update"
	case r.Method == http.MethodDelete && out.name == "":
		out.verb = "deletecollection"
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		out.verb = "watch"
	case r.Method == http.MethodGet && out.name == "":
		out.verb = "list"
	}
	return out
}

// resourceVersion reads metadata.resourceVersion; 0 when there is none. Built-in
// kinds may be sent in a binary form, which the judge does not need.
func resourceVersion(body []byte) int64 {
	var object metav1.PartialObjectMetadata
	if json.Unmarshal(body, &object) != nil {
		return 0
	}
	rv, _ := strconv.ParseInt(object.ResourceVersion, 10, 64)
	return rv
}

// answering says with which code a request was answered.
type answering struct {
	http.ResponseWriter
	answered func(code int)
}

func (a *answering) WriteHeader(code int) {
	a.answered(code)
	a.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController find Flush.
func (a *answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// recordedAnswer holds the answer to a write until it has been looked at.
type recordedAnswer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *recordedAnswer) Header() http.Header { return a.header }

func (a *recordedAnswer) WriteHeader(code int) { a.code = code }

func (a *recordedAnswer) Write(b []byte) (int, error) {
	if a.code == 0 {
		a.code = http.StatusOK
	}
	return a.body.Write(b)
}
