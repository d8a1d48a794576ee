package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// kubeconfigTemplate: %[1]q name, %[2]q server, %[3]s CA certificate in base64, %[4]q token.
const kubeconfigTemplate = `apiVersion: v1
kind: Config
current-context: %[1]q
clusters:
- name: %[1]q
  cluster:
    server: %[2]q
    certificate-authority-data: %[3]s
contexts:
- name: %[1]q
  context:
    cluster: %[1]q
    user: %[1]q
users:
- name: %[1]q
  user:
    token: %[4]q
`

// writeKubeconfig writes a cluster-admin's kubeconfig, for this user's eyes only. It is written
// aside and renamed, so that nobody reads half of it or gets at it before its mode is set.
func writeKubeconfig(path, name, server string, c *credentials) error {
	content := fmt.Sprintf(kubeconfigTemplate, name, server,
		base64.StdEncoding.EncodeToString(c.authority), c.adminToken)
	file, err := os.CreateTemp(filepath.Dir(path), ".kubeconfig-") // mode 0600, by its contract
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if _, err := file.WriteString(content); err != nil {
		file.Close()
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// exportLine is the shell command that selects a kubeconfig.
func exportLine(path string) string {
	return "export KUBECONFIG=" + shellQuote(path)
}

// shellQuote quotes text for a POSIX shell where that is needed.
func shellQuote(text string) string {
	plain := func(r rune) bool {
		return strings.ContainsRune("/._-+,@%", r) ||
			r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
