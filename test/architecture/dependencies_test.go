// Package architecture checks what the linter cannot see: what the pure packages
// reach through the imports of their imports.
package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/upgrade-gate/upgrade-gate"

// pure are the packages that decide: values in, values out.
var pure = []string{"/api/v1alpha1", "/pkg/conditions", "/pkg/component", "/pkg/gate"}

// banned is what would make them reach a cluster, or Helm.
var banned = []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "helm.sh/helm", "github.com/operator-framework"}

type listed struct {
	ImportPath string
	Imports    []string
}

func TestThePureCoreReachesNoClusterAndNoHelm(t *testing.T) {
	graph := imports(t)
	for _, p := range pure {
		require.Contains(t, graph, module+p, "the package has moved: correct this test's list")
		path := reach(graph, module+p)
		require.Empty(t, path, "a pure package reaches %s:\n  %s", last(path), strings.Join(path, "\n  imports "))
	}
}

func TestAForbiddenImportIsFoundAndItsPathIsNamed(t *testing.T) {
	graph := map[string][]string{
		"a": {"fmt", "b"},
		"b": {"a", "k8s.io/client-go/rest"},
	}
	require.Equal(t, []string{"a", "b", "k8s.io/client-go/rest"}, reach(graph, "a"))
	require.Empty(t, reach(map[string][]string{"a": {"fmt"}}, "a"))
}

// imports is the import graph of the pure packages and all that they reach.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	arguments := []string{"list", "-deps", "-json=ImportPath,Imports"}
	for _, p := range pure {
		arguments = append(arguments, module+p)
	}
	output, err := exec.Command("go", arguments...).Output()
	require.NoError(t, err)
	graph := map[string][]string{}
	decoder := json.NewDecoder(bytes.NewReader(output))
	for {
		var l listed
		err := decoder.Decode(&l)
		if errors.Is(err, io.EOF) {
			return graph
		}
		require.NoError(t, err)
		graph[l.ImportPath] = l.Imports
	}
}

// reach returns the shortest import path from start to a banned package, or
// nothing.
func reach(graph map[string][]string, start string) []string {
	from := map[string]string{start: ""}
	queue := []string{start}
	for len(queue) > 0 {
		current := queue[0]
		queue = queue[1:]
		if isBanned(current) {
			return trace(from, current)
		}
		for _, next := range graph[current] {
			if _, seen := from[next]; !seen {
				from[next] = current
				queue = append(queue, next)
			}
		}
	}
	return nil
}

func trace(from map[string]string, end string) []string {
	var path []string
	for p := end; p != ""; p = from[p] {
		path = append([]string{p}, path...)
	}
	return path
}

func isBanned(path string) bool {
	for _, b := range banned {
		if path == b || strings.HasPrefix(path, b+"/") {
			return true
		}
	}
	return false
}

func last(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return path[len(path)-1]
}
