package watch_test

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/upgrade-gate/upgrade-gate/pkg/component"
)

const (
	group    = "test.example.com"
	patience = 60 * time.Second
	tick     = 20 * time.Millisecond
)

// plane is the control plane of all tests; each test has a namespace, or a kind,
// of its own.
var plane = &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{
	crd("Widget", apiextensionsv1.NamespaceScoped), crd("Gadget", apiextensionsv1.NamespaceScoped),
	crd("Region", apiextensionsv1.ClusterScoped),
}}

func TestMain(m *testing.M) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		fmt.Fprintln(os.Stderr, "these tests need a real API server, and KUBEBUILDER_ASSETS is not set: run make test, which builds one")
		os.Exit(1)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctrl.SetLogger(logr.Discard())
	if _, err := plane.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "start the control plane:", err)
		return 1
	}
	defer func() {
		if err := plane.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the control plane:", err)
		}
	}()
	plane.Config.QPS = -1
	return m.Run()
}

func plural(kind string) string { return strings.ToLower(kind) + "s" }

func gvk(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
}

func crd(kind string, scope apiextensionsv1.ResourceScope) *apiextensionsv1.CustomResourceDefinition {
	open := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural(kind) + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: kind, ListKind: kind + "List", Plural: plural(kind), Singular: strings.ToLower(kind),
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type:       "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": open, "status": open},
				}},
			}},
		},
	}
}

// cluster is the administrator's side of a test.
type cluster struct {
	*testing.T
	objects   dynamic.Interface
	clients   kubernetes.Interface
	namespace string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	objects, err := dynamic.NewForConfig(plane.Config)
	require.NoError(t, err)
	clients, err := kubernetes.NewForConfig(plane.Config)
	require.NoError(t, err)
	c := &cluster{T: t, objects: objects, clients: clients}
	c.namespace = c.newNamespace()
	return c
}

func (c *cluster) newNamespace() string {
	c.Helper()
	ns, err := c.clients.CoreV1().Namespaces().Create(c.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "watch-"},
	}, metav1.CreateOptions{})
	require.NoError(c, err)
	return ns.Name
}

func (c *cluster) of(kind string) dynamic.ResourceInterface {
	r := c.objects.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural(kind)})
	if kind == "Region" {
		return r
	}
	return r.Namespace(c.namespace)
}

func (c *cluster) create(kind, name string) *unstructured.Unstructured {
	c.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}}
	object.SetGroupVersionKind(gvk(kind))
	object.SetName(name)
	created, err := c.of(kind).Create(c.Context(), object, metav1.CreateOptions{})
	require.NoError(c, err)
	return created
}

// report writes the status as the kind's controller would.
func (c *cluster) report(kind, name string, status map[string]any) {
	c.Helper()
	object, err := c.of(kind).Get(c.Context(), name, metav1.GetOptions{})
	require.NoError(c, err)
	object.Object["status"] = status
	_, err = c.of(kind).UpdateStatus(c.Context(), object, metav1.UpdateOptions{})
	require.NoError(c, err)
}

func (c *cluster) delete(kind, name string) {
	c.Helper()
	require.NoError(c, c.of(kind).Delete(c.Context(), name, metav1.DeleteOptions{}))
}

// user returns the configuration of a new user without any right.
func (c *cluster) user() *rest.Config {
	c.Helper()
	user, err := plane.AddUser(envtest.User{Name: c.namespace}, nil)
	require.NoError(c, err)
	config := rest.CopyConfig(user.Config())
	config.QPS = -1
	return config
}

// grant gives the user rights on all test kinds in one namespace.
func (c *cluster) grant(namespace string, verbs ...string) {
	c.Helper()
	meta := metav1.ObjectMeta{GenerateName: "watch-"}
	role, err := c.clients.RbacV1().Roles(namespace).Create(c.Context(), &rbacv1.Role{
		ObjectMeta: meta,
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{"*"}, Verbs: verbs}},
	}, metav1.CreateOptions{})
	require.NoError(c, err)
	_, err = c.clients.RbacV1().RoleBindings(namespace).Create(c.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: c.namespace}},
	}, metav1.CreateOptions{})
	require.NoError(c, err)
}

func (c *cluster) install(kind string) {
	c.Helper()
	_, err := envtest.InstallCRDs(plane.Config, envtest.CRDInstallOptions{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{crd(kind, apiextensionsv1.NamespaceScoped)},
	})
	require.NoError(c, err)
}

func (c *cluster) uninstall(kind string) {
	c.Helper()
	crds := c.objects.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	require.NoError(c, crds.Delete(c.Context(), plural(kind)+"."+group, metav1.DeleteOptions{}))
	require.Eventually(c, func() bool {
		_, err := crds.Get(c.Context(), plural(kind)+"."+group, metav1.GetOptions{})
		return err != nil
	}, patience, tick)
}

func (c *cluster) target(kind, name string) component.Target {
	return component.Target{GVK: gvk(kind), DefaultNamespace: c.namespace, Name: name}
}

// counter counts calls of Changed and shows each to see.
type counter struct {
	calls atomic.Int64
	see   atomic.Pointer[func()]
}

func (c *counter) changed() {
	c.calls.Add(1)
	if see := c.see.Load(); see != nil {
		(*see)()
	}
}

func clientsFor(t testing.TB, config *rest.Config) (dynamic.Interface, *discovery.DiscoveryClient) {
	t.Helper()
	objects, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	found, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	return objects, found
}

func newClock() *testingclock.FakeClock {
	return testingclock.NewFakeClock(time.Unix(1_800_000_000, 0))
}
