package scenarios

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"
)

// serviceAccount is the operator's, in its namespace.
const serviceAccount = "upgrade-gate-operator"

// manifests are the rights that the project ships, in config/rbac.
type manifests struct {
	roles               []rbacv1.Role
	roleBindings        []rbacv1.RoleBinding
	clusterRoles        []rbacv1.ClusterRole
	clusterRoleBindings []rbacv1.ClusterRoleBinding
}

func readManifests(folder string) (*manifests, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	out := &manifests{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, document := range bytes.Split(data, []byte("\n---")) {
			if err := out.add(document); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	if len(out.roles) == 0 || len(out.roleBindings) == 0 {
		return nil, fmt.Errorf("%s holds no Role or no RoleBinding: the operator cannot be given its own rights", folder)
	}
	return out, nil
}

func (m *manifests) add(document []byte) error {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return err
	}
	switch kind.Kind {
	case "Role":
		return appendTo(&m.roles, document)
	case "RoleBinding":
		return appendTo(&m.roleBindings, document)
	case "ClusterRole":
		return appendTo(&m.clusterRoles, document)
	case "ClusterRoleBinding":
		return appendTo(&m.clusterRoleBindings, document)
	}
	return nil
}

func appendTo[T any](list *[]T, document []byte) error {
	var object T
	if err := yaml.UnmarshalStrict(document, &object); err != nil {
		return err
	}
	*list = append(*list, object)
	return nil
}

// identity is what an operator of one scenario may do, and under which name.
type identity struct {
	c         *cluster
	namespace string
	// granted are the component kinds, group by group, that an administrator lets
	// this operator read.
	granted []rbacv1.PolicyRule
}

// install makes the account and gives it exactly the shipped rights, with the
// scenario's namespace in place of the shipped one. Cluster-wide objects get the
// namespace in their name, so that scenarios do not meet.
func (id *identity) install(ctx context.Context) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: serviceAccount}}
	_, err := id.c.kube.CoreV1().ServiceAccounts(id.namespace).Create(ctx, account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	rbac := id.c.kube.RbacV1()
	for _, role := range id.c.rights.roles {
		role.Namespace = id.namespace
		if _, err := rbac.Roles(id.namespace).Create(ctx, &role, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, binding := range id.c.rights.roleBindings {
		binding := id.bound(binding.Name, binding.Subjects, binding.RoleRef)
		role := rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: binding.name}, Subjects: binding.subjects, RoleRef: binding.role}
		if _, err := rbac.RoleBindings(id.namespace).Create(ctx, &role, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, role := range id.c.rights.clusterRoles {
		created := id.effective(role)
		if _, err := rbac.ClusterRoles().Create(ctx, &created, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, binding := range id.c.rights.clusterRoleBindings {
		binding := id.bound(binding.Name, binding.Subjects, binding.RoleRef)
		role := rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: id.own(binding.name)}, Subjects: binding.subjects, RoleRef: binding.role}
		if _, err := rbac.ClusterRoleBindings().Create(ctx, &role, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (id *identity) own(name string) string { return name + "-" + id.namespace }

type boundRole struct {
	name     string
	subjects []rbacv1.Subject
	role     rbacv1.RoleRef
}

func (id *identity) bound(name string, subjects []rbacv1.Subject, role rbacv1.RoleRef) boundRole {
	out := boundRole{name: name, role: role}
	for _, subject := range subjects {
		if subject.Kind == rbacv1.ServiceAccountKind {
			subject.Namespace, subject.Name = id.namespace, serviceAccount
		}
		out.subjects = append(out.subjects, subject)
	}
	if role.Kind == "ClusterRole" {
		out.role.Name = id.own(role.Name)
	}
	return out
}

// effective is a shipped ClusterRole as a cluster's aggregation would fill it.
// The control plane here has no controllers, so that this is done by hand: with
// the shipped roles whose labels match, and with what was granted.
func (id *identity) effective(role rbacv1.ClusterRole) rbacv1.ClusterRole {
	out := rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: id.own(role.Name)}, Rules: role.Rules}
	if role.AggregationRule == nil {
		return out
	}
	out.Rules = append([]rbacv1.PolicyRule(nil), id.granted...)
	for _, other := range id.c.rights.clusterRoles {
		for _, selector := range role.AggregationRule.ClusterRoleSelectors {
			chosen, err := metav1.LabelSelectorAsSelector(&selector)
			if err == nil && chosen.Matches(labels.Set(other.Labels)) {
				out.Rules = append(out.Rules, other.Rules...)
			}
		}
	}
	return out
}

// grant lets the operator read one more resource; revoke takes that back.
func (id *identity) grant(ctx context.Context, group, resource string) error {
	id.granted = append(id.granted, readable(group, resource))
	return id.update(ctx)
}

func readable(group, resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"get", "list", "watch"}}
}

func (id *identity) revoke(ctx context.Context, group, resource string) error {
	var kept []rbacv1.PolicyRule
	for _, rule := range id.granted {
		if rule.APIGroups[0] != group || rule.Resources[0] != resource {
			kept = append(kept, rule)
		}
	}
	if len(kept) == len(id.granted) {
		return fmt.Errorf("%s is not granted", resource)
	}
	id.granted = kept
	return id.update(ctx)
}

func (id *identity) update(ctx context.Context) error {
	aggregated := false
	for _, role := range id.c.rights.clusterRoles {
		if role.AggregationRule == nil {
			continue
		}
		aggregated = true
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			stored, err := id.c.kube.RbacV1().ClusterRoles().Get(ctx, id.own(role.Name), metav1.GetOptions{})
			if err != nil {
				return err
			}
			stored.Rules = id.effective(role).Rules
			_, err = id.c.kube.RbacV1().ClusterRoles().Update(ctx, stored, metav1.UpdateOptions{})
			return err
		})
		if err != nil {
			return err
		}
	}
	if !aggregated {
		return errors.New("config/rbac has no aggregated ClusterRole for component kinds")
	}
	return nil
}

// config logs in as the account, as a pod would: with a token.
func (id *identity) config(ctx context.Context) (*rest.Config, error) {
	hour := int64(time.Hour / time.Second)
	token, err := id.c.kube.CoreV1().ServiceAccounts(id.namespace).CreateToken(ctx, serviceAccount,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	out := rest.AnonymousClientConfig(id.c.admin)
	out.BearerToken = token.Status.Token
	out.QPS, out.Burst = -1, 0
	return out, nil
}

func (id *identity) remove(ctx context.Context) {
	for _, role := range id.c.rights.clusterRoles {
		_ = id.c.kube.RbacV1().ClusterRoles().Delete(ctx, id.own(role.Name), metav1.DeleteOptions{})
	}
	for _, binding := range id.c.rights.clusterRoleBindings {
		_ = id.c.kube.RbacV1().ClusterRoleBindings().Delete(ctx, id.own(binding.Name), metav1.DeleteOptions{})
	}
}

// kubeconfig writes a file that leads through the proxy. It holds no credentials:
// the proxy adds them.
func kubeconfig(path, server string) error {
	text := strings.ReplaceAll(`apiVersion: v1
kind: Config
clusters: [{name: proxy, cluster: {server: SERVER}}]
users: [{name: operator, user: {}}]
contexts: [{name: proxy, context: {cluster: proxy, user: operator}}]
current-context: proxy
`, "SERVER", server)
	return os.WriteFile(path, []byte(text), 0o600)
}
