package scenarios

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// The judge's own tests forge histories. This one shows that recorder and proxy
// bring a real history to it: a client that behaves as no operator may is caught.
func TestABadOperatorIsCaught(t *testing.T) {
	s := newScenario(t, t.TempDir())
	t.Cleanup(s.cleanUp)
	if err := s.prepare(); err != nil {
		t.Fatal(err)
	}
	if err := s.startOLM(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.stopOLM() })
	address, stop, err := s.proxy.listen("bad", func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	bad, err := dynamic.NewForConfig(&rest.Config{Host: address})
	if err != nil {
		t.Fatal(err)
	}
	gate := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "upgradegate.io/v1alpha1", "kind": "UpgradeGate", "metadata": map[string]any{"name": "platform"},
		"spec": map[string]any{"components": []any{map[string]any{"name": "a", "resource": map[string]any{
			"apiVersion": "test.example.com/v1", "kind": "Widget", "name": "a"}}}},
	}}
	if err := s.applyOne(gate); err != nil {
		t.Fatal(err)
	}
	oc := bad.Resource(operatorConditions).Namespace(s.ns)
	tell := func(body string) error {
		_, err := oc.Patch(s.ctx, usualCSV, types.MergePatchType, []byte(body), metav1.PatchOptions{})
		return err
	}
	open := `{"spec":{"conditions":[{"type":"Upgradeable","status":"True","reason":"Yes","message":"trust me","lastTransitionTime":"2024-01-02T03:04:05Z"}]}}`
	// Until OLM's Role is there, nobody may write.
	if err := s.eventually(patience, func() (bool, string) {
		err := tell(open)
		return err == nil, "the right to write"
	}); err != nil {
		t.Fatal(err)
	}
	if err := tell(open); err != nil {
		t.Fatal(err)
	}
	if _, err := oc.List(s.ctx, metav1.ListOptions{}); err == nil {
		t.Error("the operator may list OperatorConditions: its rights are not OLM's")
	}
	found := strings.Join(s.judge(), "\n")
	for _, want := range []string{
		"told OLM True, but gate platform did not say Upgradeable=True",
		"that revision was there before",
		"OLM grants neither list nor watch",
	} {
		if !strings.Contains(found, want) {
			t.Errorf("not caught: %q; found:\n%s", want, found)
		}
	}
	if disturbed := s.disturbances(time.Time{}); len(disturbed) == 0 {
		t.Error("the writes did not disturb the quiet")
	}
}
