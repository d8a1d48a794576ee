package scenarios

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type action int

const (
	fail action = iota
	delay
	crashBefore
	crashAfter
	lose
	late
)

// rule says what happens to matching requests.
type rule struct {
	action   action
	verb     string // or "write", or "any"
	resource string
	status   int
	pause    time.Duration
	left     int // how many more times; negative is always
	cleared  chan struct{}
}

// parseRule reads the arguments of the proxy command.
func parseRule(args []string) (*rule, error) {
	wrong := usage("proxy fail VERB RESOURCE STATUS [N times] | proxy delay|late VERB RESOURCE DURATION | proxy lose VERB RESOURCE | proxy crash before|after VERB RESOURCE")
	if len(args) < 3 || len(args) < 4 && args[0] != "lose" {
		return nil, wrong
	}
	out := &rule{verb: args[1], resource: args[2], left: -1, cleared: make(chan struct{})}
	var err error
	switch args[0] {
	case "fail":
		out.status, err = strconv.Atoi(args[3])
		if len(args) == 6 && args[5] == "times" && err == nil {
			out.left, err = strconv.Atoi(args[4])
		}
	case "delay":
		out.action = delay
		out.pause, err = time.ParseDuration(args[3])
	case "late":
		out.action, out.left = late, 1
		out.pause, err = time.ParseDuration(args[3])
	case "lose":
		out.action, out.left = lose, 1
	case "crash":
		out.action, out.verb, out.resource, out.left = crashBefore, args[2], args[3], 1
		if args[1] == "after" {
			out.action = crashAfter
		}
	default:
		err = wrong
	}
	return out, err
}

// match returns the rule for a request, and uses it up once; nil when there is none.
func (p *proxy) match(r request) *rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, rule := range p.rules {
		verb := rule.verb == "any" || rule.verb == r.verb || rule.verb == "write" && r.isWrite()
		if verb && rule.resource == r.resource && rule.left != 0 {
			rule.left--
			return rule
		}
	}
	return nil
}

// before does what is to be done before a request is forwarded, and reports
// whether that was all.
func (u *rule) before(kill func(), w http.ResponseWriter, r *http.Request) bool {
	switch u.action {
	case delay:
		select {
		case <-time.After(u.pause):
		case <-u.cleared:
		case <-r.Context().Done():
		}
	case crashBefore:
		kill()
		return true
	case fail:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(u.status)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Code: int32(u.status),
			Reason: reasonOf[u.status], Message: fmt.Sprintf("the scenario answers %d", u.status),
		})
		return true
	}
	return false
}

// reasonOf is what clients go by, rather than by the number.
var reasonOf = map[int]metav1.StatusReason{
	http.StatusForbidden:           metav1.StatusReasonForbidden,
	http.StatusNotFound:            metav1.StatusReasonNotFound,
	http.StatusConflict:            metav1.StatusReasonConflict,
	http.StatusInternalServerError: metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable:  metav1.StatusReasonServiceUnavailable,
}

// pending reports whether some rule has not been used up.
func (p *proxy) pending() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, rule := range p.rules {
		if rule.left > 0 {
			return true
		}
	}
	return false
}
