package scenarios

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
)

// report plays the component's own controller: it writes a status.
//
//	report widget/a green                         all is well, at the current generation
//	report widget/a green version=1.4.0           with a version
//	report widget/a green Degraded=True reason=X  green, but for that
//	report widget/a only Ready=True               these conditions and no other
//	report widget/a green observed=3|none|behind|ahead   another observedGeneration
//	report widget/a raw '{"observedGeneration": @generation}'   exactly this
//	report widgets green                          all widgets of the namespace
func report(s *scenario, _ *testscript.TestScript, args []string) error {
	if len(args) < 2 {
		return usage("report KIND/NAME|KIND green|only|raw ...")
	}
	client, name, err := s.object(args[0])
	if err != nil {
		return err
	}
	names := []string{name}
	if name == "" {
		list, err := client.List(s.ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		names = nil
		for _, item := range list.Items {
			names = append(names, item.GetName())
		}
	}
	return inParallel(len(names), func(i int) error {
		if err := s.reportOne(client, names[i], args[1:]); err != nil {
			return fmt.Errorf("%s: %w", names[i], err)
		}
		return nil
	})
}

func (s *scenario) reportOne(client dynamic.ResourceInterface, name string, what []string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		live, err := client.Get(s.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		status, err := newStatus(live.GetGeneration(), what)
		if err != nil {
			return err
		}
		live.Object["status"] = status
		_, err = client.UpdateStatus(s.ctx, live, metav1.UpdateOptions{})
		return err
	})
}

// newStatus makes the status that a report asks for.
func newStatus(generation int64, what []string) (map[string]any, error) {
	if what[0] == "raw" {
		var status map[string]any
		text := strings.ReplaceAll(strings.Join(what[1:], " "), "@generation", fmt.Sprint(generation))
		err := json.Unmarshal([]byte(text), &status)
		return status, err
	}
	conditions := map[string]string{}
	order := []string{}
	set := func(conditionType, status string) {
		if _, known := conditions[conditionType]; !known {
			order = append(order, conditionType)
		}
		conditions[conditionType] = status
	}
	if what[0] == "green" {
		set("Available", "True")
		set("Progressing", "False")
		set("Degraded", "False")
	} else if what[0] != "only" {
		return nil, fmt.Errorf("report green, only or raw, not %q", what[0])
	}
	status := map[string]any{"observedGeneration": generation}
	reason, message := "AsReported", "as reported"
	for _, word := range what[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch {
		case key == "observed":
			if err := setObserved(status, generation, value); err != nil {
				return nil, err
			}
		case key == "version":
			status["version"] = value
		case key == "reason":
			reason = value
		case key == "message":
			message = value
		default:
			set(key, value)
		}
	}
	now := time.Now().UTC().Format(time.RFC3339)
	list := []any{}
	for _, conditionType := range order {
		if conditions[conditionType] == "missing" {
			continue
		}
		condition := map[string]any{
			"type": conditionType, "status": conditions[conditionType],
			"reason": reason, "message": message, "lastTransitionTime": now,
		}
		if observed, ok := status["observedGeneration"]; ok {
			condition["observedGeneration"] = observed
		}
		list = append(list, condition)
	}
	status["conditions"] = list
	return status, nil
}

func setObserved(status map[string]any, generation int64, value string) error {
	switch value {
	case "none":
		delete(status, "observedGeneration")
		return nil
	case "behind":
		status["observedGeneration"] = generation - 1
		return nil
	case "ahead":
		status["observedGeneration"] = generation + 1
		return nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	status["observedGeneration"] = n
	return err
}

// noise changes something that means nothing, again and again: a field of the
// status, or an annotation of an OperatorCondition.
func noise(s *scenario, _ *testscript.TestScript, args []string) error {
	if len(args) == 1 && args[0] == "stop" {
		s.stopNoise()
		return nil
	}
	if len(args) != 3 || args[0] != "start" {
		return usage("noise start INTERVAL KIND[/NAME] | noise stop")
	}
	interval, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	client, only, err := s.object(args[2])
	if err != nil {
		return err
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	s.stopNoise = sync.OnceFunc(func() {
		close(stop)
		<-stopped
	})
	go func() {
		defer close(stopped)
		for beat := int64(1); ; beat++ {
			s.beat(client, only, beat)
			select {
			case <-stop:
				return
			case <-time.After(interval):
			}
		}
	}()
	return nil
}

// beat changes each object once. A conflict does not matter: somebody else
// changed the object then.
func (s *scenario) beat(client dynamic.ResourceInterface, only string, beat int64) {
	list, err := client.List(s.ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range list.Items {
		item := &list.Items[i]
		switch {
		case only != "" && item.GetName() != only:
		case item.GetKind() == "OperatorCondition":
			item.SetAnnotations(map[string]string{"beat": fmt.Sprint(beat)})
			_, _ = client.Update(s.ctx, item, metav1.UpdateOptions{})
		case unstructured.SetNestedField(item.Object, beat, "status", "heartbeat") == nil:
			_, _ = client.UpdateStatus(s.ctx, item, metav1.UpdateOptions{})
		}
	}
}
