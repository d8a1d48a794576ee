// Command localcluster builds, starts, supervises and stops a real Kubernetes control plane on
// loopback, for development and tests: etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler, and kwok with one simulated node. No container runtime is needed.
//
// It uses the standard library only, so that it compiles in seconds; the Kubernetes modules in
// go.mod are what it builds, not what it imports.
package main
