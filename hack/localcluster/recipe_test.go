package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestCacheKeyComesFromModuleAndRecipe(t *testing.T) {
	hash := sha256.New()
	for _, name := range []string{"go.mod", "go.sum", "recipe.go"} {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(content), content)
	}
	want := hex.EncodeToString(hash.Sum(nil))[:12]
	got, err := cacheKey()
	if err != nil || got != want {
		t.Fatalf("cacheKey() = %q, %v; want %q", got, err, want)
	}
}

// The recipe and go.mod name the same things; this keeps them from drifting apart.
func TestRecipeAgreesWithGoMod(t *testing.T) {
	content, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	module := string(content)
	if !strings.Contains(module, "\tk8s.io/kubernetes v"+kubeVersion+" ") {
		t.Errorf("kubeVersion is %s, which go.mod does not require", kubeVersion)
	}
	staging := "v0" + strings.TrimPrefix(kubeVersion, "1")
	if got := strings.Count(module, " "+staging+"\n\tk8s.io/"); got < 32 {
		t.Errorf("only %d replace lines with %s", got, staging)
	}
	for _, b := range binaries {
		if !strings.Contains(module, "\t"+b.importPath+"\n") {
			t.Errorf("go.mod has no tool line for %s", b.importPath)
		}
	}
}

func TestLinkerFlagsStampTheVersion(t *testing.T) {
	for _, want := range []string{
		"-X k8s.io/component-base/version.gitVersion=v" + kubeVersion,
		"-X k8s.io/client-go/pkg/version.gitMajor=1",
		"-s -w",
	} {
		if !strings.Contains(linkerFlags(), want) {
			t.Errorf("no %q in %q", want, linkerFlags())
		}
	}
}
