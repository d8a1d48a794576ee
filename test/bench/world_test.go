package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	opcrds "github.com/operator-framework/api/crds"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	namespace     = "bench"
	conditionName = "bench.v1.0.0"
	perGate       = 500
)

var (
	widgets            = schema.GroupVersionResource{Group: "test.example.com", Version: "v1", Resource: "widgets"}
	operatorConditions = schema.GroupVersionResource{Group: "operators.coreos.com", Version: "v2", Resource: "operatorconditions"}
	upgradeGates       = schema.GroupVersionResource{Group: "upgradegate.io", Version: "v1alpha1", Resource: "upgradegates"}
	namespaces         = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	events             = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
)

// world is a real API server with so many ready components.
type world struct {
	client     dynamic.Interface
	kubeconfig string
}

func newWorld(b *testing.B, components int) *world {
	b.Helper()
	environment := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd")},
		ErrorIfCRDPathMissing: true,
		CRDs:                  []*apiextensionsv1.CustomResourceDefinition{widgetCRD(), opcrds.OperatorCondition()},
	}
	config, err := environment.Start()
	require.NoError(b, err)
	b.Cleanup(func() { _ = environment.Stop() })
	admin, err := environment.AddUser(envtest.User{Name: "bench", Groups: []string{"system:masters"}}, nil)
	require.NoError(b, err)
	kubeconfig, err := admin.KubeConfig()
	require.NoError(b, err)
	w := &world{kubeconfig: filepath.Join(b.TempDir(), "kubeconfig")}
	require.NoError(b, os.WriteFile(w.kubeconfig, kubeconfig, 0o600))
	config.QPS = -1
	w.client, err = dynamic.NewForConfig(config)
	require.NoError(b, err)
	w.create(b, namespaces, "", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}})
	w.create(b, operatorConditions, namespace, map[string]any{
		"apiVersion": "operators.coreos.com/v2", "kind": "OperatorCondition", "metadata": map[string]any{"name": conditionName},
	})
	w.fill(b, components)
	return w
}

func widgetCRD() *apiextensionsv1.CustomResourceDefinition {
	open := true
	object := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &open}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.test.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "test.example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": object, "status": object},
				}},
			}},
		},
	}
}

func (w *world) create(b *testing.B, resource schema.GroupVersionResource, ns string, object map[string]any) {
	b.Helper()
	_, err := w.client.Resource(resource).Namespace(ns).Create(b.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	require.NoError(b, err)
}

// fill creates the components, all ready.
func (w *world) fill(b *testing.B, components int) {
	b.Helper()
	var group sync.WaitGroup
	slots := make(chan struct{}, 32)
	for i := range components {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			w.create(b, widgets, namespace, map[string]any{
				"apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": widget(i)},
				"spec": map[string]any{"text": strings.Repeat("x", 512)},
			})
			require.NoError(b, w.report(b.Context(), i, "True"))
		})
	}
	group.Wait()
}

func widget(i int) string { return fmt.Sprintf("w-%04d", i) }

// report writes one component's status and returns when the API server has it.
func (w *world) report(ctx context.Context, i int, ready string) error {
	patch := fmt.Sprintf(`{"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":%q,"reason":"R","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, ready)
	_, err := w.client.Resource(widgets).Namespace(namespace).
		Patch(ctx, widget(i), types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	return err
}

// gates lists all components, in as many gates as they take.
func (w *world) gates(b *testing.B, components int) {
	b.Helper()
	for first := 0; first < components; first += perGate {
		var list []any
		for i := first; i < min(first+perGate, components); i++ {
			list = append(list, map[string]any{
				"name":     widget(i),
				"resource": map[string]any{"apiVersion": "test.example.com/v1", "kind": "Widget", "name": widget(i)},
			})
		}
		w.create(b, upgradeGates, namespace, map[string]any{
			"apiVersion": "upgradegate.io/v1alpha1", "kind": "UpgradeGate",
			"metadata": map[string]any{"name": fmt.Sprintf("gate-%04d", first)},
			"spec":     map[string]any{"minReadySeconds": int64(0), "components": list},
		})
	}
}

// process is a program under measurement.
type process struct {
	command *exec.Cmd
}

func start(b *testing.B, command *exec.Cmd) *process {
	b.Helper()
	log, err := os.Create(filepath.Join(b.TempDir(), "log"))
	require.NoError(b, err)
	command.Stdout, command.Stderr = log, log
	require.NoError(b, command.Start())
	p := &process{command: command}
	b.Cleanup(p.stop)
	return p
}

func (p *process) stop() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

// resident is the process' resident memory in MiB.
func (p *process) resident(b *testing.B) float64 {
	b.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	require.NoError(b, err)
	for line := range strings.Lines(string(content)) {
		var kib float64
		if n, _ := fmt.Sscanf(line, "VmRSS: %f kB", &kib); n == 1 {
			return kib / 1024
		}
	}
	b.Fatal("the process reports no resident memory")
	return 0
}

// upgradeable follows what OLM is told.
type upgradeable struct {
	values chan told
}

type told struct {
	status string
	at     time.Time
}

// follow forgets what the program before said, and starts after that.
func (w *world) follow(b *testing.B) *upgradeable {
	b.Helper()
	empty, err := w.client.Resource(operatorConditions).Namespace(namespace).
		Patch(b.Context(), conditionName, types.MergePatchType, []byte(`{"spec":{"conditions":null}}`), metav1.PatchOptions{})
	require.NoError(b, err)
	watch, err := w.client.Resource(operatorConditions).Namespace(namespace).
		Watch(b.Context(), metav1.ListOptions{ResourceVersion: empty.GetResourceVersion()})
	require.NoError(b, err)
	b.Cleanup(watch.Stop)
	u := &upgradeable{values: make(chan told, 1000)}
	go func() {
		for event := range watch.ResultChan() {
			at := time.Now()
			if object, ok := event.Object.(*unstructured.Unstructured); ok {
				u.values <- told{status: statusOf(object), at: at}
			}
		}
	}()
	return u
}

func statusOf(object *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(object.Object, "spec", "conditions")
	for _, item := range list {
		if c, _ := item.(map[string]any); c["type"] == "Upgradeable" {
			status, _ := c["status"].(string)
			return status
		}
	}
	return ""
}

// until returns when OLM was told the status.
func (u *upgradeable) until(b *testing.B, status string) time.Time {
	b.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		select {
		case t := <-u.values:
			if t.status == status {
				return t.at
			}
		case <-deadline:
			b.Fatalf("OLM was not told Upgradeable=%s within 2 minutes", status)
		}
	}
}
