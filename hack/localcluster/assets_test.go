package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// fakeGo puts a go command into PATH that writes its output file and counts its calls.
func fakeGo(t *testing.T, script string) (calls func() int) {
	t.Helper()
	dir := t.TempDir()
	counter := filepath.Join(dir, "calls")
	content := "#!/bin/sh\necho call >> " + counter + "\n" + script
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() int {
		content, err := os.ReadFile(counter)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return bytes.Count(content, []byte("call"))
	}
}

// The arguments are: build -ldflags=… -o OUTPUT PACKAGE.
const writeOutput = `test -f go.mod && test -f go.sum || exit 9
sleep 0.02
echo "built from $5" > "$4"; chmod +x "$4"
`

func emptyCache(t *testing.T) (final string) {
	t.Helper()
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv(assetsVariable, "")
	key, err := cacheKey()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(cache, "upgrade-gate", "localcluster-"+key)
}

func TestAssetsAreBuiltOnce(t *testing.T) {
	final := emptyCache(t)
	calls := fakeGo(t, writeOutput)
	var progress bytes.Buffer
	for range 2 {
		bin, err := ensureAssets(t.Context(), &progress)
		if err != nil || bin != filepath.Join(final, "bin") {
			t.Fatalf("ensureAssets() = %q, %v", bin, err)
		}
	}
	if calls() != len(binaries) {
		t.Errorf("%d builds for %d binaries", calls(), len(binaries))
	}
	for _, want := range []string{"first time, about ten minutes\n", "[2/6] kube-apiserver … done in "} {
		if !strings.Contains(progress.String(), want) {
			t.Errorf("no %q in progress:\n%s", want, progress.String())
		}
	}
	entries, err := os.ReadDir(filepath.Dir(final))
	if err != nil || len(entries) != 2 {
		t.Errorf("want the set and its lock only, got %v, %v", entries, err)
	}
}

func TestConcurrentBuildersBuildOnce(t *testing.T) {
	emptyCache(t)
	calls := fakeGo(t, writeOutput)
	var group sync.WaitGroup
	progress := make([]bytes.Buffer, 4)
	for n := range progress {
		group.Go(func() {
			bin, err := ensureAssets(t.Context(), &progress[n])
			if missing := missingBinaries(bin, allBinaryNames()); err != nil || len(missing) > 0 {
				t.Errorf("ensureAssets() = %q, %v; missing: %v", bin, err, missing)
			}
		})
	}
	group.Wait()
	if calls() != len(binaries) {
		t.Errorf("%d builds for %d binaries", calls(), len(binaries))
	}
	waited := 0
	for n := range progress {
		waited += strings.Count(progress[n].String(), "another build is running, waiting\n")
	}
	if waited == 0 {
		t.Error("nobody was told about the wait")
	}
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	final := emptyCache(t)
	fakeGo(t, "echo some compiler error >&2; exit 1\n")
	_, err := ensureAssets(t.Context(), &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "building etcd") || !strings.Contains(err.Error(), "some compiler error") {
		t.Errorf("err = %v", err)
	}
	leftovers, _ := filepath.Glob(final + "*")
	if len(leftovers) != 1 || leftovers[0] != final+".lock" {
		t.Errorf("left over: %v", leftovers)
	}
}

func TestInterruptedBuild(t *testing.T) {
	emptyCache(t)
	fakeGo(t, writeOutput)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ensureAssets(ctx, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("err = %v", err)
	}
}

func TestDamagedSetIsReplacedWhole(t *testing.T) {
	final := emptyCache(t)
	fakeGo(t, writeOutput)
	stale := final + ".building-killed"
	for _, dir := range []string{filepath.Join(final, "bin"), stale} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(final, "bin", "etcd"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	bin, err := ensureAssets(t.Context(), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(bin, "etcd"))
	if err != nil || !strings.Contains(string(content), "go.etcd.io/etcd/server/v3") {
		t.Errorf("etcd = %q, %v", content, err)
	}
	if _, err := os.Stat(stale); !os.IsNotExist(err) {
		t.Errorf("what a killed build left is still there: %v", err)
	}
}

func TestGivenAssetsAreUsed(t *testing.T) {
	calls := fakeGo(t, writeOutput)
	dir := t.TempDir()
	t.Setenv(assetsVariable, dir)
	if _, err := ensureAssets(t.Context(), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "kube-apiserver") {
		t.Errorf("an empty folder: err = %v", err)
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := ensureAssets(t.Context(), &bytes.Buffer{}); err != nil || got != dir {
		t.Errorf("ensureAssets() = %q, %v", got, err)
	}
	if _, err := findPrograms(t.Context(), false, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "kwok") {
		t.Errorf("a folder without controllers: err = %v", err)
	}
	if calls() != 0 {
		t.Error("something was built")
	}
}

func TestCacheRoot(t *testing.T) {
	t.Setenv("HOME", "/home/someone")
	for xdg, want := range map[string]string{
		"":         "/home/someone/.cache/upgrade-gate",
		"relative": "/home/someone/.cache/upgrade-gate",
		"/a/cache": "/a/cache/upgrade-gate",
	} {
		t.Setenv("XDG_CACHE_HOME", xdg)
		if got, err := cacheRoot(); err != nil || got != want {
			t.Errorf("XDG_CACHE_HOME=%q: %q, %v; want %q", xdg, got, err, want)
		}
	}
}
