package scenarios

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

var (
	scenarioDir    = flag.String("scenarios", "testdata", "folder with the scenarios, *.txtar; relative to test/scenarios")
	traceScenarios = flag.Bool("trace", false, "print each scenario's steps, also when it passes")
	operatorBinary = flag.String("operator", "", "operator binary to run; default: build it")
)

// shared is what all scenarios use: one API server, one operator binary, one
// recorder. It is set once, by TestMain.
var shared *cluster

func TestMain(m *testing.M) {
	flag.Parse()
	if !given("test.parallel") {
		// A scenario mostly waits; the default, one per core, would leave the
		// cores idle.
		_ = flag.Set("test.parallel", "6")
	}
	// What client libraries complain about when a scenario ends is no news.
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	var err error
	if shared, err = startCluster(*operatorBinary); err != nil {
		fmt.Fprintln(os.Stderr, "scenarios:", err)
		os.Exit(1)
	}
	code := m.Run()
	shared.stop()
	os.Exit(code)
}

func given(name string) bool {
	found := false
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

func TestScenarios(t *testing.T) {
	dir, err := filepath.Abs(*scenarioDir)
	if err != nil {
		t.Fatal(err)
	}
	testscript.RunT(runner{t, dir}, testscript.Params{
		Dir:                dir,
		Setup:              setupScenario,
		Cmds:               commands(),
		RequireUniqueNames: true,
		Condition:          condition,
	})
}

// condition knows [existing]: the scenarios run on a cluster that was there before
// them, with controllers of its own.
func condition(name string) (bool, error) {
	if name == "existing" {
		return os.Getenv("USE_KUBECONFIG") != "", nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

// runner lets testscript run on testing.T, prints the steps of a scenario only
// when it failed or was asked to, and leaves one line for each in `go test -v`.
type runner struct {
	*testing.T
	dir string
}

// Parallel lets a scenario run beside others, unless a comment in it says
// "# alone: WHY". Those run first, one after the other.
func (r runner) Parallel() {
	name := r.Name()[strings.LastIndex(r.Name(), "/")+1:]
	text, err := os.ReadFile(filepath.Join(r.dir, name+".txtar"))
	if err == nil && strings.Contains("\n"+string(text), "\n# alone: ") {
		return
	}
	r.T.Parallel()
}

// Verbose makes testscript keep the steps before the failing one.
func (r runner) Verbose() bool { return *traceScenarios }

func (r runner) Run(name string, f func(testscript.T)) {
	r.T.Run(name, func(t *testing.T) { f(runner{t, r.dir}) })
}

func (r runner) Log(args ...any) {
	if r.Failed() || *traceScenarios {
		r.T.Log(args...)
	}
}
