package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// assetsVariable is envtest's own variable: a folder with ready-made binaries.
const assetsVariable = "KUBEBUILDER_ASSETS"

// cacheRoot is the project's folder in the user's cache, outside of any clone, so that a fresh
// clone on the same machine finds the binaries.
func cacheRoot() (string, error) {
	// A relative XDG_CACHE_HOME is invalid by its specification and is to be ignored.
	if dir := os.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "upgrade-gate"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder: set HOME or XDG_CACHE_HOME: %w", err)
	}
	return filepath.Join(home, ".cache", "upgrade-gate"), nil
}

// ensureAssets returns a folder with all the binaries and builds them when they are missing.
// All it has to tell goes to progress.
func ensureAssets(ctx context.Context, progress io.Writer) (string, error) {
	if given := os.Getenv(assetsVariable); given != "" {
		dir, err := filepath.Abs(given)
		if err != nil {
			return "", err
		}
		return dir, checkGivenAssets(dir)
	}
	root, err := cacheRoot()
	if err != nil {
		return "", err
	}
	key, err := cacheKey()
	if err != nil {
		return "", err
	}
	final := filepath.Join(root, "localcluster-"+key)
	bin := filepath.Join(final, "bin")
	if len(missingBinaries(bin, allBinaryNames())) == 0 {
		return bin, nil
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", err
	}
	lock, err := waitForLock(ctx, final+".lock", func() {
		fmt.Fprintln(progress, "another build is running, waiting")
	})
	if err != nil {
		return "", err
	}
	defer lock.release()
	// Whoever held the lock may have built it meanwhile.
	if len(missingBinaries(bin, allBinaryNames())) == 0 {
		return bin, nil
	}
	return bin, buildAll(ctx, final, progress)
}

// checkGivenAssets refuses a folder of the user's that even a bare control plane cannot start from.
func checkGivenAssets(dir string) error {
	missing := missingBinaries(dir, []string{"etcd", "kube-apiserver", "kubectl"})
	if len(missing) > 0 {
		return fmt.Errorf("%s=%s: no %s in this folder; unset the variable to have them built",
			assetsVariable, dir, strings.Join(missing, ", "))
	}
	return nil
}

func allBinaryNames() []string {
	names := make([]string, 0, len(binaries))
	for _, b := range binaries {
		names = append(names, b.name)
	}
	return names
}

// missingBinaries returns those names that are no executable file in dir.
func missingBinaries(dir string, names []string) []string {
	var missing []string
	for _, name := range names {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			missing = append(missing, name)
		}
	}
	return missing
}

// buildAll builds into a folder beside final and moves it there when it is whole, so that nobody
// ever sees half a set. The caller holds the lock.
func buildAll(ctx context.Context, final string, progress io.Writer) error {
	// What a killed build left behind is nobody's now: the lock is ours.
	leftovers, err := filepath.Glob(final + ".building-*")
	if err != nil {
		return err
	}
	for _, dir := range leftovers {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	work, err := os.MkdirTemp(filepath.Dir(final), filepath.Base(final)+".building-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)

	fmt.Fprintln(progress, "building the local control plane from Go modules: first time, about ten minutes")
	source := filepath.Join(work, "source")
	if err := writeBuildModule(source); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(work, "bin"), 0o755); err != nil {
		return err
	}
	for i, b := range binaries {
		fmt.Fprintf(progress, "[%d/%d] %s … ", i+1, len(binaries), b.name)
		start := time.Now()
		if err := buildOne(ctx, b, source, filepath.Join(work, "bin", b.name)); err != nil {
			fmt.Fprintln(progress, "failed")
			return err
		}
		fmt.Fprintf(progress, "done in %.0fs\n", time.Since(start).Seconds())
	}
	if err := os.RemoveAll(source); err != nil {
		return err
	}
	return publish(work, final)
}

// writeBuildModule writes the embedded go.mod and go.sum to dir. Building there, and not in the
// clone, makes sure that what is built is what the cache key was made from.
func writeBuildModule(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := recipeFiles.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func buildOne(ctx context.Context, b binary, source, output string) error {
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", buildArgs(b, output)...)
	cmd.Dir = source
	cmd.Env = buildEnv()
	cmd.Stdout, cmd.Stderr = &log, &log
	// Interrupted, the go command ends its compilers and removes its temporary files.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	// No build goes on unseen after a kill of this command, in the way of the next one.
	cmd.SysProcAttr = childAttributes()
	err := spawnFromOneThread(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if ctx.Err() != nil {
		return fmt.Errorf("building %s: interrupted", b.name)
	}
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("building %s: no go command in PATH", b.name)
	}
	if err != nil {
		return fmt.Errorf("building %s (%s): %w\n%s", b.name, b.importPath, err, lastLines(log.String(), 20))
	}
	return nil
}

// publish moves the finished folder to its final name, atomically. A damaged set that is there
// already (a binary deleted by hand) goes first: a rename does not replace a folder with content.
func publish(work, final string) error {
	// MkdirTemp makes folders private; the binaries are no secret.
	if err := os.Chmod(work, 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(final); err != nil {
		return err
	}
	return os.Rename(work, final)
}

// lastLines returns the last n lines of text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
