package upgradegate

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
)

func TestMetricsSayWhatTheStatusesSay(t *testing.T) {
	w := newWorld(t)
	registry := prometheus.NewRegistry()
	w.reconciler.Metrics = NewMetrics(registry)
	w.gate("platform", 0, "a", "b")
	w.both("a", green(1))
	w.both("b", stale())
	w.pass()
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP upgradegate_component_ready 1 while the component is proven ready; 0 while it is not, or cannot be judged.
# TYPE upgradegate_component_ready gauge
upgradegate_component_ready{component="a",gate="platform"} 1
upgradegate_component_ready{component="b",gate="platform"} 0
# HELP upgradegate_foreign_writes_total How often somebody else changed what OLM is told.
# TYPE upgradegate_foreign_writes_total counter
upgradegate_foreign_writes_total 0
# HELP upgradegate_gate_open 1 while the gate is open, 0 while it is closed.
# TYPE upgradegate_gate_open gauge
upgradegate_gate_open{gate="platform"} 0
# HELP upgradegate_open 1 while OLM is to be told Upgradeable=True, 0 while False.
# TYPE upgradegate_open gauge
upgradegate_open 0
# HELP upgradegate_override_active 1 while an administrator's override of Upgradeable is in force.
# TYPE upgradegate_override_active gauge
upgradegate_override_active 0
`)))

	w.olm.held.Override = "True"
	w.reconciler.ForeignWrite(t.Context(), gate.Announcement{Open: true})
	require.NoError(t, w.client.Delete(t.Context(), w.stored("platform")))
	w.pass()
	w.pass()
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP upgradegate_foreign_writes_total How often somebody else changed what OLM is told.
# TYPE upgradegate_foreign_writes_total counter
upgradegate_foreign_writes_total 1
# HELP upgradegate_open 1 while OLM is to be told Upgradeable=True, 0 while False.
# TYPE upgradegate_open gauge
upgradegate_open 1
# HELP upgradegate_override_active 1 while an administrator's override of Upgradeable is in force.
# TYPE upgradegate_override_active gauge
upgradegate_override_active 1
`)), "what is gone has no series")
}
