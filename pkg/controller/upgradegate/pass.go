package upgradegate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
	"github.com/upgrade-gate/upgrade-gate/pkg/probe"
)

// memory is what this process remembers of a gate between passes.
type memory struct {
	generation int64
	prepared   []probe.Prepared
	invalid    string
	settle     gate.Settle
	written    written
}

// judged is one gate in one pass.
type judged struct {
	object *v1alpha1.UpgradeGate
	// generation is the one read at the start of the pass; the status is stamped
	// with it.
	generation int64
	memory     *memory
	input      gate.Input
	decision   gate.Decision
}

// pass is one look at all gates.
type pass struct {
	now   time.Time
	gates []*judged
	told  gate.Announcement
	// inherit is set in the first complete evaluation of a process when OLM has
	// already acknowledged True.
	inherit bool
	// live is set when the components were read from the API server.
	live   bool
	policy gate.Policy
}

// begin reads the gates from the cache and prepares what changed in them. They are
// shared with the cache and not changed: a gate of 500 components is copied only
// when it is written.
func (r *Reconciler) begin(ctx context.Context) (*pass, error) {
	var list v1alpha1.UpgradeGateList
	if err := r.Client.List(ctx, &list, client.InNamespace(r.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing UpgradeGates in namespace %s: %w", r.Namespace, err)
	}
	now := r.Clock.Now()
	if r.start.IsZero() {
		r.start = now
	}
	if held := r.Publisher.Publication(); !r.evaluated && (held.ResourceVersion == "" || held.Problem != "") {
		// What OLM holds decides how the first evaluation ends. If it cannot be
		// read, nothing is inherited, and closing goes on retrying.
		if _, err := r.Publisher.Refresh(ctx); err != nil {
			r.Log.V(1).Info("cannot read what OLM holds", "error", err.Error())
		}
	}
	return r.newPass(list.Items, now), nil
}

func (r *Reconciler) newPass(items []v1alpha1.UpgradeGate, now time.Time) *pass {
	held := r.Publisher.Publication()
	p := &pass{now: now, policy: r.Policy}
	p.inherit = !r.evaluated && held.Acknowledged && held.Entry != nil && held.Entry.Open
	slices.SortFunc(items, func(a, b v1alpha1.UpgradeGate) int { return strings.Compare(a.Name, b.Name) })
	known := make(map[types.UID]*memory, len(items))
	for i := range items {
		object := &items[i]
		m := r.remember(object)
		known[object.UID] = m
		object = m.written.newest(object)
		p.gates = append(p.gates, &judged{object: object, generation: object.Generation, memory: m})
	}
	r.memory = known
	return p
}

// remember returns the memory of a gate with its components prepared for the
// generation that the object has.
func (r *Reconciler) remember(object *v1alpha1.UpgradeGate) *memory {
	m, ok := r.memory[object.UID]
	if !ok {
		m = &memory{generation: -1}
	}
	if m.generation == object.Generation {
		return m
	}
	m.generation, m.invalid, m.prepared = object.Generation, "", nil
	if object.Spec.Components == nil {
		m.invalid = fmt.Sprintf("UpgradeGate %s: spec.components is missing: list the components, or [] for none", object.Name)
		return m
	}
	prepared, problems := r.Probes.Prepare(object.Spec.Components, r.Namespace)
	m.prepared = prepared
	if err := problems.ToAggregate(); err != nil {
		m.prepared = nil
		m.invalid = fmt.Sprintf("UpgradeGate %s: %s", object.Name, err.Error())
	}
	return m
}

func (p *pass) targets() []component.Target {
	var targets []component.Target
	for _, g := range p.gates {
		if g.object.DeletionTimestamp != nil {
			continue
		}
		for _, prepared := range g.memory.prepared {
			targets = append(targets, prepared.Targets()...)
		}
	}
	return targets
}

// judge observes every component through the reader, and decides.
func (p *pass) judge(ctx context.Context, reader probe.Reader) {
	decisions := make([]gate.Named, 0, len(p.gates))
	for _, g := range p.gates {
		g.assess(ctx, reader)
		p.decide(g)
		decisions = append(decisions, gate.Named{Gate: g.object.Name, Decision: g.decision, Required: g.required()})
	}
	p.told = gate.Combine(decisions, p.policy)
}

func (g *judged) assess(ctx context.Context, reader probe.Reader) {
	spec := g.object.Spec
	g.input = gate.Input{Deleting: g.object.DeletionTimestamp != nil, Invalid: g.memory.invalid}
	if spec.Hold != nil {
		g.input.Hold = &spec.Hold.Message
	}
	g.input.MinReady = minReady(spec)
	if g.input.Deleting || g.input.Invalid != "" {
		return
	}
	observations := gather(ctx, g.memory.prepared, reader)
	for i, c := range spec.Components {
		g.input.Assessments = append(g.input.Assessments, component.Assess(c, observations[i]))
	}
	g.input.Assessed = true
}

// defaultMinReady is the CRD's default, for an object that a client made without
// it.
const defaultMinReady = 10 * time.Second

func minReady(spec v1alpha1.UpgradeGateSpec) time.Duration {
	if spec.MinReadySeconds == nil {
		return defaultMinReady
	}
	return time.Duration(*spec.MinReadySeconds) * time.Second
}

func (p *pass) decide(g *judged) {
	if g.input.Assessed {
		if p.inherit && p.wouldOpen(g) {
			g.memory.settle = gate.Settled(g.input.Assessments, p.now)
		} else {
			g.memory.settle = g.memory.settle.Next(p.seen(g), p.now)
		}
		g.input.ReadyFor = g.memory.settle.ReadyFor(p.now)
	}
	g.decision = gate.Decide(g.input)
}

// seen are the assessments that tell how long components have been ready. A live
// read that failed says nothing about that: it keeps the gate closed, and what the
// watch knows still counts.
func (p *pass) seen(g *judged) []component.Assessment {
	if !p.live {
		return g.input.Assessments
	}
	seen := slices.Clone(g.input.Assessments)
	for i, a := range seen {
		switch a.Reason {
		case v1alpha1.ReasonForbidden, v1alpha1.ReasonProbeFailed, v1alpha1.ReasonProbeTimedOut:
			seen[i] = g.memory.settle.Kept(a)
		}
	}
	return seen
}

// wouldOpen reports whether the gate is open but for the settle window.
func (p *pass) wouldOpen(g *judged) bool {
	in := g.input
	in.ReadyFor = in.MinReady
	return gate.Decide(in).Open
}

func (g *judged) required() int {
	n := 0
	for _, c := range g.object.Spec.Components {
		if !c.Optional {
			n++
		}
	}
	return n
}

// complete reports whether every required component has been read, or cannot be.
func (p *pass) complete() bool {
	for _, g := range p.gates {
		for _, a := range g.input.Assessments {
			if a.Blocks() && a.Reason == v1alpha1.ReasonInitializing {
				return false
			}
		}
	}
	return true
}

// bad reports whether a gate is closed for another reason than components that
// were not read yet, or the wait for them.
func (p *pass) bad() bool {
	for _, g := range p.gates {
		switch g.decision.Reason {
		case v1alpha1.ReasonInitializing, v1alpha1.ReasonSettling, v1alpha1.ReasonAllComponentsReady, v1alpha1.ReasonNoComponents:
		default:
			return true
		}
	}
	return false
}

// report is what the gate's status is made of.
func (p *pass) report(g *judged, held gate.Publication, version string) gate.Report {
	return gate.Report{
		Generation: g.generation, Now: metav1.NewTime(p.now), OperatorVersion: version,
		Input: g.input, Decision: g.decision, Told: p.told, Held: held,
	}
}
