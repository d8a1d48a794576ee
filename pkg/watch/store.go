package watch

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/upgrade-gate/upgrade-gate/pkg/component"
)

// store is what a reflector fills: it drops what is not wanted and passes the
// snapshots of the rest on to its session.
type store struct {
	session *session
	// keys are the wanted objects; true for those wanted whole.
	keys map[types.NamespacedName]bool
}

var (
	_ cache.ReflectorStore    = (*store)(nil)
	_ cache.TransformingStore = (*store)(nil)
)

// kept stands for a wanted object, dropped for one that is not.
type (
	kept struct {
		key      types.NamespacedName
		snapshot *component.Snapshot
	}
	dropped struct{}
)

// Transformer makes the reflector collect the first list in the small form, so
// that a kind with very many objects does not have to fit into memory.
func (st *store) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return st.reduce(object), nil }
}

func (st *store) reduce(object any) any {
	switch o := object.(type) {
	case kept:
		return o
	case *unstructured.Unstructured:
		key := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
		if whole, wanted := st.keys[key]; wanted {
			return kept{key: key, snapshot: component.Decode(o.Object, whole)}
		}
	}
	return dropped{}
}

// Replace implements cache.ReflectorStore.
func (st *store) Replace(objects []any, _ string) error {
	found := make(map[types.NamespacedName]*component.Snapshot, len(st.keys))
	for _, object := range objects {
		if k, ok := st.reduce(object).(kept); ok {
			found[k.key] = k.snapshot
		}
	}
	st.session.listed(found)
	return nil
}

// Add implements cache.ReflectorStore.
func (st *store) Add(object any) error {
	if k, ok := st.reduce(object).(kept); ok {
		st.session.put(k.key, k.snapshot)
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (st *store) Update(object any) error { return st.Add(object) }

// Delete implements cache.ReflectorStore.
func (st *store) Delete(object any) error {
	if k, ok := st.reduce(object).(kept); ok {
		st.session.put(k.key, nil)
	}
	return nil
}

// Resync implements cache.ReflectorStore; there is nothing to repeat.
func (st *store) Resync() error { return nil }

// listWatch returns the requests of a session's reflector. about describes them
// but for the verb.
func (s *session) listWatch(client dynamic.ResourceInterface, about call) *cache.ListWatch {
	failed := func(verb string, err error) error {
		c := about
		c.verb = verb
		return &callError{call: c, err: err}
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			s.watching(false)
			if options.ResourceVersion == "0" {
				// 0 may be served from a cache that lags, with a status older
				// than one that was already seen.
				options.ResourceVersion = ""
			}
			list, err := client.List(ctx, options)
			if err != nil {
				return nil, failed("list", err)
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			w, err := client.Watch(ctx, options)
			if err != nil {
				return nil, failed("watch", err)
			}
			s.watching(true)
			return w, nil
		},
	}
}
