package watch

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/upgrade-gate/upgrade-gate/pkg/component"
)

// Discovery says what a group and version serves, from the API server and not
// from a cache. client-go's *discovery.DiscoveryClient is one.
type Discovery interface {
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
}

// placement is where the objects of a kind are found.
type placement struct {
	resource   schema.GroupVersionResource
	namespaced bool
	verbs      string
}

// discover asks the API server where the objects of gvk are found.
func discover(ctx context.Context, d Discovery, gvk schema.GroupVersionKind) (placement, *failure) {
	list, err := d.ServerResourcesForGroupVersionWithContext(ctx, gvk.GroupVersion().String())
	if err != nil {
		return placement{}, discoveryFailed(err, gvk)
	}
	for _, r := range list.APIResources {
		if r.Kind != gvk.Kind || strings.Contains(r.Name, "/") {
			continue
		}
		return placement{
			resource:   gvk.GroupVersion().WithResource(r.Name),
			namespaced: r.Namespaced,
			verbs:      strings.Join(r.Verbs, ", "),
		}, nil
	}
	return placement{}, kindNotInstalled(gvk, nil)
}

// watchable fails for a kind whose API offers no list or no watch.
func (p placement) watchable(gvk schema.GroupVersionKind) *failure {
	offered := strings.Split(p.verbs, ", ")
	if slices.Contains(offered, "list") && slices.Contains(offered, "watch") {
		return nil
	}
	return &failure{
		access: component.AccessFailed,
		detail: fmt.Sprintf("%s cannot be watched, because its API offers only: %s; name another object", kindName(gvk), p.verbs),
	}
}

// locate resolves a target to the key of its object.
func (p placement) locate(target component.Target) (types.NamespacedName, *failure) {
	if !p.namespaced {
		if target.Namespace != "" {
			return types.NamespacedName{}, misplaced("%s is cluster-scoped; remove namespace from the component's reference", target.GVK)
		}
		return types.NamespacedName{Name: target.Name}, nil
	}
	namespace := target.Namespace
	if namespace == "" {
		namespace = target.DefaultNamespace
	}
	if namespace == "" {
		return types.NamespacedName{}, misplaced("%s is namespaced; add namespace to the component's reference", target.GVK)
	}
	return types.NamespacedName{Namespace: namespace, Name: target.Name}, nil
}

// scope is the namespace that holds all keys; empty when there is no such one.
func scope(keys map[types.NamespacedName]bool) string {
	first, namespace := true, ""
	for key := range keys {
		if first {
			first, namespace = false, key.Namespace
		}
		if key.Namespace != namespace {
			return ""
		}
	}
	return namespace
}
