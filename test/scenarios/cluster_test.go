package scenarios

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	opcrds "github.com/operator-framework/api/crds"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// cluster is the API server that all scenarios share, with what is needed to
// use it.
type cluster struct {
	admin      *rest.Config
	kubeconfig string // the administrator's, a file
	kube       kubernetes.Interface
	dynamic    dynamic.Interface
	mapper     *restmapper.DeferredDiscoveryRESTMapper
	recorder   *recorder
	rights     *manifests
	operator   string // the binary
	kubectl    string
	folder     string
	closers    []func()
}

// projectRoot is where the module is; tests run in their package's folder.
var projectRoot = filepath.Join("..", "..")

func startCluster(operator string) (_ *cluster, err error) {
	if os.Getenv("USE_KUBECONFIG") == "" && os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return nil, errors.New("there is no API server to run on. `make test` builds one and runs these tests; " +
			"or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver and kubectl; " +
			"or set USE_KUBECONFIG to the kubeconfig of a cluster of which you are the administrator")
	}
	c := &cluster{}
	defer func() {
		if err != nil {
			c.stop()
		}
	}()
	if c.folder, err = os.MkdirTemp("", "upgrade-gate-scenarios-"); err != nil {
		return nil, err
	}
	c.closers = append(c.closers, func() { os.RemoveAll(c.folder) })
	if c.rights, err = readManifests(filepath.Join(projectRoot, "config", "rbac")); err != nil {
		return nil, err
	}
	if c.operator, err = buildOperator(operator, c.folder); err != nil {
		return nil, err
	}
	if err := c.connect(); err != nil {
		return nil, err
	}
	if c.kube, err = kubernetes.NewForConfig(c.admin); err != nil {
		return nil, err
	}
	if c.dynamic, err = dynamic.NewForConfig(c.admin); err != nil {
		return nil, err
	}
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.kube.Discovery()))
	ctx, cancel := context.WithCancel(context.Background())
	c.closers = append(c.closers, cancel)
	c.recorder = newRecorder(ctx, c.dynamic)
	for _, kind := range alwaysRecorded {
		if err := c.recorder.record(kind); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// connect starts a control plane, or uses the cluster that was asked for.
func (c *cluster) connect() error {
	environment := &envtest.Environment{
		BinaryAssetsDirectory:    os.Getenv("KUBEBUILDER_ASSETS"),
		ErrorIfCRDPathMissing:    true,
		CRDDirectoryPaths:        []string{filepath.Join(projectRoot, "config", "crd"), "fixtures"},
		CRDs:                     []*apiextensionsv1.CustomResourceDefinition{opcrds.OperatorCondition()},
		ControlPlaneStartTimeout: 2 * time.Minute,
	}
	existing := os.Getenv("USE_KUBECONFIG")
	if existing != "" {
		config, err := clientcmd.BuildConfigFromFlags("", existing)
		if err != nil {
			return fmt.Errorf("USE_KUBECONFIG: %w", err)
		}
		config.QPS, config.Burst = 1000, 2000
		use := true
		environment.UseExistingCluster, environment.Config = &use, config
	}
	config, err := environment.Start()
	if existing == "" {
		c.closers = append(c.closers, func() { _ = environment.Stop() })
	}
	if err != nil {
		return fmt.Errorf("start the API server: %w", err)
	}
	c.admin = config
	c.kubeconfig = filepath.Join(c.folder, "admin.kubeconfig")
	if err := os.WriteFile(c.kubeconfig, environment.KubeConfig, 0o600); err != nil {
		return err
	}
	c.kubectl = filepath.Join(environment.BinaryAssetsDirectory, "kubectl")
	if environment.BinaryAssetsDirectory == "" {
		if c.kubectl, err = exec.LookPath("kubectl"); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) stop() {
	for i := len(c.closers) - 1; i >= 0; i-- {
		c.closers[i]()
	}
	c.closers = nil
}

// buildOperator returns the binary to run: the given one, or a fresh one.
func buildOperator(given, folder string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	binary := filepath.Join(folder, "upgrade-gate-operator")
	build := exec.Command("go", "build", "-o", binary, "./cmd/upgrade-gate-operator")
	build.Dir = projectRoot
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the operator: %w\n%s", err, output)
	}
	return binary, nil
}
