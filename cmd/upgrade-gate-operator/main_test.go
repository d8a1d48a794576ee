package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func environment(pairs ...string) lookup {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func TestUnusableInputEndsWithCodeTwoAndSaysWhatToDo(t *testing.T) {
	cases := map[string]struct {
		arguments []string
		env       lookup
		want      string
	}{
		"a namespace that nobody set": {nil, environment(),
			"the operator's namespace is not known: set --namespace or POD_NAMESPACE (in a pod, from the downward API's metadata.namespace)"},
		"an empty name of the OperatorCondition": {[]string{"--namespace", "x"}, environment("OPERATOR_CONDITION_NAME", ""),
			"OPERATOR_CONDITION_NAME is set but empty: OLM sets it to the CSV's name; unset it to run without OLM"},
		"a kubeconfig that is not there": {[]string{"--namespace", "x", "--kubeconfig", "/does/not/exist"}, environment(),
			"--kubeconfig /does/not/exist cannot be used"},
		"an unknown log level": {[]string{"--namespace", "x", "--log-level", "loud"}, environment(),
			`--log-level is "loud": use error, warn, info or debug`},
		"an unknown log format": {[]string{"--namespace", "x", "--log-format", "xml"}, environment(),
			`--log-format is "xml": use json or text`},
		"an argument that is no flag": {[]string{"start"}, environment(),
			`unexpected argument "start": the operator takes flags only, see --help`},
		"an unknown flag": {[]string{"--no-such-flag"}, environment(),
			"flag provided but not defined: -no-such-flag"},
		"election times that cannot work": {[]string{"--namespace", "x", "--leader-elect-renew-deadline", "20s"}, environment(),
			"the leader election needs lease duration > renew deadline > retry period > 0"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			require.Equal(t, exitUsage, run(t.Context(), c.arguments, c.env, &stdout, &stderr))
			require.Contains(t, stderr.String(), c.want)
			require.Empty(t, stdout.String())
		})
	}
}

func TestAGarbledKubeconfigIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte("{not yaml"), 0o600))
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"--namespace", "x", "--kubeconfig", path}, environment(), &bytes.Buffer{}, &stderr)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr.String(), "--kubeconfig "+path+" cannot be used")
}

func TestVersionAndHelpNeedNothingElse(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), []string{"--version"}, environment(), &stdout, &stderr))
	require.True(t, strings.HasPrefix(stdout.String(), "upgrade-gate-operator 0.0.0-dev, commit unknown, go1."), stdout.String())
	require.Equal(t, exitOK, run(t.Context(), []string{"--help"}, environment(), &stdout, &stderr))
	require.Contains(t, stderr.String(), "-require-gate")
}

func TestTheNamespaceIsTakenFromTheNearestSource(t *testing.T) {
	file := filepath.Join(t.TempDir(), "namespace")
	require.NoError(t, os.WriteFile(file, []byte("from-file\n"), 0o600))
	cases := map[string]struct {
		flag string
		env  lookup
		want string
	}{
		"the flag comes first":             {"from-flag", environment("POD_NAMESPACE", "from-env"), "from-flag"},
		"then the environment":             {"", environment("POD_NAMESPACE", "from-env"), "from-env"},
		"then the service account":         {"", environment(), "from-file"},
		"an empty variable is no variable": {"", environment("POD_NAMESPACE", ""), "from-file"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o, err := parse([]string{"--namespace", c.flag}, &bytes.Buffer{})
			require.NoError(t, err)
			require.NoError(t, o.complete(c.env, file))
			require.Equal(t, c.want, o.namespace)
		})
	}
}
