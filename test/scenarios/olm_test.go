package scenarios

import (
	"context"
	"fmt"
	"sync"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/rogpeppe/go-internal/testscript"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/upgrade-gate/upgrade-gate/test/olmdouble"
)

// olm plays OLM v0: its copy from spec to status, its Role, and its decision.
func olm(s *scenario, ts *testscript.TestScript, args []string) error {
	if len(args) == 0 {
		return usage("olm start|stop|creates|decide|deploy ...")
	}
	switch args[0] {
	case "start":
		return s.startOLM()
	case "stop":
		s.stopOLM()
		return nil
	case "creates":
		if len(args) != 2 {
			return usage("olm creates OPERATORCONDITION")
		}
		return s.makeOperatorCondition(args[1])
	case "decide":
		return s.olmDecides(ts.Getenv("OC"), args[1:])
	case "deploy":
		return s.deployOperator(ts.Getenv("OC"), args[1:])
	}
	return fmt.Errorf("olm cannot %s", args[0])
}

func (s *scenario) startOLM() error {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- olmdouble.Run(ctx, s.c.admin, s.ns) }()
	s.stopOLM = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && ctx.Err() == nil {
			s.t.Errorf("the double of OLM failed: %v", err)
		}
	})
	return nil
}

// olmDecides waits until OLM's rule has that outcome for a successor of the CSV.
func (s *scenario) olmDecides(name string, args []string) error {
	if len(args) == 0 || args[0] != "allowed" && args[0] != "blocked" {
		return usage("olm decide allowed|blocked [TEXT...] [within DURATION]")
	}
	args, limit, err := within(args)
	if err != nil {
		return err
	}
	return s.eventually(limit, func() (bool, string) {
		live, err := s.c.dynamic.Resource(operatorConditions).Namespace(s.ns).Get(s.ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return false, err.Error()
		}
		var oc operatorsv2.OperatorCondition
		if err == nil {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &oc); err != nil {
				return false, err.Error()
			}
		}
		allowed, message := olmdouble.Decide(&oc, err == nil)
		return allowed == (args[0] == "allowed") && containsAll(message, args[1:]),
			fmt.Sprintf("OLM decides allowed=%t %s", allowed, message)
	})
}

// deployOperator makes the objects in which the operator finds itself: a
// Deployment of the CSV, its ReplicaSet, and one pod for each name. Nothing runs
// them; the processes that `operator start NAME` starts play the pods.
func (s *scenario) deployOperator(csv string, pods []string) error {
	if len(pods) == 0 {
		pods = []string{"operator"}
	}
	labels := map[string]string{"app": "gate"}
	replicas := int32(len(pods))
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "gate"}}},
	}
	deployment, err := s.c.kube.AppsV1().Deployments(s.ns).Create(s.ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "gate", Labels: map[string]string{
			"olm.owner": csv, "olm.owner.namespace": s.ns, "olm.owner.kind": "ClusterServiceVersion", "olm.managed": "true",
		}},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	set, err := s.c.kube.AppsV1().ReplicaSets(s.ns).Create(s.ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "gate-1", Labels: labels, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment")),
		}},
		Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for _, name := range pods {
		_, err := s.c.kube.CoreV1().Pods(s.ns).Create(s.ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")),
			}},
			Spec: template.Spec,
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	return nil
}
