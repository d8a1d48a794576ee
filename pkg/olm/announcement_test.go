package olm_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"

	"github.com/upgrade-gate/upgrade-gate/pkg/olm"
)

func TestOverrideCommand(t *testing.T) {
	require.Equal(t, `kubectl -n platform-system patch operatorcondition gate.v1.0.0 --type merge -p `+
		`'{"spec":{"overrides":[{"type":"Upgradeable","status":"True","reason":"AdminOverride","message":"approved by an administrator"}]}}'`,
		olm.OverrideCommand("platform-system", "gate.v1.0.0"))
}

func TestTheOverrideCommandIsNeverCut(t *testing.T) {
	f := newFixture(t)
	w := f.watch(nil)
	f.idle(w)
	message := w.Publication().Entry.Message
	require.True(t, strings.HasSuffix(message, olm.OverrideCommand(f.namespace, conditionName)), message)
}

// One line for each transition, and none for what stays as it is.
func TestLogLines(t *testing.T) {
	f := newFixture(t)
	var mu sync.Mutex
	var lines []string
	w := f.watch(func(c *olm.Config) {
		c.Log = funcr.New(func(_, args string) {
			mu.Lock()
			defer mu.Unlock()
			line, _, _ := strings.Cut(strings.TrimPrefix(args, `"level"=0 "msg"=`), `" "`)
			lines = append(lines, strings.Trim(line, `"`))
		}, funcr.Options{})
	})
	f.idle(w)
	f.patchStatus(status(`{"type":"Upgradeable","status":"False","observedGeneration":2}`))
	f.rounds(w, 3)
	require.NoError(t, w.Close(t.Context(), closed("Held", "h")))
	f.operator.atGet(func(context.Context, func() error) error { return context.DeadlineExceeded })
	f.rounds(w, 3)
	f.operator.atGet(nil)
	f.rounds(w, 3)
	f.patch(`{"spec":{"overrides":[{"type":"Upgradeable","status":"True","reason":"X","message":""}]}}`)
	f.rounds(w, 3)
	f.operator.atPatch(func(context.Context, string, func() error) error { return forbidden })
	f.patch(one("True"))
	f.rounds(w, 3)
	f.operator.atPatch(nil)
	f.rounds(w, 3)
	w.stop()
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, []string{
		"told OLM",
		"OLM has acknowledged",
		"told OLM",
		"cannot see what OLM is told",
		"can see again what OLM is told",
		"an administrator's override changed",
		"somebody else changed what OLM is told",
		"could not tell OLM",
		"told OLM",
	}, lines)
}
