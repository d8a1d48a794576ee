package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// kubectl runs kubectl as the cluster's administrator, in the root of the project,
// so that a viewer can repeat each command that is shown.
type kubectl struct {
	place  *place
	root   string
	folder string
	screen *screen
}

// show runs a command, and shows it with what it prints.
func (k *kubectl) show(ctx context.Context, arguments ...string) error {
	output, err := k.run(ctx, nil, arguments...)
	if err == nil {
		k.screen.command("kubectl "+quoted(arguments), output)
	}
	return err
}

// mention runs a command, and shows it without what it prints.
func (k *kubectl) mention(ctx context.Context, arguments ...string) error {
	_, err := k.run(ctx, nil, arguments...)
	if err == nil {
		k.screen.command("kubectl "+quoted(arguments), "")
	}
	return err
}

func (k *kubectl) run(ctx context.Context, input []byte, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, k.place.kubectl, arguments...)
	cmd.Dir = k.root
	cmd.Stdin = bytes.NewReader(input)
	// Nothing of the viewer's own settings: aliases, caches, other clusters.
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + k.folder,
		"KUBECONFIG=" + k.place.kubeconfig, "KUBECACHEDIR=" + filepath.Join(k.folder, "cache"),
	}
	output, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s", quoted(arguments), err, bytes.TrimSpace(output))
	}
	return string(output), nil
}

// quoted is how a shell wants the arguments.
func quoted(arguments []string) string {
	words := make([]string, len(arguments))
	for i, word := range arguments {
		words[i] = word
		if word == "" || strings.ContainsAny(word, " '\"{}[]()*?$&|;<>\\`!#~") {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
