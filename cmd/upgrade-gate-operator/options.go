package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

// lookup reads one environment variable, as os.LookupEnv does.
type lookup func(name string) (string, bool)

// options are the flags and the environment, checked.
type options struct {
	kubeconfig    string
	namespace     string
	leaderElect   bool
	healthAddress string

	metricsAddress string
	metricsSecure  bool

	requireGate bool
	logLevel    string
	logFormat   string
	showVersion bool

	// Times of the leader election; hidden from no one, changed by few.
	leaseDuration time.Duration
	renewDeadline time.Duration
	retryPeriod   time.Duration

	// operatorCondition is the name in OPERATOR_CONDITION_NAME; empty when OLM v0
	// did not install the operator.
	operatorCondition string
	podName           string
}

func parse(arguments []string, stderr io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("upgrade-gate-operator", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "path of a kubeconfig; default: KUBECONFIG, else the service account of the pod")
	flags.StringVar(&o.namespace, "namespace", "", "namespace of the operator and its gates; default: POD_NAMESPACE, else the service account's")
	flags.BoolVar(&o.leaderElect, "leader-elect", true, "let only one of several replicas judge and publish")
	flags.StringVar(&o.healthAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 for none")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443", "address of /metrics; 0 for none")
	flags.BoolVar(&o.metricsSecure, "metrics-secure", true, "serve metrics over TLS, to authenticated and authorised clients only")
	flags.BoolVar(&o.requireGate, "require-gate", false, "keep OLM's brake on while there is no UpgradeGate")
	flags.StringVar(&o.logLevel, "log-level", "info", "error, warn, info or debug")
	flags.StringVar(&o.logFormat, "log-format", "json", "json or text")
	flags.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", 15*time.Second, "how long a silent leader is waited for")
	flags.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 10*time.Second, "how long a leader tries to renew before it gives up")
	flags.DurationVar(&o.retryPeriod, "leader-elect-retry-period", 2*time.Second, "how often the Lease is tried")
	flags.BoolVar(&o.showVersion, "version", false, "print version, commit and Go version, and exit")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: the operator takes flags only, see --help", flags.Arg(0))
	}
	return o, nil
}

// serviceAccountNamespace is where Kubernetes tells a pod its namespace.
const serviceAccountNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// complete checks the flags and fills in what comes from the environment. Each
// error names the flag or variable and the remedy.
func (o *options) complete(env lookup, namespaceFile string) error {
	if name, set := env("OPERATOR_CONDITION_NAME"); set {
		if name == "" {
			return errors.New("OPERATOR_CONDITION_NAME is set but empty: OLM sets it to the CSV's name; unset it to run without OLM")
		}
		o.operatorCondition = name
	}
	if err := o.completeNamespace(env, namespaceFile); err != nil {
		return err
	}
	if !slices.Contains([]string{"error", "warn", "info", "debug"}, o.logLevel) {
		return fmt.Errorf("--log-level is %q: use error, warn, info or debug", o.logLevel)
	}
	if !slices.Contains([]string{"json", "text"}, o.logFormat) {
		return fmt.Errorf("--log-format is %q: use json or text", o.logFormat)
	}
	if o.leaseDuration <= o.renewDeadline || o.renewDeadline <= o.retryPeriod || o.retryPeriod <= 0 {
		return errors.New("the leader election needs lease duration > renew deadline > retry period > 0: " +
			"correct --leader-elect-lease-duration, --leader-elect-renew-deadline, --leader-elect-retry-period")
	}
	o.podName, _ = env("POD_NAME")
	if o.podName == "" {
		// A pod's host name is its name, unless the pod sets another.
		o.podName, _ = os.Hostname()
	}
	return nil
}

func (o *options) completeNamespace(env lookup, namespaceFile string) error {
	if o.namespace == "" {
		o.namespace, _ = env("POD_NAMESPACE")
	}
	if o.namespace == "" {
		content, err := os.ReadFile(namespaceFile)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("reading the namespace of the service account: %w", err)
		}
		o.namespace = strings.TrimSpace(string(content))
	}
	if o.namespace == "" {
		return errors.New("the operator's namespace is not known: set --namespace or POD_NAMESPACE " +
			"(in a pod, from the downward API's metadata.namespace)")
	}
	return nil
}

func (o *options) restConfig() (*rest.Config, error) {
	if o.kubeconfig == "" {
		c, err := config.GetConfig()
		if err != nil {
			return nil, fmt.Errorf("no way to reach an API server: set --kubeconfig or KUBECONFIG, or run in a pod: %w", err)
		}
		return c, nil
	}
	c, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %s cannot be used: %w", o.kubeconfig, err)
	}
	return c, nil
}

func (o *options) logger(stderr io.Writer) *slog.Logger {
	var level slog.Level
	// complete has checked the text.
	_ = level.UnmarshalText([]byte(o.logLevel))
	if o.logLevel == "debug" {
		// logr's V(1) and V(2) are slog levels -1 and -2.
		level = slog.Level(-2)
	}
	handlerOptions := &slog.HandlerOptions{Level: level}
	if o.logFormat == "text" {
		return slog.New(slog.NewTextHandler(stderr, handlerOptions))
	}
	return slog.New(slog.NewJSONHandler(stderr, handlerOptions))
}

func versionText() string {
	return fmt.Sprintf("upgrade-gate-operator %s, commit %s, %s", version, commit, runtime.Version())
}
