package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	opcrds "github.com/operator-framework/api/crds"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/upgrade-gate/upgrade-gate/api/v1alpha1"
)

// connect logs in as the cluster's administrator.
func connect(kubeconfig string) (*rest.Config, client.WithWatch, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil, fmt.Errorf("the kubeconfig %s cannot be used: %w", kubeconfig, err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, operatorsv2.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, nil, err
		}
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	return config, c, err
}

// refuseForeign keeps the demo out of a cluster that is used for something else.
func refuseForeign(ctx context.Context, c client.Client) error {
	err := c.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("the cluster does not answer: %w", err)
	}
	return errors.New("the cluster has a namespace " + namespace + " already: the demo needs a cluster of its own")
}

const manifests = "test/demo/manifests/"

// setUp installs the kinds, the product's components and what OLM would make.
// Nobody works on the components yet, except for kube-controller-manager.
func (s *story) setUp(ctx context.Context) error {
	s.screen.heading("The cluster is up. The product is installed, and the operator, as OLM would install it")
	olm, err := yaml.Marshal(opcrds.OperatorCondition())
	if err != nil {
		return err
	}
	if _, err := s.kubectl.run(ctx, olm, "create", "-f", "-"); err != nil {
		return err
	}
	s.screen.say("The kinds: the UpgradeGate, OLM's OperatorCondition, and the product's Database and Storage.")
	if err := s.kubectl.mention(ctx, "apply", "-k", "config/crd"); err != nil {
		return err
	}
	if err := s.kubectl.mention(ctx, "apply", "-f", manifests+"kinds.yaml"); err != nil {
		return err
	}
	if _, err := s.kubectl.run(ctx, nil, "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"); err != nil {
		return err
	}
	s.screen.say("Three components: Deployment ingress, Database main, Storage main.")
	if err := s.kubectl.mention(ctx, "apply", "-f", manifests+"components.yaml"); err != nil {
		return err
	}
	s.screen.say("The operator's rights: those that it ships with, and to read the kinds of the components.")
	for _, arguments := range [][]string{
		{"create", "namespace", namespace},
		{"apply", "-k", "config/rbac", "-n", namespace},
		{"apply", "-f", manifests + "rights.yaml"},
	} {
		if err := s.kubectl.mention(ctx, arguments...); err != nil {
			return err
		}
	}
	s.screen.say("What OLM makes: the operator's Deployment, and an OperatorCondition without any condition.")
	if err := s.kubectl.mention(ctx, "apply", "-f", manifests+"olm.yaml"); err != nil {
		return err
	}
	if _, err := s.kubectl.run(ctx, nil, "apply", "-f", manifests+"controllers.yaml"); err != nil {
		return err
	}
	return s.waitForSetUp(ctx)
}

// waitForSetUp waits for what the cluster's own controllers make of it.
func (s *story) waitForSetUp(ctx context.Context) error {
	return s.poll(ctx, "the cluster to roll out the Deployments and to aggregate the operator's rights", func(ctx context.Context) error {
		var role rbacv1.ClusterRole
		if err := s.client.Get(ctx, client.ObjectKey{Name: "upgrade-gate-component-reader"}, &role); err != nil {
			return err
		}
		if len(role.Rules) == 0 {
			return errors.New("ClusterRole upgrade-gate-component-reader is empty")
		}
		if _, err := operatorPod(ctx, s.client); err != nil {
			return err
		}
		_, err := s.kubectl.run(ctx, nil, "rollout", "status", "deployment/ingress", "-n", "ingress", "--timeout=1s")
		return err
	})
}

// operatorPod is the pod that kwok reports as running, and whose part the
// operator's process plays.
func operatorPod(ctx context.Context, c client.Client) (string, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app": operatorName}); err != nil {
		return "", err
	}
	if len(pods.Items) != 1 || pods.Items[0].Status.Phase != corev1.PodRunning {
		return "", errors.New("Deployment " + operatorName + " has no running pod")
	}
	return pods.Items[0].Name, nil
}

// poll waits for something that no watch of ours shows.
func (s *story) poll(ctx context.Context, what string, try func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, s.patience, true, func(ctx context.Context) (bool, error) {
		last = try(ctx)
		return last == nil, nil
	})
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("waited %s for %s: %w", s.patience, what, last)
}
