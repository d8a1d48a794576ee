package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// helperVariable makes the test binary play another process: see TestMain.
const helperVariable = "LOCALCLUSTER_TEST_HELPER"

func TestMain(m *testing.M) {
	if helper := os.Getenv(helperVariable); helper != "" {
		playHelper(helper)
		return
	}
	os.Exit(m.Run())
}

func TestCommandLines(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for _, test := range []struct {
		args   string
		code   int
		stdout string
		stderr string
	}{
		{"", 2, "", "Usage:"},
		{"-h", 0, "Usage:", ""},
		{"nonsense", 2, "", `unknown command "nonsense"`},
		{"assets -h", 0, "prints the folder", ""},
		{"run -h", 0, "-control-plane-only", ""},
		{"up -h", 0, "-name NAME", ""},
		{"down -h", 0, "-dir DIR", ""},
		{"status -h", 0, "-name NAME", ""},
		{"assets --name x", 2, "", "flag provided but not defined: -name"},
		{"down --control-plane-only", 2, "", "flag provided but not defined"},
		{"run extra", 2, "", `unexpected argument "extra"`},
		{"up --name", 2, "", "flag needs an argument"},
		{"up --name x --dir y", 2, "", "not both"},
		{"up --name ../x", 2, "", "lower case letters"},
		{"up --name X", 2, "", "lower case letters"},
		{"status --name other", 1, `cluster "other" is not up`, ""},
		{"down", 0, "", `cluster "default" is not up`},
	} {
		var stdout, stderr bytes.Buffer
		code := execute(t.Context(), strings.Fields(test.args), &stdout, &stderr)
		if code != test.code || !strings.Contains(stdout.String(), test.stdout) || !strings.Contains(stderr.String(), test.stderr) {
			t.Errorf("localcluster %s: exit code %d\nstdout: %s\nstderr: %s\nwant %+v",
				test.args, code, &stdout, &stderr, test)
		}
		if code == 2 && test.args != "" && !strings.Contains(stderr.String(), "-h\"") {
			t.Errorf("localcluster %s: no hint where to find help: %s", test.args, &stderr)
		}
	}
}

func TestInstanceFolders(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/cache")
	for args, want := range map[string]arguments{
		"":                     {name: "default", dir: "/cache/upgrade-gate/run/default"},
		"--name other":         {name: "other", dir: "/cache/upgrade-gate/run/other"},
		"--dir /somewhere/one": {name: "one", dir: "/somewhere/one"},
		"--control-plane-only": {name: "default", dir: "/cache/upgrade-gate/run/default", controlPlaneOnly: true},
	} {
		got, err := parseArguments("up", commands()["up"], strings.Fields(args), &bytes.Buffer{})
		if err != nil || *got != want {
			t.Errorf("%q: %+v, %v; want %+v", args, got, err, want)
		}
	}
	got, err := parseArguments("up", commands()["up"], []string{"--dir", "relative"}, &bytes.Buffer{})
	if err != nil || !filepath.IsAbs(got.dir) {
		t.Errorf("a relative folder: %+v, %v", got, err)
	}
}
