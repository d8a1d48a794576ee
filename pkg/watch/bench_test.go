package watch_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/watch"
)

// BenchmarkMemory reports what 1,000 wanted objects, among 1,000 others, cost on
// the heap once they are watched, and how long that takes.
func BenchmarkMemory(b *testing.B) {
	objects, found := clientsFor(b, plane.Config)
	const namespace = "default"
	widgets := objects.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}).Namespace(namespace)
	wanted := make([]component.Target, 0, 1_000)
	for i := range 2_000 {
		name := fmt.Sprintf("bench-%d", i)
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"text": fmt.Sprintf("%02000d", i)}}}
		object.SetGroupVersionKind(gvk("Widget"))
		object.SetName(name)
		created, err := widgets.Create(b.Context(), object, metav1.CreateOptions{})
		require.NoError(b, err)
		conditions := make([]any, 4)
		for j := range conditions {
			conditions[j] = map[string]any{
				"type": fmt.Sprintf("Condition%d", j), "status": "True", "reason": "AllIsWell", "observedGeneration": int64(1),
				"message": fmt.Sprintf("object %d says that its condition %d is as it should be", i, j), "lastTransitionTime": "2026-01-02T03:04:05Z",
			}
		}
		created.Object["status"] = map[string]any{"observedGeneration": int64(1), "conditions": conditions}
		_, err = widgets.UpdateStatus(b.Context(), created, metav1.UpdateOptions{})
		require.NoError(b, err)
		if i%2 == 0 {
			wanted = append(wanted, component.Target{GVK: gvk("Widget"), DefaultNamespace: namespace, Name: name})
		}
	}
	for b.Loop() {
		before := heap()
		synced := make(chan struct{}, 1_000)
		m := watch.New(watch.Config{Client: objects, Discovery: found, Changed: func() {
			select {
			case synced <- struct{}{}:
			default:
			}
		}})
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan error, 1)
		go func() { done <- m.Start(ctx) }()
		began := time.Now()
		m.Want(wanted)
		for m.Read(ctx, wanted[999]).Access != component.AccessFound {
			<-synced
		}
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms-to-sync")
		b.ReportMetric(float64(heap()-before)/1024, "KiB/1000-objects")
		runtime.KeepAlive(m)
		cancel()
		require.NoError(b, <-done)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
