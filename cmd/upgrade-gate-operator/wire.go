package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	apiv2 "github.com/operator-framework/api/pkg/operators/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
	"github.com/upgrade-gate/upgrade-gate/pkg/controller/upgradegate"
	"github.com/upgrade-gate/upgrade-gate/pkg/gate"
	"github.com/upgrade-gate/upgrade-gate/pkg/olm"
	"github.com/upgrade-gate/upgrade-gate/pkg/probe"
	"github.com/upgrade-gate/upgrade-gate/pkg/probe/resource"
	"github.com/upgrade-gate/upgrade-gate/pkg/watch"
)

// operate puts the operator together and runs it until ctx ends.
func operate(ctx context.Context, o *options, config *rest.Config, stderr io.Writer) error {
	handler := o.logger(stderr).Handler()
	log := logr.FromSlogHandler(handler)
	ctrl.SetLogger(log)
	klog.SetSlogLogger(slog.New(handler))
	log.Info("starting", "version", version, "commit", commit, "namespace", o.namespace, "operatorCondition", o.operatorCondition)

	// The API server's priority and fairness limits us, not the client: a closing
	// must never wait behind our own reads.
	config.QPS = -1
	config.UserAgent = "upgrade-gate-operator/" + version
	m, err := newManager(o, config, log)
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	if err := wire(ctx, o, m, log); err != nil {
		return err
	}
	return m.Start(ctx)
}

func newManager(o *options, config *rest.Config, log logr.Logger) (manager.Manager, error) {
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme, apiv2.AddToScheme} {
		if err := add(types); err != nil {
			return nil, err
		}
	}
	serving := metricsserver.Options{BindAddress: o.metricsAddress, SecureServing: o.metricsSecure}
	if o.metricsSecure {
		serving.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return ctrl.NewManager(config, manager.Options{
		Scheme: types,
		Logger: log,
		// Gates elsewhere are not honoured, so they are not even read.
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{o.namespace: {}}},
		Metrics:                       serving,
		HealthProbeBindAddress:        o.healthAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              "upgrade-gate-operator",
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &o.leaseDuration,
		RenewDeadline:                 &o.renewDeadline,
		RetryPeriod:                   &o.retryPeriod,
	})
}

// wire connects the parts; nothing is decided here.
func wire(ctx context.Context, o *options, m manager.Manager, log logr.Logger) error {
	direct, err := client.New(m.GetConfig(), client.Options{Scheme: m.GetScheme(), HTTPClient: m.GetHTTPClient()})
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making a discovery client: %w", err)
	}
	objects, err := dynamic.NewForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making a dynamic client: %w", err)
	}

	// The reconciler is told of changes by parts that it is made of.
	var reconciler *upgradegate.Reconciler
	wake := func() { reconciler.Wake() }

	mode, err := olm.DetectMode(ctx, o.operatorCondition, disco)
	if err != nil {
		return fmt.Errorf("finding out which OLM there is: %w", err)
	}
	log.Info("OLM", "mode", mode)
	owner := ownership(o, mode, direct, log)
	publisher, err := olm.NewPublisher(olm.Config{
		Mode: mode, Client: direct, Namespace: o.namespace, Name: o.operatorCondition, Owner: owner,
		Changed:      wake,
		ForeignWrite: func(found gate.Announcement) { go reconciler.ForeignWrite(ctx, found) },
		Log:          log,
	})
	if err != nil {
		return fmt.Errorf("setting up the publisher: %w", err)
	}
	watcher := watch.New(watch.Config{Client: objects, Discovery: disco, Changed: wake, Log: log})
	resources, err := resource.New()
	if err != nil {
		return err
	}
	policy := gate.Policy{RequireGate: o.requireGate}
	if mode == v1alpha1.OLMModeV0 {
		policy.Override = olm.OverrideCommand(o.namespace, o.operatorCondition)
	}
	reconciler = upgradegate.New(upgradegate.Config{
		Client: m.GetClient(), Live: m.GetAPIReader(),
		LiveComponents: watch.NewLive(watch.LiveConfig{Client: objects, Discovery: disco}),
		Watch:          watcher, Probes: probe.NewRegistry(resources), Publisher: publisher, Owner: owner,
		Metrics: upgradegate.NewMetrics(metrics.Registry), Events: m.GetEventRecorder("upgrade-gate-operator"), Clock: clock.RealClock{}, Log: log,
		Namespace: o.namespace, OperatorVersion: version, Policy: policy,
	})
	if err := reconciler.SetupWithManager(m); err != nil {
		return fmt.Errorf("setting up the controller: %w", err)
	}
	elsewhere := &upgradegate.Elsewhere{
		Client: m.GetClient(), Clock: clock.RealClock{}, Log: log, Namespace: o.namespace,
		NewCache: func() (cache.Cache, error) {
			return cache.New(m.GetConfig(), cache.Options{Scheme: m.GetScheme(), HTTPClient: m.GetHTTPClient()})
		},
	}
	for _, part := range []manager.Runnable{publisher, watcher, elsewhere} {
		if err := m.Add(part); err != nil {
			return fmt.Errorf("adding a part: %w", err)
		}
	}
	if err := m.AddHealthzCheck("alive", healthz.Ping); err != nil {
		return err
	}
	return m.AddReadyzCheck("acknowledged", publisher.Ready)
}

// ownership finds our Deployment, whose label says which CSV it belongs to.
// Without OLM v0 there is no CSV to belong to.
func ownership(o *options, mode v1alpha1.OLMMode, direct client.Client, log logr.Logger) olm.Ownership {
	if mode != v1alpha1.OLMModeV0 {
		return olm.Unowned{}
	}
	return olm.NewOwner(olm.OwnerConfig{
		Client: direct, Namespace: o.namespace, Pod: o.podName, ConditionName: o.operatorCondition, Log: log,
	})
}
