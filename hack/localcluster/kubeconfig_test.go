package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKubeconfigIsPrivateAndWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kubeconfig")
	// What is there already, readable by all, must not lend its mode to the new one.
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := &credentials{authority: []byte("certificate"), adminToken: "a-token"}
	if err := writeKubeconfig(path, "a name", "https://127.0.0.1:1234", c); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, %v", info.Mode(), err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`current-context: "a name"`, `server: "https://127.0.0.1:1234"`,
		"certificate-authority-data: Y2VydGlmaWNhdGU=", `token: "a-token"`} {
		if !strings.Contains(string(content), want) {
			t.Errorf("no %q in:\n%s", want, content)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("temporary files are left: %v, %v", entries, err)
	}
}

func TestExportLine(t *testing.T) {
	for path, want := range map[string]string{
		"/home/me/.cache/x": "export KUBECONFIG=/home/me/.cache/x",
		"/with space/x":     "export KUBECONFIG='/with space/x'",
		"/it's $HOME":       `export KUBECONFIG='/it'\''s $HOME'`,
	} {
		if got := exportLine(path); got != want {
			t.Errorf("exportLine(%q) = %s; want %s", path, got, want)
		}
	}
}

func TestCredentials(t *testing.T) {
	c, err := createCredentials(filepath.Join(t.TempDir(), "credentials"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := createCredentials(filepath.Join(t.TempDir(), "credentials"))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.adminToken) != 64 || c.adminToken == other.adminToken {
		t.Errorf("tokens %q and %q", c.adminToken, other.adminToken)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.authority)
	pair, err := tls.LoadX509KeyPair(c.serverCert(), c.serverKey())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: loopback}); err != nil {
		t.Errorf("the server's certificate: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(c.dir, "*"))
	if err != nil || len(files) != 7 {
		t.Fatalf("files = %v, %v", files, err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", file, info.Mode(), err)
		}
	}
}
