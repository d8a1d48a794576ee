package olm

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
)

// Ready is a health check for /readyz. It depends neither on components nor on
// leadership, because OLM fails an install whose pods are not Ready in time.
//
// Under OLM v0 it returns nil once OLM has acknowledged an entry in this process,
// while the loop's last successful read is recent: our pod being Ready is all
// that makes OLM call this version Succeeded, after which the next one may pass
// an empty OperatorCondition. Else it returns nil once the loop runs. The error
// names what is missing.
func (p *Publisher) Ready(*http.Request) error {
	p.mu.RLock()
	s := p.shown
	p.mu.RUnlock()
	if !s.started {
		return errors.New("the publishing loop has not started")
	}
	if !p.enforced() {
		return nil
	}
	if !s.acknowledged {
		return errors.New(p.unacknowledged(s))
	}
	if since := p.config.Clock.Since(s.lastRead); s.lastRead.IsZero() || since > p.config.StaleAfter {
		return fmt.Errorf("OperatorCondition %s was not read for %s%s", p.store.key, p.config.StaleAfter, after(s.publication.Detail))
	}
	return nil
}

// unacknowledged says why OLM may not have acknowledged anything. OLM copies
// nothing before it has found all Deployments of the ClusterServiceVersion by
// their label (operator-lifecycle-manager,
// pkg/controller/operators/operatorcondition_controller.go).
func (p *Publisher) unacknowledged(s shown) string {
	publication := s.publication
	switch {
	case publication.Frozen:
		return ErrFrozen.Error()
	case publication.Problem == v1alpha1.ReasonForbidden || publication.Problem == v1alpha1.ReasonOperatorConditionNotFound:
		return publication.Problem + after(publication.Detail)
	case publication.Problem != "":
		return "cannot read what OLM holds" + after(publication.Detail)
	case publication.Refusal != "":
		return "cannot tell OLM anything" + after(publication.RefusalDetail)
	case publication.ResourceVersion == "":
		return fmt.Sprintf("OperatorCondition %s has not been read yet", p.store.key)
	case publication.Entry == nil:
		return fmt.Sprintf("OperatorCondition %s has no Upgradeable entry that can be used", p.store.key)
	}
	text := fmt.Sprintf("OLM has not acknowledged OperatorCondition %s", p.store.key)
	if len(s.deployments) > 0 {
		text += "; it waits while one of these Deployments is missing or lacks the label olm.managed=true: " +
			strings.Join(s.deployments, ", ")
	}
	return text
}

func after(detail string) string {
	if detail == "" {
		return ""
	}
	return ": " + detail
}
