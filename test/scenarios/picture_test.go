package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// picture is what was there when a scenario failed, for whoever has to find out
// why: short enough to be read.
func (s *scenario) picture() string {
	var out strings.Builder
	history := s.history()
	history.Prepare()
	fmt.Fprintf(&out, "namespace %s; what OperatorConditions and gates said, by revision:\n", s.ns)
	before, components := map[string]string{}, map[string]string{}
	for _, r := range history.Revisions {
		name, what := r.Key.Kind+"/"+r.Key.Name, said(r.Object)
		if r.Key.Kind != "OperatorCondition" && r.Key.Kind != "UpgradeGate" {
			components[name] = what
			continue
		}
		if before[name] != what {
			fmt.Fprintf(&out, "  %s %d %s %s\n", clock(r.Seen), r.RV, name, what)
		}
		before[name] = what
	}
	out.WriteString("the components at the end:\n")
	var lines []string
	for name, what := range components {
		lines = append(lines, "  "+name+" "+what)
	}
	slices.Sort(lines)
	out.WriteString(strings.Join(lines[:min(len(lines), 10)], "\n"))
	out.WriteString("\nthe operators' last requests, without those for Leases:\n")
	lines = nil
	for _, r := range s.proxy.since(time.Time{}) {
		if r.group != "coordination.k8s.io" {
			lines = append(lines, fmt.Sprintf("  %s %s", clock(r.at), r))
		}
	}
	out.WriteString(strings.Join(lines[max(0, len(lines)-25):], "\n"))
	for _, p := range s.started {
		fmt.Fprintf(&out, "\nthe last lines of operator %q:\n%s", p.name, p.log.last(15))
	}
	return out.String()
}

func clock(t time.Time) string { return t.Format("15:04:05.000") }

// said is the short form of an object for people.
func said(object map[string]any) string {
	if object == nil {
		return "is gone"
	}
	var parts []string
	for _, path := range [][]string{{"spec", "overrides"}, {"spec", "conditions"}, {"status", "conditions"}, {"status", "components"}} {
		found := entriesOf(object, "", path...)
		if len(found) > 8 {
			parts = append(parts, fmt.Sprintf("%s: %d entries", strings.Join(path, "."), len(found)))
			continue
		}
		for i, e := range found {
			text := e.String()
			if i == 0 {
				text = strings.Join(path, ".") + " " + text
			}
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ", ")
}

// shortened cuts a message for people: what is said first is what counts.
func shortened(text string) string {
	text, _, _ = strings.Cut(text, "; to override:")
	if len(text) > 120 {
		return text[:120] + "..."
	}
	return text
}
