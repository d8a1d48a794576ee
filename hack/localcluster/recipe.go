package main

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
)

// This file is the recipe: all that decides what the built binaries are, next to go.mod and go.sum.
//
// The cache key is the hash of go.mod, go.sum and this file only, and not of every *.go file: the
// other files start and stop the binaries but do not change them, and an edit there must not cost
// a new build of ten minutes. So whatever changes the binaries belongs here, and nothing else does.

//go:embed go.mod go.sum recipe.go
var recipeFiles embed.FS

// kubeVersion is stamped into the Kubernetes binaries; a test keeps it equal to go.mod.
const kubeVersion = "1.37.2"

// binary is one program to build: the file name in the cache folder and the Go package.
type binary struct {
	name       string
	importPath string
}

// binaries in build order. The first three are what envtest needs.
var binaries = []binary{
	{"etcd", "go.etcd.io/etcd/server/v3"},
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
	{"kubectl", "k8s.io/kubernetes/cmd/kubectl"},
	{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"},
	{"kwok", "sigs.k8s.io/kwok/cmd/kwok"},
}

// buildArgs are the arguments of the go command that builds b into the file output.
func buildArgs(b binary, output string) []string {
	return []string{"build", "-ldflags=" + linkerFlags(), "-o", output, b.importPath}
}

// linkerFlags drops the debug tables and stamps the version. Without the stamp the server calls
// itself v0.0.0-master and "kubectl version" fails.
func linkerFlags() string {
	version := strings.SplitN(kubeVersion, ".", 3)
	flags := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			fmt.Sprintf("-X %s.gitVersion=v%s", pkg, kubeVersion),
			fmt.Sprintf("-X %s.gitMajor=%s", pkg, version[0]),
			fmt.Sprintf("-X %s.gitMinor=%s", pkg, version[1]))
	}
	return strings.Join(flags, " ")
}

// buildEnv is the environment of the build. Each of these is part of Go's build cache key, so they
// are set here rather than taken from the user, and a workspace of the user must not take part.
func buildEnv() []string {
	return append(os.Environ(),
		"CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false", "GOWORK=off", "GO111MODULE=on")
}

// cacheKey names a set of binaries by what they are built from.
func cacheKey() (string, error) {
	hash := sha256.New()
	for _, name := range []string{"go.mod", "go.sum", "recipe.go"} {
		content, err := recipeFiles.ReadFile(name)
		if err != nil {
			return "", err
		}
		// The length keeps a line that moves from one file to the next from giving the same key.
		fmt.Fprintf(hash, "%s %d\n", name, len(content))
		hash.Write(content)
	}
	return hex.EncodeToString(hash.Sum(nil))[:12], nil
}
