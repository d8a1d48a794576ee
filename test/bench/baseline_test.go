package bench

import (
	"context"
	"fmt"
	"os"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// baseline is the least that a program must do to be as quick as the operator
// claims to be: one informer that keeps status and metadata, and one patch. It
// proves nothing, settles nothing and repairs nothing.
type baseline struct {
	client dynamic.Interface
	mutex  sync.Mutex
	bad    map[string]bool
	told   string
}

func runBaseline(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	b := &baseline{client: client, bad: map[string]bool{}}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	informer := factory.ForResource(widgets).Informer()
	if err := informer.SetTransform(strip); err != nil {
		return err
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { b.see(ctx, o) },
		UpdateFunc: func(_, o any) { b.see(ctx, o) },
	}); err != nil {
		return err
	}
	informer.RunWithContext(ctx)
	return nil
}

func strip(o any) (any, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return o, nil
	}
	delete(u.Object, "spec")
	u.SetManagedFields(nil)
	return u, nil
}

func (b *baseline) see(ctx context.Context, o any) {
	u := o.(*unstructured.Unstructured)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if ready(u) {
		delete(b.bad, u.GetName())
	} else {
		b.bad[u.GetName()] = true
	}
	want := "True"
	if len(b.bad) > 0 {
		want = "False"
	}
	if want == b.told {
		return
	}
	b.told = want
	patch := fmt.Sprintf(`{"spec":{"conditions":[{"type":"Upgradeable","status":%q,"reason":"Baseline","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, want)
	_, err := b.client.Resource(operatorConditions).Namespace(namespace).
		Patch(ctx, conditionName, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		fmt.Fprintln(os.Stderr, "baseline:", err)
	}
}

// ready judges as little as one can.
func ready(u *unstructured.Unstructured) bool {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range list {
		c, _ := item.(map[string]any)
		if c["type"] == "Ready" && c["status"] == "True" {
			return true
		}
	}
	return false
}
