package upgradegate

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
)

// cluster is the one API server of this package's tests: only a real one
// maintains generations and resource versions.
var cluster struct {
	config *rest.Config
	scheme *runtime.Scheme
}

func TestMain(m *testing.M) {
	os.Exit(withCluster(m))
}

func withCluster(m *testing.M) int {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		fmt.Fprintln(os.Stderr, "these tests need an API server: run `make test`, or set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver")
		return 1
	}
	environment := &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join("..", "..", "..", "config", "crd")}, ErrorIfCRDPathMissing: true}
	config, err := environment.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the control plane:", err)
		return 1
	}
	defer func() { _ = environment.Stop() }()
	cluster.config, cluster.scheme = config, runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(cluster.scheme); err != nil {
			fmt.Fprintln(os.Stderr, "making the scheme:", err)
			return 1
		}
	}
	return m.Run()
}
