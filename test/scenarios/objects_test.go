package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"text/template"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

var customKinds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// resourceOf finds the resource that a user's word means: widget, widgets, or
// gadgets.some.group.
func (c *cluster) resourceOf(word string) (schema.GroupVersionResource, error) {
	partial := schema.ParseGroupResource(strings.ToLower(word)).WithVersion("")
	found, err := c.mapper.ResourceFor(partial)
	if meta.IsNoMatchError(err) {
		// The kind may have been installed since the last look.
		c.mapper.Reset()
		found, err = c.mapper.ResourceFor(partial)
	}
	return found, err
}

// object names one object in a scenario: KIND/NAME, in the scenario's namespace.
func (s *scenario) object(word string) (dynamic.ResourceInterface, string, error) {
	word, name, _ := strings.Cut(word, "/")
	resource, err := s.c.resourceOf(word)
	if err != nil {
		return nil, "", err
	}
	kind, err := s.c.mapper.KindFor(resource)
	if err != nil {
		return nil, "", err
	}
	mapping, err := s.c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, "", err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return s.c.dynamic.Resource(resource), name, nil
	}
	return s.c.dynamic.Resource(resource).Namespace(s.ns), name, nil
}

// apply applies the objects of each file as an administrator, in no order within
// a file. A file may be a template: {{range seq 200}}.
func apply(s *scenario, ts *testscript.TestScript, args []string) error {
	for _, file := range args {
		objects, err := decode(strings.ReplaceAll(ts.ReadFile(file), "$NS", s.ns))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := inParallel(len(objects), func(i int) error { return s.applyOne(objects[i]) }); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// decode reads the objects of a file, which may be a template.
func decode(text string) ([]*unstructured.Unstructured, error) {
	filled, err := fill(text)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, document := range strings.Split("\n"+filled, "\n---") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// inParallel does n things, a few at a time, and returns what went wrong.
func inParallel(n int, do func(i int) error) error {
	var (
		all    sync.WaitGroup
		places = make(chan struct{}, 8)
		wrong  = make([]error, max(n, 0))
	)
	for i := range n {
		places <- struct{}{}
		all.Go(func() {
			wrong[i] = do(i)
			<-places
		})
	}
	all.Wait()
	return errors.Join(wrong...)
}

func fill(text string) (string, error) {
	functions := template.FuncMap{"seq": func(n int) []int {
		var out []int
		for i := 1; i <= n; i++ {
			out = append(out, i)
		}
		return out
	}}
	parsed, err := template.New("file").Funcs(functions).Parse(text)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = parsed.Execute(&out, nil)
	return out.String(), err
}

func (s *scenario) applyOne(object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := s.c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		s.c.mapper.Reset()
		mapping, err = s.c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if err != nil {
		return err
	}
	var client dynamic.ResourceInterface = s.c.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if object.GetNamespace() == "" {
			object.SetNamespace(s.ns)
		}
		client = s.c.dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace())
	} else {
		s.afterwards(func(ctx context.Context) {
			_ = s.c.dynamic.Resource(mapping.Resource).Delete(ctx, object.GetName(), metav1.DeleteOptions{})
		})
	}
	options := metav1.ApplyOptions{FieldManager: "scenario", Force: true}
	if _, err := client.Apply(s.ctx, object.GetName(), object, options); err != nil {
		return err
	}
	if mapping.Resource == customKinds {
		return s.install(object)
	}
	return nil
}

// install waits until a new kind is served, and has it recorded before there is
// any object of it.
func (s *scenario) install(crd *unstructured.Unstructured) error {
	resource, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	return s.eventually(patience, func() (bool, string) {
		found, err := s.c.resourceOf(resource + "." + group)
		if err == nil {
			err = s.c.recorder.record(found)
		}
		if err == nil {
			_, err = s.c.dynamic.Resource(found).List(s.ctx, metav1.ListOptions{})
		}
		return err == nil, fmt.Sprint(err)
	})
}

func deleteObject(s *scenario, _ *testscript.TestScript, args []string) error {
	for _, word := range args {
		client, name, err := s.object(word)
		if err != nil {
			return err
		}
		if err := client.Delete(s.ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// patch merges JSON into an object, or into its status.
func patch(s *scenario, _ *testscript.TestScript, args []string) error {
	if len(args) < 2 {
		return usage("patch KIND/NAME [status] JSON")
	}
	client, name, err := s.object(args[0])
	if err != nil {
		return err
	}
	_, err = client.Patch(s.ctx, name, types.MergePatchType, []byte(args[len(args)-1]),
		metav1.PatchOptions{}, args[1:len(args)-1]...)
	return err
}

// makeNamespace makes one more namespace, called $NS-NAME.
func makeNamespace(s *scenario, _ *testscript.TestScript, args []string) error {
	if len(args) != 1 {
		return usage("namespace NAME")
	}
	name := s.ns + "-" + args[0]
	s.namespaces[name] = true
	_, err := s.c.kube.CoreV1().Namespaces().Create(s.ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

func grant(s *scenario, _ *testscript.TestScript, args []string) error {
	return s.rights(args, s.identity.grant)
}

func revoke(s *scenario, _ *testscript.TestScript, args []string) error {
	return s.rights(args, s.identity.revoke)
}

func (s *scenario) rights(args []string, change func(ctx context.Context, group, resource string) error) error {
	if len(args) != 1 {
		return errors.New("which RESOURCE.GROUP?")
	}
	resource, group, _ := strings.Cut(args[0], ".")
	return change(s.ctx, group, resource)
}

// runKubectl runs kubectl as the administrator, in the scenario's namespace.
func runKubectl(ts *testscript.TestScript, negated bool, args []string) {
	s := of(ts)
	err := ts.Exec(s.c.kubectl, append([]string{"--namespace", s.ns}, args...)...)
	switch {
	case err != nil && !negated:
		ts.Fatalf("kubectl: %v", err)
	case err == nil && negated:
		ts.Fatalf("kubectl succeeded")
	}
}

// override sets or removes an administrator's override, as the operator's
// message says how to.
func override(s *scenario, ts *testscript.TestScript, args []string) error {
	if len(args) != 1 {
		return usage("override True|False|none")
	}
	overrides := []any{}
	if args[0] != "none" {
		overrides = append(overrides, map[string]any{
			"type": "Upgradeable", "status": args[0], "reason": "AdminOverride", "message": "accepted",
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		})
	}
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"overrides": overrides}})
	if err != nil {
		return err
	}
	return patch(s, ts, []string{"operatorcondition/" + ts.Getenv("OC"), string(body)})
}
