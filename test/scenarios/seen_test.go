package scenarios

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/upgrade-gate/upgrade-gate/test/scenarios/judge"
)

// entry is a condition, or a component in a gate's status.
type entry struct {
	name, status, reason, message string
	observed                      int64
}

func (e entry) String() string {
	return fmt.Sprintf("%s=%s/%s (%d) %q", e.name, e.status, e.reason, e.observed, shortened(e.message))
}

// matches compares with a status and REASON TEXT...; REASON may be A|B.
func (e entry) matches(status string, reasonAndTexts []string) bool {
	if e.status != status {
		return false
	}
	if len(reasonAndTexts) == 0 {
		return true
	}
	return slices.Contains(strings.Split(reasonAndTexts[0], "|"), e.reason) && containsAll(e.message, reasonAndTexts[1:])
}

// entriesOf returns the entries of one type or name in the list at path.
func entriesOf(object map[string]any, name string, path ...string) []entry {
	list, _, _ := unstructured.NestedSlice(object, path...)
	var out []entry
	for _, item := range list {
		fields, _ := item.(map[string]any)
		e := entry{name: field(fields, "type", "name"), status: field(fields, "status", "ready"),
			reason: field(fields, "reason"), message: field(fields, "message")}
		e.observed, _, _ = unstructured.NestedInt64(fields, "observedGeneration")
		if name == "" || e.name == name {
			out = append(out, e)
		}
	}
	return out
}

func field(fields map[string]any, names ...string) string {
	for _, name := range names {
		if value, ok := fields[name].(string); ok {
			return value
		}
	}
	return ""
}

// gates returns the gates of one name, or NAMESPACE/NAME; all of the scenario's
// namespace without a name.
func (s *scenario) gates(name string) []*unstructured.Unstructured {
	namespace := s.ns
	if before, after, ok := strings.Cut(name, "/"); ok {
		namespace, name = before, after
	}
	seen := map[judge.Key]bool{}
	var out []*unstructured.Unstructured
	for _, revision := range s.c.recorder.in(map[string]bool{namespace: true}) {
		key := revision.Key
		if key.Kind != "UpgradeGate" || seen[key] || name != "" && key.Name != name {
			continue
		}
		seen[key] = true
		if now := s.c.recorder.now(key); now != nil {
			out = append(out, now)
		}
	}
	return out
}

// timesOpened counts how often the OperatorCondition became True.
func (s *scenario) timesOpened(ts *testscript.TestScript) int {
	n, open := 0, false
	for _, revision := range s.c.recorder.in(s.namespaces) {
		if revision.Key != s.operatorConditionKey(ts) {
			continue
		}
		found := entriesOf(revision.Object, "Upgradeable", "spec", "conditions")
		now := len(found) > 0 && found[len(found)-1].status == "True"
		if now && !open {
			n++
		}
		open = now
	}
	return n
}

// expectUnchanged: nothing was written to the OperatorCondition's spec since
// `remember`.
func expectUnchanged(s *scenario, ts *testscript.TestScript, _ []string) (look, error) {
	if s.remembered == 0 {
		return nil, fmt.Errorf("there is nothing to compare with: use `remember` before")
	}
	return func() (bool, string) {
		newest := s.c.recorder.newest(s.operatorConditionKey(ts))
		return newest == s.remembered, fmt.Sprintf("revision %d was remembered, there is %d", s.remembered, newest)
	}, nil
}

// expectRequests: VERB RESOURCE none|some [by NAME]: what the operators asked of
// the API server since the start.
func expectRequests(s *scenario, _ *testscript.TestScript, args []string) (look, error) {
	process := ""
	if n := len(args); n == 5 && args[3] == "by" {
		process, args = args[4], args[:3]
	}
	if len(args) != 3 || args[2] != "none" && args[2] != "some" {
		return nil, usage("expect requests VERB RESOURCE none|some [by NAME]")
	}
	return func() (bool, string) {
		found := s.requests(func(r request) bool {
			return r.verb == args[0] && r.resource == args[1] && (process == "" || process == r.process)
		})
		return (len(found) > 0) == (args[2] == "some"), strings.Join(found, "\n")
	}, nil
}

// expectNoneRefused: the operators were refused nothing for want of a right.
func expectNoneRefused(s *scenario, _ *testscript.TestScript, _ []string) (look, error) {
	return func() (bool, string) {
		found := s.requests(func(r request) bool { return r.code == http.StatusForbidden })
		return len(found) == 0, strings.Join(found, "\n")
	}, nil
}

// expectAnswer: CODE VERB RESOURCE: a request was answered like that.
func expectAnswer(s *scenario, _ *testscript.TestScript, args []string) (look, error) {
	if len(args) != 3 {
		return nil, usage("expect answer CODE VERB RESOURCE")
	}
	return func() (bool, string) {
		found := s.requests(func(r request) bool { return r.verb == args[1] && r.resource == args[2] })
		return strings.Contains(strings.Join(found, "\n")+"\n", " -> "+args[0]+"\n"), strings.Join(found, "\n")
	}, nil
}

func (s *scenario) requests(wanted func(request) bool) []string {
	var found []string
	for _, r := range s.proxy.since(time.Time{}) {
		if wanted(r) {
			found = append(found, r.String())
		}
	}
	return found
}

// expectNothingWritten: for that long the operators write nothing but their
// Lease; they may read.
func (s *scenario) expectNothingWritten(duration string) error {
	start := time.Now()
	if err := s.sit(duration); err != nil {
		return err
	}
	for _, r := range s.proxy.since(start) {
		if r.isWrite() && r.group != "coordination.k8s.io" {
			return fmt.Errorf("written within %s: %s", duration, r)
		}
	}
	return s.unexpectedExit()
}

// expectAtMost: N requests VERB RESOURCE in DURATION: how often something is
// tried from now on.
func (s *scenario) expectAtMost(args []string) error {
	if len(args) != 6 || args[1] != "requests" || args[4] != "in" {
		return usage("expect at-most N requests VERB RESOURCE in DURATION")
	}
	limit, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	start := time.Now()
	if err := s.sit(args[5]); err != nil {
		return err
	}
	n := 0
	for _, r := range s.proxy.since(start) {
		if r.verb == args[2] && r.resource == args[3] {
			n++
		}
	}
	if n > limit {
		return fmt.Errorf("%d times %s %s within %s, more than %d", n, args[2], args[3], args[5], limit)
	}
	return nil
}

// sit lets time pass: only for what must not happen meanwhile.
func (s *scenario) sit(duration string) error {
	length, err := time.ParseDuration(duration)
	if err != nil {
		return err
	}
	select {
	case <-time.After(length):
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// expectQuiet: for that long the operators write nothing, list nothing and begin
// no watch. What they may do is renew their Lease, and read the
// OperatorCondition every five seconds. It begins when they have been still for
// a second.
func (s *scenario) expectQuiet(duration string) error {
	length, err := time.ParseDuration(duration)
	if err != nil {
		return err
	}
	err = s.eventually(patience, func() (bool, string) {
		recent := s.disturbances(time.Now().Add(-time.Second))
		return len(recent) == 0, "still at work: " + strings.Join(recent, "\n")
	})
	if err != nil {
		return err
	}
	start := time.Now()
	if err := s.sit(duration); err != nil {
		return err
	}
	if found := s.disturbances(start); len(found) > 0 {
		return fmt.Errorf("not quiet for %s:\n%s", length, strings.Join(found, "\n"))
	}
	reads := map[string]int{}
	for _, r := range s.proxy.since(start) {
		if r.verb == "get" && r.resource == "operatorconditions" {
			reads[r.process]++
		}
	}
	for process, n := range reads {
		if allowed := int(length/(5*time.Second)) + 1; n > allowed {
			return fmt.Errorf("operator %q read the OperatorCondition %d times within %s, more than once in 5 s", process, n, length)
		}
	}
	return s.unexpectedExit()
}

// disturbances are the requests since then that a quiet operator does not send.
func (s *scenario) disturbances(since time.Time) []string {
	var out []string
	for _, r := range s.proxy.since(since) {
		quiet := r.group == "coordination.k8s.io" || r.verb == "get" && r.resource == "operatorconditions"
		if !quiet {
			out = append(out, r.String())
		}
	}
	return slices.Compact(out)
}
