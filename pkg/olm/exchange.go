package olm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apiv2 "github.com/operator-framework/api/pkg/operators/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
)

// The functions of this file need the Publisher's turn.

// look reads the object and learns from it.
func (p *Publisher) look(ctx context.Context) error {
	d, err := p.store.read(ctx)
	if err != nil {
		// That the caller gave up says nothing about the object.
		if ctx.Err() == nil {
			p.unreadable(err)
		}
		return err
	}
	p.learn(d)
	return nil
}

// unreadable forgets what was read: what OLM holds is not known any more.
func (p *Publisher) unreadable(err error) {
	p.memory.last, p.memory.troubled = nil, true
	reason, detail := p.store.problem(err)
	p.show(func(s *shown) {
		s.publication = gate.Publication{
			Mode:    s.publication.Mode,
			Name:    s.publication.Name,
			Problem: reason,
			Detail:  detail,
			Frozen:  s.publication.Frozen,

			Refusal:       s.publication.Refusal,
			RefusalDetail: s.publication.RefusalDetail,
		}
	})
}

// learn draws the conclusions from what the API server returned.
func (p *Publisher) learn(d document) {
	p.settleDoubt(d)
	p.noteForeign(d)
	p.forgive(d)
	p.memory.last, p.memory.uid = &d, d.object.GetUID()
	entry := d.entry()
	acknowledged := d.acknowledged(entry)
	p.show(func(s *shown) {
		s.publication = gate.Publication{
			Mode:            s.publication.Mode,
			Name:            s.publication.Name,
			ResourceVersion: d.object.GetResourceVersion(),
			Entry:           entry,
			Acknowledged:    acknowledged,
			Override:        d.override(),
			Frozen:          s.publication.Frozen,
			Refusal:         s.publication.Refusal,
			RefusalDetail:   s.publication.RefusalDetail,
		}
		s.acknowledged = s.acknowledged || acknowledged
		s.deployments = d.deployments()
	})
}

// settleDoubt ends the doubt about an opening write once the object has moved on:
// the write has had its effect, or never will.
func (p *Publisher) settleDoubt(d document) {
	doubt := p.memory.doubt
	if doubt == nil || d.object.GetResourceVersion() == doubt.resourceVersion {
		return
	}
	if !doubt.superseded && d.says(doubt.announcement) {
		p.memory.announced, p.memory.held = &doubt.announcement, &doubt.announcement
	}
	p.memory.doubt = nil
}

// forgive ends a Refusal once the object holds what was refused: the write had its
// effect although it got no answer, or another replica was faster. A process that
// has announced nothing asks for no more than that something is said.
func (p *Publisher) forgive(d document) {
	refused := p.memory.refused
	if refused == nil {
		return
	}
	if d.says(*refused) || p.memory.announced == nil && len(d.upgradeable()) > 0 {
		p.accepted()
	}
}

func (p *Publisher) accepted() {
	p.memory.refused = nil
	p.show(func(s *shown) { s.publication.Refusal, s.publication.RefusalDetail = "", "" })
}

// noteForeign reports what somebody else made of our entry, once. An object that
// was created anew has lost its entry by itself.
func (p *Publisher) noteForeign(d document) {
	m := &p.memory
	if m.held == nil || p.own(d) {
		m.foreign = ""
		return
	}
	found := d.upgradeable()
	if len(found) == 0 && d.object.GetUID() != m.uid {
		return
	}
	content := fmt.Sprintf("%+v", found)
	if content == m.foreign {
		return
	}
	m.foreign = content
	var heard gate.Announcement
	if len(found) > 0 {
		heard = found[len(found)-1].announcement()
	}
	p.config.Log.Info("somebody else changed what OLM is told", "operatorCondition", p.store.key.String(),
		"entries", len(found), "open", heard.Open, "reason", heard.Reason)
	if p.config.ForeignWrite != nil {
		p.config.ForeignWrite(heard)
	}
}

// own reports whether the entry is of this process, or one of those that any
// replica may write.
func (p *Publisher) own(d document) bool {
	candidates := []gate.Announcement{
		initializing(p.config.Namespace, p.config.Name),
		stopped(p.config.Namespace, p.config.Name),
	}
	for _, a := range []*gate.Announcement{p.memory.announced, p.memory.sent, p.memory.held} {
		if a != nil {
			candidates = append(candidates, *a)
		}
	}
	return slices.ContainsFunc(candidates, d.says)
}

// write makes a true in one request that is bound to what was last read; it needs
// memory.last. Nothing is sent when nothing differs. Whatever goes wrong, memory
// is forgotten, so that the next write starts with a read.
func (p *Publisher) write(ctx context.Context, a gate.Announcement) error {
	if p.Publication().Frozen {
		return ErrFrozen
	}
	last := p.memory.last
	// A closing write must end an open doubt even if the entry already says the
	// same: it moves the resource version, so that the opening cannot land later.
	body, err := last.patch(change{
		kind:   apiv2.Upgradeable,
		want:   announce(a),
		now:    p.config.Clock.Now(),
		always: p.memory.doubt != nil && !a.Open,
	})
	if err != nil {
		return err
	}
	if body == nil {
		p.settle(a)
		return nil
	}
	if err := p.permitted(ctx, a.Open); err != nil {
		return err
	}
	p.memory.sent = &a
	d, err := p.store.patch(ctx, body)
	if err != nil {
		p.failed(err, a, last.object.GetResourceVersion())
		return err
	}
	p.wakeLoop()
	p.memory.doubt, p.memory.foreign = nil, ""
	p.settle(a)
	p.learn(d)
	p.config.Log.Info("told OLM", "operatorCondition", p.store.key.String(),
		"upgradeable", string(a.Status()), "reason", a.Reason, "message", a.Message)
	return nil
}

// settle notes that the object holds a. What a standby wrote is not held by it:
// the leader, another process, may change that at will.
func (p *Publisher) settle(a gate.Announcement) {
	if p.memory.announced != nil {
		p.memory.held = &a
	}
	p.accepted()
}

func (p *Publisher) failed(err error, a gate.Announcement, resourceVersion string) {
	p.memory.last = nil
	if a.Open && !rejected(err) {
		p.memory.doubt = &doubt{announcement: a, resourceVersion: resourceVersion}
	}
	if apierrors.IsConflict(err) {
		return
	}
	if apierrors.IsNotFound(err) {
		p.unreadable(err)
	}
	p.memory.refused = &a
	reason, detail := p.store.problem(err)
	p.show(func(s *shown) { s.publication.Refusal, s.publication.RefusalDetail = reason, detail })
}

// permitted is the freeze check. If it cannot be made, opening is refused, and
// closing goes on: a False too many can be overridden, a True too many cannot be
// taken back.
func (p *Publisher) permitted(ctx context.Context, open bool) error {
	if p.config.Owner == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, p.config.RequestTimeout)
	defer cancel()
	frozen, err := p.config.Owner.Check(limited)
	if frozen {
		p.show(func(s *shown) { s.publication.Frozen = true })
		return ErrFrozen
	}
	if err != nil && open {
		return fmt.Errorf("finding out whether our Deployment is still ours: %w", err)
	}
	return nil
}

// show changes what can be asked, and logs the transitions in it.
func (p *Publisher) show(update func(*shown)) {
	p.mu.Lock()
	before := p.shown
	update(&p.shown)
	after := p.shown
	p.mu.Unlock()
	p.report(before, after)
}

// report logs what changed; nothing does in most reads.
func (p *Publisher) report(before, after shown) {
	log := p.config.Log.WithValues("operatorCondition", p.store.key.String())
	was, is := before.publication, after.publication
	if !was.Frozen && is.Frozen {
		log.Info("frozen", "why", ErrFrozen.Error())
	}
	if was.Problem != is.Problem && is.Problem != "" {
		log.Info("cannot see what OLM is told", "reason", is.Problem, "detail", is.Detail)
	}
	if was.Problem != "" && is.Problem == "" {
		log.Info("can see again what OLM is told")
	}
	if is.Acknowledged && (!was.Acknowledged || *was.Entry != *is.Entry) {
		log.Info("OLM has acknowledged", "upgradeable", string(is.Entry.Status()), "reason", is.Entry.Reason)
	}
	if was.Problem == "" && is.Problem == "" && was.Override != is.Override {
		log.Info("an administrator's override changed", "from", was.Override, "to", is.Override)
	}
	if is.Refusal != "" && was.RefusalDetail != is.RefusalDetail {
		log.Info("could not tell OLM", "reason", is.Refusal, "detail", is.RefusalDetail)
	}
}

// wakeLoop makes the loop look soon; it never waits.
func (p *Publisher) wakeLoop() {
	select {
	case p.written <- struct{}{}:
	default:
	}
}

// matters reports whether two publications differ in what a decision, or the
// report of one, can depend on.
func matters(a, b gate.Publication) bool {
	if (a.Entry == nil) != (b.Entry == nil) || a.Entry != nil && *a.Entry != *b.Entry {
		return true
	}
	a.Entry, b.Entry = nil, nil
	a.ResourceVersion, b.ResourceVersion = "", ""
	return a != b
}

// frozenIsFine turns ErrFrozen into success, for writes that nobody asked for.
func frozenIsFine(err error) error {
	if errors.Is(err, ErrFrozen) {
		return nil
	}
	return err
}
