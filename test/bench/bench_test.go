// Package bench measures the operator against the least that could do its job,
// in one run on one API server: `make bench`.
package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// role makes the test binary run the baseline as a process of its own.
const role = "UPGRADE_GATE_BENCH_BASELINE"

func TestMain(m *testing.M) {
	if kubeconfig := os.Getenv(role); kubeconfig != "" {
		if err := runBaseline(context.Background(), kubeconfig); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const flips = 60

// BenchmarkClosing measures the time from a component's bad status, acknowledged
// by the API server, to Upgradeable=False, seen in a watch.
func BenchmarkClosing(b *testing.B) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		b.Fatal("this needs an API server: run `make bench`")
	}
	operator := build(b)
	for _, components := range []int{100, 1000} {
		b.Run(fmt.Sprintf("components=%d", components), func(b *testing.B) {
			for b.Loop() {
				compare(b, operator, components)
			}
		})
	}
}

func build(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "upgrade-gate-operator")
	output, err := exec.Command("go", "build", "-o", path, "../../cmd/upgrade-gate-operator").CombinedOutput()
	require.NoError(b, err, string(output))
	return path
}

// figures are what one program was measured at.
type figures struct {
	p50, p99 time.Duration
	resident float64
	writes   int
}

func compare(b *testing.B, operator string, components int) {
	w := newWorld(b, components)
	bare := w.measure(b, func() *process {
		self := exec.Command(os.Args[0])
		self.Env = append(os.Environ(), role+"="+w.kubeconfig)
		return start(b, self)
	})
	gated := w.measure(b, func() *process {
		w.gates(b, components)
		command := exec.Command(operator, "--kubeconfig", w.kubeconfig, "--namespace", namespace, "--leader-elect=false",
			"--metrics-bind-address=0", "--health-probe-bind-address=0")
		command.Env = append(os.Environ(), "OPERATOR_CONDITION_NAME="+conditionName)
		return start(b, command)
	})
	ratio := float64(gated.p99) / float64(bare.p99)
	b.ReportMetric(ratio, "p99-ratio")
	b.ReportMetric(gated.resident, "MiB")
	b.ReportMetric(float64(gated.writes), "writes/quiet-minute")
	fmt.Printf("\n%-14s %12s %10s %10s %10s %22s\n", "program", "components", "p50", "p99", "RSS MiB", "writes, quiet minute")
	for name, f := range map[string]figures{"bare loop": bare, "upgrade-gate": gated} {
		fmt.Printf("%-14s %12d %10s %10s %10.0f %22d\n", name, components,
			f.p50.Round(100*time.Microsecond), f.p99.Round(100*time.Microsecond), f.resident, f.writes)
	}
	fmt.Printf("p99 ratio %.2f\n\n", ratio)
}

// measure starts one program, turns components bad and good in turn, and stops
// it.
func (w *world) measure(b *testing.B, begin func() *process) figures {
	b.Helper()
	u := w.follow(b)
	p := begin()
	defer p.stop()
	u.until(b, "True")
	writes := w.writes(b, b.Context())
	var times []time.Duration
	for i := range flips {
		rest(writes)
		require.NoError(b, w.report(b.Context(), i%100, "False"))
		acknowledged := time.Now()
		times = append(times, max(0, u.until(b, "False").Sub(acknowledged)))
		require.NoError(b, w.report(b.Context(), i%100, "True"))
		u.until(b, "True")
	}
	slices.Sort(times)
	return figures{
		p50: times[len(times)/2], p99: times[len(times)*99/100],
		writes: quietMinute(b, writes), resident: p.resident(b),
	}
}

// rest returns once nothing has been written for a moment: what the last opening
// set in motion, for the API server too, is no part of the next closing.
func rest(writes <-chan struct{}) {
	const moment = 500 * time.Millisecond
	for {
		select {
		case <-writes:
		case <-time.After(moment):
			return
		}
	}
}

// writes delivers one value for each revision of what either program writes.
func (w *world) writes(b *testing.B, ctx context.Context) <-chan struct{} {
	b.Helper()
	ctx, cancel := context.WithCancel(ctx)
	b.Cleanup(cancel)
	writes := make(chan struct{}, 1000)
	for _, resource := range []schema.GroupVersionResource{operatorConditions, upgradeGates, events} {
		list, err := w.client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		require.NoError(b, err)
		watch, err := w.client.Resource(resource).Namespace(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
		require.NoError(b, err)
		go func() {
			defer watch.Stop()
			for range watch.ResultChan() {
				select {
				case writes <- struct{}{}:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	return writes
}

// quietMinute counts revisions of what either program writes while nothing
// happens.
func quietMinute(b *testing.B, writes <-chan struct{}) int {
	b.Helper()
	rest(writes)
	minute, count := time.After(time.Minute), 0
	for {
		select {
		case <-writes:
			count++
		case <-minute:
			return count
		}
	}
}
