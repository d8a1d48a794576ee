package scenarios

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// command is one command of the scenarios: its usage, and what it does. An error
// fails the scenario.
type command struct {
	usage string
	run   func(s *scenario, ts *testscript.TestScript, args []string) error
}

func commands() map[string]func(*testscript.TestScript, bool, []string) {
	out := map[string]func(*testscript.TestScript, bool, []string){"kubectl": runKubectl}
	for name, c := range map[string]command{
		"apply":     {"apply FILE...", apply},
		"delete":    {"delete KIND/NAME", deleteObject},
		"patch":     {"patch KIND/NAME [status] JSON", patch},
		"report":    {"report KIND/NAME|KIND WHAT...", report},
		"namespace": {"namespace NAME", makeNamespace},
		"grant":     {"grant RESOURCE.GROUP", grant},
		"revoke":    {"revoke RESOURCE.GROUP", revoke},
		"operator":  {"operator start|kill|stop|pause|resume|exits|log ...", operator},
		"olm":       {"olm start|stop|creates|decide|deploy ...", olm},
		"override":  {"override True|False|none", override},
		"noise":     {"noise start INTERVAL KIND[/NAME] | noise stop", noise},
		"proxy":     {"proxy fail|delay|crash|cut ... | proxy clear", proxyRules},
		"expect":    {"expect WHAT... [within DURATION]", expect},
		"remember":  {"remember", remember},
		"at-end":    {"at-end disagree WHY", atEnd},
	} {
		out[name] = func(ts *testscript.TestScript, negated bool, args []string) {
			if negated {
				ts.Fatalf("%s cannot be negated", name)
			}
			if err := c.run(of(ts), ts, args); err != nil {
				ts.Fatalf("%v", err)
			}
		}
	}
	return out
}

func usage(text string) error { return fmt.Errorf("usage: %s", text) }

// operator starts and ends the operator's processes. The name of a process is
// "operator" where the scenario has only one.
func operator(s *scenario, ts *testscript.TestScript, args []string) error {
	if len(args) == 0 {
		return usage("operator start|kill|stop|pause|resume|exits|log ...")
	}
	if args[0] == "start" {
		return operatorStart(s, ts, args[1:])
	}
	name, rest := "operator", args[1:]
	if len(rest) > 0 && s.operators[rest[0]] != nil {
		name, rest = rest[0], rest[1:]
	}
	p, err := s.find(name)
	if err != nil {
		return err
	}
	switch args[0] {
	case "kill":
		p.kill()
	case "stop":
		return p.stop()
	case "pause":
		p.paused = true
		return p.signal(syscall.SIGSTOP)
	case "resume":
		p.paused = false
		return p.signal(syscall.SIGCONT)
	case "exits":
		return operatorExits(p, rest)
	case "log":
		return s.eventually(patience, func() (bool, string) {
			return containsAll(p.log.String(), rest), "the log:\n" + p.log.last(20)
		})
	default:
		return usage("operator start|kill|stop|pause|resume|exits|log ...")
	}
	return nil
}

// operatorStart reads NAME, KEY=VALUE, without KEY, and flags.
func operatorStart(s *scenario, ts *testscript.TestScript, args []string) error {
	name := "operator"
	if len(args) > 0 && !strings.ContainsAny(args[0], "=-") && args[0] != "without" {
		name, args = args[0], args[1:]
	}
	environment := s.usualEnvironment(name, ts.Getenv("OC"))
	var flags []string
	for i := 0; i < len(args); i++ {
		key, value, assigned := strings.Cut(args[i], "=")
		switch {
		case strings.HasPrefix(args[i], "-"):
			flags = append(flags, args[i])
		case args[i] == "without" && i+1 < len(args):
			i++
			delete(environment, args[i])
		case assigned:
			environment[key] = value
		default:
			return fmt.Errorf("operator start: what is %q?", args[i])
		}
	}
	return s.startOperator(name, environment, flags)
}

// operatorExits waits for the end of an operator: CODE|killed TEXT..., with all texts in
// what it printed.
func operatorExits(p *process, args []string) error {
	if len(args) == 0 {
		return usage("operator exits CODE|killed [TEXT...]")
	}
	code, err := p.wait(patience)
	if err != nil {
		return err
	}
	how := fmt.Sprint(code)
	if code == -1 {
		how = "killed"
	}
	if how != args[0] {
		return fmt.Errorf("exit code %d:\n%s", code, p.log.last(20))
	}
	if !containsAll(p.log.String(), args[1:]) {
		return fmt.Errorf("it printed:\n%s", p.log.last(20))
	}
	return nil
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

func proxyRules(s *scenario, _ *testscript.TestScript, args []string) error {
	if len(args) == 1 && args[0] == "clear" {
		s.proxy.mu.Lock()
		defer s.proxy.mu.Unlock()
		for _, rule := range s.proxy.rules {
			close(rule.cleared)
		}
		s.proxy.rules = nil
		return nil
	}
	if len(args) == 2 && args[0] == "cut" {
		s.proxy.cut(args[1])
		return nil
	}
	rule, err := parseRule(args)
	if err != nil {
		return err
	}
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()
	s.proxy.rules = append(s.proxy.rules, rule)
	return nil
}

// remember keeps the OperatorCondition's revision for `expect unchanged`.
func remember(s *scenario, ts *testscript.TestScript, _ []string) error {
	s.remembered = s.c.recorder.newest(s.operatorConditionKey(ts))
	return nil
}

// atEnd excuses a scenario, for a stated reason, from the rule that gates and OLM
// agree at its end.
func atEnd(s *scenario, _ *testscript.TestScript, args []string) error {
	if len(args) < 2 || args[0] != "disagree" {
		return usage("at-end disagree WHY")
	}
	s.apart = strings.Join(args[1:], " ")
	return nil
}

// within takes "within DURATION" out of the arguments.
func within(args []string) ([]string, time.Duration, error) {
	for i, arg := range args {
		if arg == "within" && i == len(args)-2 {
			limit, err := time.ParseDuration(args[i+1])
			return args[:i], limit, err
		}
	}
	return args, patience, nil
}
