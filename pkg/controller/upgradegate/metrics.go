package upgradegate

import (
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
)

// Metrics are made of the same decision as the statuses, so that they cannot
// disagree with them. Labels are names from gates' specs only.
type Metrics struct {
	open, override prometheus.Gauge
	gateOpen       *prometheus.GaugeVec
	componentReady *prometheus.GaugeVec
	foreignWrites  prometheus.Counter
	// shown are the label values of the last pass, so that only what is gone is
	// removed and a scrape in the middle of a pass misses nothing.
	shown map[[2]string]bool
}

// NewMetrics makes the metrics and registers them; it panics when they are
// registered twice, which is a bug.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "upgradegate_open", Help: "1 while OLM is to be told Upgradeable=True, 0 while False."}),
		override: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "upgradegate_override_active", Help: "1 while an administrator's override of Upgradeable is in force."}),
		gateOpen: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "upgradegate_gate_open", Help: "1 while the gate is open, 0 while it is closed."}, []string{"gate"}),
		componentReady: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "upgradegate_component_ready",
			Help: "1 while the component is proven ready; 0 while it is not, or cannot be judged."}, []string{"gate", "component"}),
		foreignWrites: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "upgradegate_foreign_writes_total", Help: "How often somebody else changed what OLM is told."}),
	}
	registry.MustRegister(m.open, m.override, m.gateOpen, m.componentReady, m.foreignWrites)
	return m
}

func (m *Metrics) show(p *pass, held gate.Publication) {
	m.open.Set(number(p.told.Open))
	m.override.Set(number(held.Override != ""))
	now := map[[2]string]bool{}
	for _, g := range p.gates {
		m.gateOpen.WithLabelValues(g.object.Name).Set(number(g.decision.Open))
		now[[2]string{g.object.Name}] = true
		for _, a := range g.input.Assessments {
			m.componentReady.WithLabelValues(g.object.Name, a.Name).Set(number(a.Ready == metav1.ConditionTrue))
			now[[2]string{g.object.Name, a.Name}] = true
		}
	}
	for labels := range m.shown {
		switch {
		case now[labels]:
		case labels[1] == "":
			m.gateOpen.DeleteLabelValues(labels[0])
		default:
			m.componentReady.DeleteLabelValues(labels[0], labels[1])
		}
	}
	m.shown = now
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
