package scenarios

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/upgrade-gate/upgrade-gate/test/scenarios/judge"
)

var (
	operatorConditions = schema.GroupVersionResource{Group: "operators.coreos.com", Version: "v2", Resource: "operatorconditions"}
	upgradeGates       = schema.GroupVersionResource{Group: "upgradegate.io", Version: "v1alpha1", Resource: "upgradegates"}
	widgets            = schema.GroupVersionResource{Group: "test.example.com", Version: "v1", Resource: "widgets"}
	deployments        = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

	alwaysRecorded = []schema.GroupVersionResource{operatorConditions, upgradeGates, widgets, deployments}
)

// recorder keeps every revision of the recorded kinds, in all namespaces, by one
// watch per kind from a known resourceVersion on.
type recorder struct {
	ctx    context.Context
	client dynamic.Interface

	mu        sync.Mutex
	revisions []judge.Revision
	latest    map[judge.Key]judge.Revision
	recording map[schema.GroupResource]schema.GroupVersionResource
}

func newRecorder(ctx context.Context, client dynamic.Interface) *recorder {
	return &recorder{
		ctx: ctx, client: client,
		latest: map[judge.Key]judge.Revision{}, recording: map[schema.GroupResource]schema.GroupVersionResource{},
	}
}

// record starts recording a kind; when it returns, nothing of it is missed.
func (r *recorder) record(kind schema.GroupVersionResource) error {
	r.mu.Lock()
	_, already := r.recording[kind.GroupResource()]
	r.recording[kind.GroupResource()] = kind
	r.mu.Unlock()
	if already {
		return nil
	}
	rv, err := r.list(kind)
	if err != nil {
		return fmt.Errorf("record %s: %w", kind.Resource, err)
	}
	go r.follow(kind, rv)
	return nil
}

// list takes in the present state and returns its resourceVersion. After the
// first time it closes the gap that a broken watch leaves: each object's newest
// state is recorded at its own revision, what came between is lost.
func (r *recorder) list(kind schema.GroupVersionResource) (string, error) {
	list, err := r.client.Resource(kind).List(r.ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	present := map[judge.Key]bool{}
	for i := range list.Items {
		present[keyOf(&list.Items[i])] = true
		r.add(&list.Items[i], false)
	}
	rv, _ := strconv.ParseInt(list.GetResourceVersion(), 10, 64)
	for key, last := range r.latest {
		if key.Group == kind.Group && last.Object != nil && !present[key] && list.GetKind() == key.Kind+"List" {
			r.append(judge.Revision{Key: key, RV: rv, Seen: time.Now()})
		}
	}
	return list.GetResourceVersion(), nil
}

// follow watches until the recorder ends, and lists anew when a watch cannot be
// continued, as when the kind was removed and installed again.
func (r *recorder) follow(kind schema.GroupVersionResource, rv string) {
	for r.ctx.Err() == nil {
		w, err := r.client.Resource(kind).Watch(r.ctx, metav1.ListOptions{ResourceVersion: rv, AllowWatchBookmarks: true})
		if err == nil {
			rv = r.drain(w, rv)
		}
		if err != nil || rv == "" {
			time.Sleep(100 * time.Millisecond)
			if fresh, err := r.list(kind); err == nil {
				rv = fresh
			}
		}
	}
}

// drain returns the resourceVersion to continue from; empty when it cannot be.
func (r *recorder) drain(w watch.Interface, rv string) string {
	defer w.Stop()
	for event := range w.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == watch.Error {
			return ""
		}
		rv = object.GetResourceVersion()
		if event.Type == watch.Bookmark {
			continue
		}
		r.mu.Lock()
		r.add(object, event.Type == watch.Deleted)
		r.mu.Unlock()
	}
	return rv
}

func (r *recorder) add(object *unstructured.Unstructured, deleted bool) {
	rv, _ := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	revision := judge.Revision{Key: keyOf(object), RV: rv, Seen: time.Now(), Object: object.Object}
	if deleted {
		revision.Object = nil
	}
	r.append(revision)
}

func (r *recorder) append(revision judge.Revision) {
	if revision.RV <= r.latest[revision.Key].RV {
		return
	}
	r.latest[revision.Key] = revision
	r.revisions = append(r.revisions, revision)
}

func keyOf(object *unstructured.Unstructured) judge.Key {
	return judge.Key{
		Group: object.GroupVersionKind().Group, Kind: object.GetKind(),
		Namespace: object.GetNamespace(), Name: object.GetName(),
	}
}

// now returns the newest state of an object; nil when it is gone or unknown.
func (r *recorder) now(key judge.Key) *unstructured.Unstructured {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.latest[key]; last.Object != nil {
		return &unstructured.Unstructured{Object: last.Object}
	}
	return nil
}

// newest is the resourceVersion of the object's newest known state.
func (r *recorder) newest(key judge.Key) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest[key].RV
}

// in returns what was recorded in these namespaces.
func (r *recorder) in(namespaces map[string]bool) []judge.Revision {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []judge.Revision
	for _, revision := range r.revisions {
		if namespaces[revision.Key.Namespace] {
			out = append(out, revision)
		}
	}
	return out
}

// catchUp waits until everything that is stored now in the namespace has been
// recorded.
func (r *recorder) catchUp(ctx context.Context, namespace string) error {
	r.mu.Lock()
	kinds := slices.Collect(maps.Values(r.recording))
	r.mu.Unlock()
	for _, kind := range kinds {
		list, err := r.client.Resource(kind).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		for i := range list.Items {
			object := &list.Items[i]
			rv, _ := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
			for r.newest(keyOf(object)) < rv {
				select {
				case <-ctx.Done():
					return fmt.Errorf("the recorder missed %s %s at revision %d", object.GetKind(), object.GetName(), rv)
				case <-time.After(10 * time.Millisecond):
				}
			}
		}
	}
	return nil
}
