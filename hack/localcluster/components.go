package main

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
)

const loopback = "127.0.0.1"

// controllers are those of kube-controller-manager that run here: all that workloads, RBAC,
// namespaces and garbage collection need, and none that needs a cloud, a network or a disk.
// Without node-lifecycle the node keeps its not-ready taint; without clusterrole-aggregation the
// roles admin, edit and view stay empty.
var controllers = []string{
	"clusterrole-aggregation-controller",
	"daemonset-controller",
	"deployment-controller",
	"endpointslice-controller",
	"garbage-collector-controller",
	"job-controller",
	"namespace-controller",
	"node-lifecycle-controller",
	"pod-garbage-collector-controller",
	"replicaset-controller",
	"root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"statefulset-controller",
}

// ports on loopback that one cluster listens on.
type ports struct {
	etcd, etcdPeer, apiServer, kwok int
}

// freePorts finds ports that nobody listens on. They are free when it returns, which does not keep
// another process from taking one before it is used: the start is tried again then.
func freePorts() (ports, error) {
	var found [4]int
	for n := range found {
		// All are kept open until the last is found, or the same port could come twice.
		listener, err := net.Listen("tcp", loopback+":0")
		if err != nil {
			return ports{}, fmt.Errorf("no free port on %s: %w", loopback, err)
		}
		defer listener.Close()
		found[n] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports{found[0], found[1], found[2], found[3]}, nil
}

func onLoopback(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// neededBinaries are the programs that a cluster is started from.
func neededBinaries(controlPlaneOnly bool) []string {
	if controlPlaneOnly {
		return []string{"etcd", "kube-apiserver"}
	}
	return []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}
}

func (c *cluster) program(name, listening string, args ...string) program {
	return program{name: name, path: filepath.Join(c.assets, name), args: args, listening: listening}
}

func (c *cluster) etcd() program {
	client, peer := "https://"+onLoopback(c.ports.etcd), "https://"+onLoopback(c.ports.etcdPeer)
	return c.program("etcd", onLoopback(c.ports.etcd),
		"--name=localcluster",
		"--data-dir="+filepath.Join(c.instance.dataDir(), "etcd"),
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer,
		"--initial-cluster=localcluster="+peer,
		"--client-cert-auth", "--trusted-ca-file="+c.credentials.caFile(),
		"--cert-file="+c.credentials.etcdCert(), "--key-file="+c.credentials.etcdKey(),
		"--peer-client-cert-auth", "--peer-trusted-ca-file="+c.credentials.caFile(),
		"--peer-cert-file="+c.credentials.etcdCert(), "--peer-key-file="+c.credentials.etcdKey(),
		"--unsafe-no-fsync", // the data goes with the cluster: nothing to save from a power cut
		"--log-level=warn")
}

func (c *cluster) apiServer() program {
	return c.program("kube-apiserver", onLoopback(c.ports.apiServer),
		"--etcd-servers=https://"+onLoopback(c.ports.etcd),
		"--etcd-cafile="+c.credentials.caFile(),
		"--etcd-certfile="+c.credentials.etcdCert(), "--etcd-keyfile="+c.credentials.etcdKey(),
		"--bind-address="+loopback, "--advertise-address="+loopback,
		fmt.Sprintf("--secure-port=%d", c.ports.apiServer),
		"--tls-cert-file="+c.credentials.serverCert(), "--tls-private-key-file="+c.credentials.serverKey(),
		"--cert-dir="+c.instance.dataDir(),
		"--token-auth-file="+c.credentials.tokenFile(),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file="+c.credentials.serviceAccount(),
		"--service-account-signing-key-file="+c.credentials.serviceAccount(),
		"--service-cluster-ip-range="+serviceRange,
		"--allow-privileged",
		"--endpoint-reconciler-type=none") // a Service cannot have an endpoint on loopback
}

func (c *cluster) controllerManager() program {
	return c.program("kube-controller-manager", "",
		"--kubeconfig="+c.internalKubeconfig(),
		"--controllers="+strings.Join(controllers, ","),
		"--service-account-private-key-file="+c.credentials.serviceAccount(),
		"--root-ca-file="+c.credentials.caFile(),
		"--leader-elect=false",
		"--kube-api-qps=200", "--kube-api-burst=400", // tests create and delete a lot at once
		"--bind-address="+loopback, "--secure-port=0")
}

func (c *cluster) scheduler() program {
	return c.program("kube-scheduler", "",
		"--kubeconfig="+c.internalKubeconfig(),
		"--leader-elect=false",
		"--bind-address="+loopback, "--secure-port=0")
}

func (c *cluster) kwok() program {
	return c.program("kwok", onLoopback(c.ports.kwok),
		"--kubeconfig="+c.internalKubeconfig(),
		"--config="+c.stagesFile(),
		"--manage-all-nodes=true",
		// Without it kwok renews no Lease, and the node is NotReady after 50 s.
		"--node-lease-duration-seconds=40",
		"--node-ip="+loopback,
		"--cidr=10.244.0.0/24",
		"--server-address="+onLoopback(c.ports.kwok))
}
