package judge

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestProven(t *testing.T) {
	const (
		three    = `{type: Available, status: "True"}, {type: Progressing, status: "False"}, {type: Degraded, status: "False"}`
		threeOwn = `{type: Available, status: "True", observedGeneration: 5}, {type: Progressing, status: "False", observedGeneration: 5}, {type: Degraded, status: "False", observedGeneration: 5}`
	)
	for name, c := range map[string]struct {
		component, status string
		// want is a part of why it is not proven; empty when it is.
		want string
	}{
		"green":                          {`{}`, `{observedGeneration: 5, conditions: [` + three + `]}`, ""},
		"per condition only":             {`{}`, `{conditions: [` + threeOwn + `]}`, ""},
		"Ready":                          {`{}`, `{observedGeneration: 5, conditions: [{type: Ready, status: "True"}]}`, ""},
		"Ready and Reconciling":          {`{}`, `{observedGeneration: 5, conditions: [{type: Ready, status: "True"}, {type: Reconciling, status: "True"}]}`, "says Reconciling=True"},
		"Ready and Stalled":              {`{}`, `{observedGeneration: 5, conditions: [{type: Ready, status: "True"}, {type: Stalled, status: "True"}]}`, "says Stalled=True"},
		"no status":                      {`{}`, `{}`, "no conditions"},
		"no conditions":                  {`{}`, `{observedGeneration: 5, conditions: []}`, "does not report Ready"},
		"stale":                          {`{}`, `{observedGeneration: 4, conditions: [` + three + `]}`, "observed generation 4, has 5"},
		"ahead":                          {`{}`, `{observedGeneration: 6, conditions: [` + three + `]}`, "observed generation 6, has 5"},
		"a word for a generation":        {`{}`, `{observedGeneration: five, conditions: [` + three + `]}`, "observed generation five"},
		"no observed generation":         {`{}`, `{conditions: [` + three + `]}`, "reports no observed generation for Available"},
		"stale condition":                {`{}`, `{observedGeneration: 5, conditions: [` + strings.Replace(threeOwn, "observedGeneration: 5}", "observedGeneration: 4}", 1) + `]}`, "observed generation 4 for Available"},
		"Progressing":                    {`{}`, `{observedGeneration: 5, conditions: [` + strings.Replace(three, `Progressing, status: "False"`, `Progressing, status: "True"`, 1) + `]}`, "says Progressing=True"},
		"Degraded unknown":               {`{}`, `{observedGeneration: 5, conditions: [` + strings.Replace(three, `Degraded, status: "False"`, `Degraded, status: Unknown`, 1) + `]}`, "says Degraded=Unknown"},
		"twice":                          {`{}`, `{observedGeneration: 5, conditions: [` + three + `, {type: Available, status: "True"}]}`, "reports Available twice"},
		"not upgradeable":                {`{}`, `{observedGeneration: 5, conditions: [` + three + `, {type: Upgradeable, status: "False"}]}`, "says Upgradeable=False"},
		"as asked":                       {`{conditions: [{type: Synced, status: "True"}]}`, `{observedGeneration: 5, conditions: [{type: Synced, status: "True"}]}`, ""},
		"not as asked":                   {`{conditions: [{type: Synced, status: "True"}]}`, `{observedGeneration: 5, conditions: [` + three + `]}`, "does not report Synced"},
		"may be missing":                 {`{conditions: [{type: Synced, status: "True", whenMissing: Ignore}, {type: Available, status: "True"}]}`, `{observedGeneration: 5, conditions: [` + three + `]}`, ""},
		"reported without a generation":  {`{conditions: [{type: Synced, status: "True"}]}`, `{conditions: [{type: Synced, status: "True"}]}`, "no observed generation for Synced"},
		"conditions that are not a list": {`{}`, `{observedGeneration: 5, conditions: yes}`, "does not report Ready"},
	} {
		t.Run(name, func(t *testing.T) {
			var component, object map[string]any
			if err := yaml.Unmarshal([]byte(c.component), &component); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(`{metadata: {generation: 5}, status: `+c.status+`}`), &object); err != nil {
				t.Fatal(err)
			}
			ok, why := proven(component, object)
			if ok != (c.want == "") || !strings.Contains(why, c.want) {
				t.Errorf("want %q, got %t %q", c.want, ok, why)
			}
		})
	}
}

func TestAbsentAndTerminatingAreNotProven(t *testing.T) {
	if ok, _ := proven(map[string]any{}, nil); ok {
		t.Error("an absent object is proven")
	}
	object := map[string]any{"metadata": map[string]any{"generation": int64(1), "deletionTimestamp": "now"}}
	if ok, _ := proven(map[string]any{}, object); ok {
		t.Error("an object that is being deleted is proven")
	}
}
