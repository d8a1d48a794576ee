package upgradegate

import (
	"context"
	"sync"

	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/probe"
)

// gather observes every prepared component, in order. The reader answers from
// memory, so there is nothing to wait for.
func gather(ctx context.Context, prepared []probe.Prepared, reader probe.Reader) []component.Observation {
	observations := make([]component.Observation, len(prepared))
	for i, p := range prepared {
		observations[i] = p.Observe(ctx, reader)
	}
	return observations
}

// liveReads is how many components are read at once before an opening; more
// would only queue in the API server.
const liveReads = 16

// readAhead reads the targets live, several at a time, and answers from what it
// read. A target that the context's end cut off is unread, and so not ready.
func readAhead(ctx context.Context, targets []component.Target, live probe.Reader) probe.Reader {
	found := make(readings, len(targets))
	var mutex sync.Mutex
	var group sync.WaitGroup
	slots := make(chan struct{}, liveReads)
	for _, target := range targets {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			reading := live.Read(ctx, target)
			mutex.Lock()
			defer mutex.Unlock()
			found[target] = reading
		})
	}
	group.Wait()
	return found
}

type readings map[component.Target]component.Reading

// Read answers from memory.
func (r readings) Read(_ context.Context, target component.Target) component.Reading {
	return r[target]
}
