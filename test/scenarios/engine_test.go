package scenarios

import (
	"net/http/httptest"
	"reflect"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		method, url                        string
		verb, group, resource, ns, objName string
	}{
		{"GET", "/apis/operators.coreos.com/v2/namespaces/n/operatorconditions/o", "get", "operators.coreos.com", "operatorconditions", "n", "o"},
		{"GET", "/apis/operators.coreos.com/v2/namespaces/n/operatorconditions", "list", "operators.coreos.com", "operatorconditions", "n", ""},
		{"GET", "/apis/test.example.com/v1/widgets?watch=true", "watch", "test.example.com", "widgets", "", ""},
		{"PUT", "/apis/upgradegate.io/v1alpha1/namespaces/n/upgradegates/g/status", "update", "upgradegate.io", "upgradegates/status", "n", "g"},
		{"PATCH", "/apis/operators.coreos.com/v2/namespaces/n/operatorconditions/o", "patch", "operators.coreos.com", "operatorconditions", "n", "o"},
		{"POST", "/api/v1/namespaces/n/events", "create", "", "events", "n", ""},
		{"DELETE", "/api/v1/namespaces/n/pods", "deletecollection", "", "pods", "n", ""},
		{"GET", "/api/v1/namespaces/n", "get", "", "namespaces", "", "n"},
		{"GET", "/apis/test.example.com/v1", "get", "", "/apis/test.example.com/v1", "", ""},
		{"GET", "/version", "get", "", "/version", "", ""},
	} {
		got := classify(httptest.NewRequest(c.method, c.url, nil))
		want := request{verb: c.verb, group: c.group, resource: c.resource, ns: c.ns, name: c.objName}
		if got != want {
			t.Errorf("%s %s: got %+v, want %+v", c.method, c.url, got, want)
		}
	}
}

func TestRules(t *testing.T) {
	twice, err := parseRule([]string{"fail", "write", "upgradegates/status", "409", "2", "times"})
	if err != nil {
		t.Fatal(err)
	}
	always, err := parseRule([]string{"fail", "get", "widgets", "500"})
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{rules: []*rule{twice, always}}
	write := request{verb: "update", group: "upgradegate.io", resource: "upgradegates/status"}
	read := request{verb: "get", resource: "widgets"}
	var hits []bool
	for range 3 {
		hits = append(hits, p.match(write) != nil, p.match(read) != nil)
	}
	if want := []bool{true, true, true, true, false, true}; !reflect.DeepEqual(hits, want) {
		t.Errorf("hits %v, want %v", hits, want)
	}
	if p.match(request{verb: "list", resource: "widgets"}) != nil {
		t.Error("a rule for get matches list")
	}
	for _, bad := range [][]string{{}, {"fail", "get", "widgets"}, {"fail", "get", "widgets", "soon"}, {"break", "get", "widgets", "1"}} {
		if _, err := parseRule(bad); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}

func TestNewStatus(t *testing.T) {
	status, err := newStatus(4, []string{"green", "Degraded=True", "Progressing=missing", "reason=Broken", "observed=behind", "version=1.2"})
	if err != nil {
		t.Fatal(err)
	}
	var conditions []string
	for _, c := range status["conditions"].([]any) {
		c := c.(map[string]any)
		conditions = append(conditions, c["type"].(string)+"="+c["status"].(string)+"/"+c["reason"].(string))
		if c["observedGeneration"] != int64(3) {
			t.Errorf("observedGeneration %v", c["observedGeneration"])
		}
	}
	if want := []string{"Available=True/Broken", "Degraded=True/Broken"}; !reflect.DeepEqual(conditions, want) {
		t.Errorf("conditions %v, want %v", conditions, want)
	}
	if status["observedGeneration"] != int64(3) || status["version"] != "1.2" {
		t.Errorf("status %v", status)
	}
	raw, err := newStatus(7, []string{"raw", `{"observedGeneration": @generation}`})
	if err != nil || raw["observedGeneration"] != float64(7) {
		t.Errorf("raw %v, %v", raw, err)
	}
	if _, err := newStatus(1, []string{"gren"}); err == nil {
		t.Error("a misspelt report was accepted")
	}
}

// The rights of a scenario are the shipped ones, with its own namespace and
// nothing more than what it granted.
func TestRightsOfAScenario(t *testing.T) {
	shipped := &manifests{clusterRoles: []rbacv1.ClusterRole{
		{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, AggregationRule: &rbacv1.AggregationRule{
			ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"aggregate": "yes"}}}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "own", Labels: map[string]string{"aggregate": "yes"}}, Rules: []rbacv1.PolicyRule{readable("a", "b")}},
		{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Rules: []rbacv1.PolicyRule{readable("c", "d")}},
	}}
	id := &identity{c: &cluster{rights: shipped}, namespace: "ns", granted: []rbacv1.PolicyRule{readable("e", "f")}}
	got := id.effective(shipped.clusterRoles[0])
	if want := []rbacv1.PolicyRule{readable("e", "f"), readable("a", "b")}; !reflect.DeepEqual(got.Rules, want) || got.Name != "reader-ns" {
		t.Errorf("%s: %v, want %v", got.Name, got.Rules, want)
	}
	if got := id.effective(shipped.clusterRoles[2]); !reflect.DeepEqual(got.Rules, []rbacv1.PolicyRule{readable("c", "d")}) || got.AggregationRule != nil {
		t.Errorf("a plain role became %v", got)
	}
	bound := id.bound("b", []rbacv1.Subject{{Kind: "ServiceAccount", Name: serviceAccount, Namespace: "shipped"}}, rbacv1.RoleRef{Kind: "ClusterRole", Name: "reader"})
	if bound.subjects[0].Namespace != "ns" || bound.role.Name != "reader-ns" {
		t.Errorf("bound %+v", bound)
	}
}
