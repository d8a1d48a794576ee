package olm_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/operator-framework/api/crds"
	apiv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
	"github.com/upgrade-gate/upgrade-gate/pkg/olm"
	"github.com/upgrade-gate/upgrade-gate/test/olmdouble"
)

// conditionName is the name of the OperatorCondition in every test.
const conditionName = "gate.v1.0.0"

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

var (
	// admin may do everything; operator may do what a test's Role says.
	admin, operator *rest.Config
	namespaces      atomic.Int64
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pkg/olm:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return 1, errors.New("these tests need an API server and KUBEBUILDER_ASSETS is not set: run `make test`")
	}
	log.SetLogger(logr.Discard())
	environment := &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{crds.OperatorCondition()}}
	if admin, err = environment.Start(); err != nil {
		return 1, fmt.Errorf("starting the control plane: %w", err)
	}
	defer func() { err = errors.Join(err, environment.Stop()) }()
	user, err := environment.AddUser(envtest.User{Name: "operator"}, nil)
	if err != nil {
		return 1, fmt.Errorf("adding the restricted user: %w", err)
	}
	operator = user.Config()
	return m.Run(), nil
}

func scheme(t *testing.T) *runtime.Scheme {
	s := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(s))
	require.NoError(t, apiv2.AddToScheme(s))
	return s
}

// fixture is one namespace with one OperatorCondition, and the clients of an
// administrator and of an operator with the rights that OLM grants.
type fixture struct {
	*testing.T
	namespace string
	admin     client.Client
	operator  *faultyClient
	requests  *recorder
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, namespace: fmt.Sprintf("test-%d", namespaces.Add(1)), requests: &recorder{}}
	var err error
	f.admin, err = client.New(admin, client.Options{Scheme: scheme(t)})
	require.NoError(t, err)
	config := rest.CopyConfig(operator)
	config.Wrap(f.requests.wrap)
	restricted, err := client.New(config, client.Options{Scheme: scheme(t)})
	require.NoError(t, err)
	f.operator = &faultyClient{Client: restricted}
	f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}})
	f.grant("olm", rbacv1.PolicyRule{
		APIGroups: []string{"operators.coreos.com"}, Resources: []string{"operatorconditions"},
		ResourceNames: []string{conditionName}, Verbs: []string{"get", "update", "patch"},
	})
	f.createCondition()
	f.eventually(func() bool { return restricted.Get(t.Context(), f.key(), f.object()) == nil },
		"the API server takes notice of the Role")
	f.requests.clear()
	return f
}

// grant lets the operator do what rule says in the namespace.
func (f *fixture) grant(name string, rule rbacv1.PolicyRule) {
	f.Helper()
	meta := metav1.ObjectMeta{Namespace: f.namespace, Name: name}
	f.create(&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}})
	f.create(&rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "operator", APIGroup: rbacv1.GroupName}},
	})
}

func (f *fixture) create(object client.Object) {
	f.Helper()
	require.NoError(f, f.admin.Create(f.Context(), object))
}

// createCondition creates the OperatorCondition as OLM does: without conditions.
func (f *fixture) createCondition() {
	f.Helper()
	oc := &apiv2.OperatorCondition{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: conditionName}}
	oc.Spec.ServiceAccounts = []string{"gate"}
	f.create(oc)
}

// key is the OperatorCondition's.
func (f *fixture) key() types.NamespacedName {
	return types.NamespacedName{Namespace: f.namespace, Name: conditionName}
}

// raw is the OperatorCondition as the API server holds it.
func (f *fixture) raw() *unstructured.Unstructured {
	f.Helper()
	object := f.object()
	require.NoError(f, f.admin.Get(f.Context(), f.key(), object))
	return object
}

// object is empty and has the OperatorCondition's name. It is not typed, because
// Go's type cannot hold all that the CRD admits.
func (f *fixture) object() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(apiv2.GroupVersion.WithKind("OperatorCondition"))
	object.SetNamespace(f.namespace)
	object.SetName(conditionName)
	return object
}

// said is spec.conditions, without transition times, in a short notation.
func (f *fixture) said() []string {
	f.Helper()
	list, _, err := unstructured.NestedSlice(f.raw().Object, "spec", "conditions")
	require.NoError(f, err)
	said := []string{}
	for _, item := range list {
		c := item.(map[string]any)
		said = append(said, fmt.Sprintf("%s=%s %s: %s", c["type"], c["status"], c["reason"], c["message"]))
	}
	return said
}

// patch changes the OperatorCondition as somebody else would.
func (f *fixture) patch(body string) {
	f.Helper()
	require.NoError(f, f.admin.Patch(f.Context(), f.object(), client.RawPatch(types.MergePatchType, []byte(body))))
}

// olm runs the double of OLM until the test ends.
func (f *fixture) olm() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- olmdouble.Run(ctx, admin, f.namespace) }()
	f.Cleanup(func() {
		cancel()
		require.NoError(f, <-done)
	})
}

// publisher makes a publisher with the operator's client; change may be nil.
func (f *fixture) publisher(change func(*olm.Config)) *olm.Publisher {
	f.Helper()
	config := olm.Config{Mode: v1alpha1.OLMModeV0, Client: f.operator, Namespace: f.namespace, Name: conditionName}
	if change != nil {
		change(&config)
	}
	p, err := olm.NewPublisher(config)
	require.NoError(f, err)
	return p
}

// start runs the loop until stop is called, or the test ends.
func (f *fixture) start(p *olm.Publisher) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Start(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-done:
				require.NoError(f, err)
			case <-time.After(patience):
				require.FailNow(f, "Start did not return")
			}
		})
	}
	f.Cleanup(stop)
	return stop
}

// eventually waits for what the loop does in the background.
func (f *fixture) eventually(holds func() bool, what string) {
	f.Helper()
	require.Eventually(f, holds, patience, 5*time.Millisecond, what)
}

// advance lets the fake clock run, in small steps, until holds.
func (f *fixture) advance(clk *clocktesting.FakeClock, holds func() bool, what string) {
	f.Helper()
	f.eventually(func() bool {
		if clk.HasWaiters() {
			clk.Step(100 * time.Millisecond)
		}
		return holds()
	}, what)
}

func closed(reason, message string) gate.Announcement {
	return gate.Announcement{Reason: reason, Message: message}
}

func opened(message string) gate.Announcement {
	return gate.Announcement{Open: true, Reason: "AllComponentsReady", Message: message}
}

// initially is what a new version says of itself before it knows anything.
func (f *fixture) initially() string {
	return "Upgradeable=False Initializing: the components have not been read yet; to override: " +
		olm.OverrideCommand(f.namespace, conditionName)
}

// faultyClient lets a test come between a publisher and the API server.
type faultyClient struct {
	olm.Client
	mu      sync.Mutex
	onGet   func(ctx context.Context, get func() error) error
	onPatch func(ctx context.Context, body string, patch func() error) error
	patches []string
}

func (c *faultyClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	get := func() error { return c.Client.Get(ctx, key, object, options...) }
	c.mu.Lock()
	hook := c.onGet
	c.mu.Unlock()
	if hook == nil {
		return get()
	}
	return hook(ctx, get)
}

func (c *faultyClient) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	body, err := patch.Data(object)
	if err != nil {
		return err
	}
	do := func() error { return c.Client.Patch(ctx, object, patch, options...) }
	c.mu.Lock()
	c.patches = append(c.patches, string(body))
	hook := c.onPatch
	c.mu.Unlock()
	if hook == nil {
		return do()
	}
	return hook(ctx, string(body), do)
}

// writes is how many patches were tried.
func (c *faultyClient) writes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.patches)
}

func (c *faultyClient) atPatch(hook func(ctx context.Context, body string, patch func() error) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onPatch = hook
}

func (c *faultyClient) atGet(hook func(ctx context.Context, get func() error) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onGet = hook
}

// recorder notes each request for an object, as "VERB path".
type recorder struct {
	mu       sync.Mutex
	requests []string
}

func (r *recorder) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(request *http.Request) (*http.Response, error) {
		// Discovery is no object's.
		if strings.Contains(request.URL.Path, "/namespaces/") {
			r.mu.Lock()
			line := request.Method + " " + request.URL.Path
			if request.URL.Query().Has("watch") {
				line += " watch"
			}
			r.requests = append(r.requests, line)
			r.mu.Unlock()
		}
		return next.RoundTrip(request)
	})
}

// all are the requests so far.
func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.requests...)
}

func (r *recorder) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = nil
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) {
	return f(request)
}

// patchStatus changes status as OLM does.
func (f *fixture) patchStatus(body string) {
	f.Helper()
	require.NoError(f, f.admin.Status().Patch(f.Context(), f.object(), client.RawPatch(types.MergePatchType, []byte(body))))
}
