package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What OLM, played by manifests/olm.yaml, calls things.
const (
	namespace         = "platform-system"
	operatorName      = "upgrade-gate-operator"
	operatorCondition = "upgrade-gate-operator.v0.1.0"
)

// tokenLifetime is for a demo that is kept and played with.
const tokenLifetime = 24 * time.Hour

// operator is the operator's process.
type operator struct {
	cmd    *exec.Cmd
	log    string
	health string
	done   chan struct{}
}

// operatorStart is what the operator's process needs.
type operatorStart struct {
	binary, log, health, folder, pod string
	admin                            *rest.Config
}

// startOperator runs the operator as its pod would: with the token of its service
// account, and with what OLM and the Deployment put into its environment.
func startOperator(ctx context.Context, c client.Client, s operatorStart) (*operator, error) {
	config := filepath.Join(s.folder, "operator.kubeconfig")
	if err := writeRestrictedKubeconfig(ctx, c, s.admin, config); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(s.log), 0o700); err != nil {
		return nil, err
	}
	log, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	o := &operator{log: s.log, health: s.health, done: make(chan struct{})}
	o.cmd = exec.Command(s.binary, "--kubeconfig="+config,
		"--health-probe-bind-address="+s.health, "--metrics-bind-address=0", "--log-format=text")
	o.cmd.Env = []string{
		"HOME=" + s.folder, "POD_NAMESPACE=" + namespace, "POD_NAME=" + s.pod, "OPERATOR_CONDITION_NAME=" + operatorCondition,
	}
	o.cmd.Stdout, o.cmd.Stderr = log, log
	o.cmd.SysProcAttr = ownGroup()
	if err := o.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = o.cmd.Wait()
		close(o.done)
	}()
	return o, nil
}

// writeRestrictedKubeconfig is for the operator's service account and nobody else.
func writeRestrictedKubeconfig(ctx context.Context, c client.Client, admin *rest.Config, path string) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: operatorName}}
	seconds := int64(tokenLifetime.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := c.SubResource("token").Create(ctx, account, request); err != nil {
		return fmt.Errorf("asking for a token of the operator's service account: %w", err)
	}
	tls := rest.CopyConfig(admin)
	if err := rest.LoadTLSFiles(tls); err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["demo"] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: tls.CAData}
	config.AuthInfos[operatorName] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	config.Contexts["demo"] = &clientcmdapi.Context{Cluster: "demo", AuthInfo: operatorName, Namespace: namespace}
	config.CurrentContext = "demo"
	return clientcmd.WriteToFile(*config, path) // mode 0600
}

// stop ends the process as Kubernetes does.
func (o *operator) stop(ctx context.Context) error {
	select {
	case <-o.done:
		return nil
	default:
	}
	_ = o.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-o.done:
		return nil
	case <-ctx.Done():
	case <-time.After(20 * time.Second):
	}
	_ = o.cmd.Process.Kill()
	<-o.done
	return errors.New("the operator did not end within 20 s of SIGTERM and was killed; its log is " + o.log)
}

// death explains why the process is gone, when it should not be.
func (o *operator) death() error {
	content, _ := os.ReadFile(o.log)
	lines := strings.Split(string(bytes.TrimSpace(content)), "\n")
	return fmt.Errorf("the operator ended by itself, %s; the end of its log %s:\n%s",
		o.cmd.ProcessState, o.log, strings.Join(lines[max(0, len(lines)-10):], "\n"))
}

// ready reports whether /readyz says so.
func ready(ctx context.Context, health string) bool {
	limited, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(limited, http.MethodGet, "http://"+health+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// freeAddress is a loopback address on which nobody listens at this moment.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}
