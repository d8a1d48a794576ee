package scenarios

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/upgrade-gate/upgrade-gate/test/scenarios/judge"
)

// look looks once, and says what it saw.
type look func() (bool, string)

// expectation prepares a look from the arguments after its word.
type expectation func(s *scenario, ts *testscript.TestScript, args []string) (look, error)

// expectations are the words that may follow `expect`.
var expectations = map[string]expectation{
	"open":         expectOpen,
	"closed":       expectClosed,
	"acknowledged": expectAcknowledged,
	"gate":         expectGate,
	"component":    expectComponent,
	"condition":    expectCondition,
	"ready":        expectReady,
	"notready":     expectNotReady,
	"opened":       expectOpened,
	"never-opened": expectNeverOpened,
	"unchanged":    expectUnchanged,
	"event":        expectEvent,
	"metric":       expectMetric,
	"requests":     expectRequests,
	"refused":      expectNoneRefused,
	"answer":       expectAnswer,
}

// past are the expectations about what has been: waiting does not mend them.
var past = map[string]bool{"never-opened": true, "unchanged": true, "refused": true}

func expect(s *scenario, ts *testscript.TestScript, args []string) error {
	args, limit, err := within(args)
	if err != nil {
		return err
	}
	if len(args) == 2 && args[0] == "quiet" {
		return s.expectQuiet(args[1])
	}
	if len(args) > 1 && args[0] == "at-most" {
		return s.expectAtMost(args[1:])
	}
	if len(args) == 2 && args[0] == "nothing-written" {
		return s.expectNothingWritten(args[1])
	}
	if len(args) == 0 || expectations[args[0]] == nil {
		return fmt.Errorf("expect what? %v", args)
	}
	check, err := expectations[args[0]](s, ts, args[1:])
	if err != nil {
		return fmt.Errorf("expect %s: %w", args[0], err)
	}
	if past[args[0]] {
		limit = 0
	}
	if err := s.eventually(limit, check); err != nil {
		return fmt.Errorf("expected %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

func (s *scenario) operatorConditionKey(ts *testscript.TestScript) judge.Key {
	return judge.Key{Group: "operators.coreos.com", Kind: "OperatorCondition", Namespace: s.ns, Name: ts.Getenv("OC")}
}

// expectOpen: the OperatorCondition says True: [REASON [TEXT...]].
func expectOpen(s *scenario, ts *testscript.TestScript, args []string) (look, error) {
	return s.announces(ts, "True", args), nil
}

// expectClosed: it says False: REASON [TEXT...].
func expectClosed(s *scenario, ts *testscript.TestScript, args []string) (look, error) {
	if len(args) == 0 {
		return nil, usage("expect closed REASON [TEXT...]")
	}
	return s.announces(ts, "False", args), nil
}

func (s *scenario) announces(ts *testscript.TestScript, status string, args []string) look {
	return func() (bool, string) {
		oc := s.c.recorder.now(s.operatorConditionKey(ts))
		if oc == nil {
			return false, "no OperatorCondition " + ts.Getenv("OC")
		}
		found := entriesOf(oc.Object, "Upgradeable", "spec", "conditions")
		ok := len(found) == 1 && found[0].matches(status, args)
		return ok, "OperatorCondition " + said(oc.Object)
	}
}

// expectAcknowledged: OLM has copied what the OperatorCondition says, at its
// current generation.
func expectAcknowledged(s *scenario, ts *testscript.TestScript, _ []string) (look, error) {
	return func() (bool, string) {
		oc := s.c.recorder.now(s.operatorConditionKey(ts))
		if oc == nil {
			return false, "no OperatorCondition"
		}
		wanted := entriesOf(oc.Object, "Upgradeable", "spec", "conditions")
		held := entriesOf(oc.Object, "Upgradeable", "status", "conditions")
		ok := len(wanted) == 1 && len(held) == 1 && held[0].status == wanted[0].status && held[0].observed == oc.GetGeneration()
		return ok, fmt.Sprintf("generation %d, spec %v, status %v", oc.GetGeneration(), wanted, held)
	}, nil
}

// expectGate: the gate's own Upgradeable: NAME open|closed REASON [TEXT...].
func expectGate(s *scenario, _ *testscript.TestScript, args []string) (look, error) {
	if len(args) < 3 || args[1] != "open" && args[1] != "closed" {
		return nil, usage("expect gate NAME|NAMESPACE/NAME open|closed REASON [TEXT...]")
	}
	status := map[string]string{"open": "True", "closed": "False"}[args[1]]
	return s.gateCondition(args[0], "Upgradeable", status, args[2:]), nil
}

// expectCondition: a condition of a gate: TYPE STATUS REASON [TEXT...] [of GATE].
// Without a name it is the only gate's.
func expectCondition(s *scenario, _ *testscript.TestScript, args []string) (look, error) {
	gate := ""
	if n := len(args); n > 2 && args[n-2] == "of" {
		gate, args = args[n-1], args[:n-2]
	}
	if len(args) < 3 {
		return nil, usage("expect condition TYPE STATUS REASON [TEXT...] [of GATE]")
	}
	return s.gateCondition(gate, args[0], args[1], args[2:]), nil
}

func (s *scenario) gateCondition(gate, conditionType, status string, reasonAndTexts []string) look {
	return func() (bool, string) {
		seen := "no such gate"
		for _, g := range s.gates(gate) {
			found := entriesOf(g.Object, conditionType, "status", "conditions")
			seen = fmt.Sprintf("gate %s %v", g.GetName(), found)
			if len(found) == 1 && found[0].matches(status, reasonAndTexts) && found[0].observed == g.GetGeneration() {
				return true, seen
			}
		}
		return false, seen
	}
}

// expectComponent: a component in the status of a gate: NAME REASON [TEXT...].
func expectComponent(s *scenario, _ *testscript.TestScript, args []string) (look, error) {
	if len(args) < 2 {
		return nil, usage("expect component NAME REASON [TEXT...]")
	}
	return func() (bool, string) {
		seen := "no such component in a gate's status"
		for _, g := range s.gates("") {
			for _, e := range entriesOf(g.Object, args[0], "status", "components") {
				seen = e.String()
				if e.reason == args[1] && containsAll(e.message, args[2:]) {
					return true, seen
				}
			}
		}
		return false, seen
	}, nil
}

// expectReady: /readyz of an operator: [NAME].
func expectReady(s *scenario, _ *testscript.TestScript, args []string) (look, error) {
	return s.readiness(args, func(code int) bool { return code == http.StatusOK })
}

// expectNotReady: /readyz answers, and not with 200.
func expectNotReady(s *scenario, _ *testscript.TestScript, args []string) (look, error) {
	return s.readiness(args, func(code int) bool { return code >= 400 })
}

func (s *scenario) readiness(args []string, good func(int) bool) (look, error) {
	p, err := s.find(append(args, "operator")[0])
	if err != nil {
		return nil, err
	}
	return func() (bool, string) {
		code, body := get("http://" + p.health + "/readyz")
		return good(code), fmt.Sprintf("/readyz %d %s", code, body)
	}, nil
}

func get(url string) (int, string) {
	client := http.Client{Timeout: 2 * time.Second}
	answer, err := client.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, strings.TrimSpace(string(body))
}

// expectMetric: a line of the operator's /metrics, as a whole: LINE.
func expectMetric(s *scenario, _ *testscript.TestScript, args []string) (look, error) {
	if len(args) == 0 {
		return nil, usage("expect metric LINE")
	}
	p, err := s.find("operator")
	if err != nil {
		return nil, err
	}
	return func() (bool, string) {
		code, body := get("http://" + p.metrics + "/metrics")
		var own []string
		for _, line := range strings.Split(body, "\n") {
			if strings.HasPrefix(line, "upgrade") {
				own = append(own, line)
			}
		}
		return slices.Contains(strings.Split(body, "\n"), args[0]), fmt.Sprintf("/metrics %d:\n%s", code, strings.Join(own, "\n"))
	}, nil
}

// expectEvent: an event of the namespace: REASON [TEXT...].
func expectEvent(s *scenario, _ *testscript.TestScript, args []string) (look, error) {
	if len(args) == 0 {
		return nil, usage("expect event REASON [TEXT...]")
	}
	return func() (bool, string) {
		list, err := s.c.kube.CoreV1().Events(s.ns).List(s.ctx, metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		var seen []string
		for _, e := range list.Items {
			if e.Reason == args[0] && containsAll(e.Message, args[1:]) {
				return true, ""
			}
			seen = append(seen, e.Reason+": "+e.Message)
		}
		return false, "events: " + strings.Join(seen, "; ")
	}, nil
}

// expectOpened: how often the OperatorCondition became True since the start: N
// times.
func expectOpened(s *scenario, ts *testscript.TestScript, args []string) (look, error) {
	if len(args) != 2 {
		return nil, usage("expect opened N times")
	}
	wanted, err := strconv.Atoi(args[0])
	return func() (bool, string) {
		n := s.timesOpened(ts)
		return n == wanted, fmt.Sprintf("opened %d times", n)
	}, err
}

func expectNeverOpened(s *scenario, ts *testscript.TestScript, _ []string) (look, error) {
	return func() (bool, string) {
		n := s.timesOpened(ts)
		return n == 0, fmt.Sprintf("opened %d times", n)
	}, nil
}
