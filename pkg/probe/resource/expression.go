package resource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"

	"github.com/upgrade-gate/upgrade-gate/pkg/component"
	"github.com/upgrade-gate/upgrade-gate/pkg/conditions"
)

// Bounds of the evaluation of one component's expressions. An object may hold
// anything; nothing it holds may keep the operator busy.
const (
	// costLimit is what one rule may cost, in the units of CEL: a loop over 120
	// values inside of a loop over 120 fits. The limit of Kubernetes, five times
	// as much, takes more than a second of a core, too long for one component
	// among hundreds.
	costLimit = 200_000
	// maxValues is how many values an object may hold. Some functions compare
	// every value of one list with every value of another, and their cost is
	// known only afterwards.
	maxValues = 10_000
	// maxDuration bounds all rules of a component together.
	maxDuration = 10 * time.Second
	// interruptEvery is after how many steps of a loop the time is looked at.
	interruptEvery = 100
	// maxProblem bounds the text about one rule, in characters.
	maxProblem = 256
)

// refused are functions of the extension libraries whose time or result grows
// with the product of two texts or the square of a list, all in one step that
// cannot be interrupted.
func refused() []string { return []string{"replace", "indexOf", "lastIndexOf", "distinct"} }

// newEnv sets up CEL as Kubernetes has it for CRDs, as far as it is of use for
// looking at one object: self is the only variable, and there is no clock, no
// randomness and no I/O.
func newEnv() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("self", cel.DynType),
		cel.HomogeneousAggregateLiterals(),
		cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(),
		cel.ASTValidators(
			cel.ValidateDurationLiterals(),
			cel.ValidateTimestampLiterals(),
			cel.ValidateRegexLiterals(),
			cel.ValidateHomogeneousAggregateLiterals(),
		),
		ext.Strings(ext.StringsVersion(5)),
		ext.Lists(ext.ListsVersion(3)),
		ext.Sets(),
	)
}

// compile returns the program of a rule, or says what is wrong with it, where,
// and what to do.
func compile(env *cel.Env, rule string) (cel.Program, string) {
	if strings.TrimSpace(rule) == "" {
		return nil, "is empty; write a CEL expression over the object self, or remove it"
	}
	checked, issues := env.Compile(rule)
	if issues.Err() != nil {
		return nil, describeIssues(issues)
	}
	if !checked.OutputType().IsExactType(cel.BoolType) {
		return nil, fmt.Sprintf("gives %s, not bool; compare it, for example self.status.ready == true", checked.OutputType())
	}
	if name := uses(checked.NativeRep(), refused()); name != "" {
		return nil, fmt.Sprintf("uses %s, which is not offered here; use ==, contains, startsWith, endsWith, matches or split", name)
	}
	program, err := env.Program(checked,
		cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost),
		cel.CostLimit(costLimit),
		cel.InterruptCheckFrequency(interruptEvery),
	)
	if err != nil {
		return nil, conditions.Line(err.Error(), maxProblem) + "; correct the rule"
	}
	return program, ""
}

func describeIssues(issues *cel.Issues) string {
	first := issues.Errors()[0]
	message := strings.TrimSuffix(conditions.Line(first.Message, maxProblem), " (in container '')")
	return fmt.Sprintf("line %d, column %d: %s; correct the rule: it is CEL, and the object is called self",
		first.Location.Line(), first.Location.Column()+1, message)
}

// uses returns the first of names that is called anywhere in the rule.
func uses(rule *ast.AST, names []string) string {
	calls := ast.MatchDescendants(ast.NavigateAST(rule), ast.KindMatcher(ast.CallKind))
	for _, call := range calls {
		if name := call.AsCall().FunctionName(); slices.Contains(names, name) {
			return name
		}
	}
	return ""
}

// evaluate runs the rules over object, which it does not change. final is false
// when time ran out or ctx ended, which may be no fault of the object's.
func evaluate(ctx context.Context, rules []cel.Program, object map[string]any) (outcomes []component.ExpressionOutcome, final bool) {
	outcomes = make([]component.ExpressionOutcome, len(rules))
	problem := ""
	switch {
	case object == nil:
		problem = "the object was not read as a whole"
	case countValues(object, 0) > maxValues:
		problem = fmt.Sprintf("the object holds more than %d values, too many for expressions; use conditions", maxValues)
	}
	bounded, cancel := context.WithTimeout(ctx, maxDuration)
	defer cancel()
	for i, rule := range rules {
		if problem != "" {
			outcomes[i] = component.ExpressionOutcome{Evaluated: true, Failure: problem}
			continue
		}
		outcomes[i] = evaluateOne(bounded, rule, object)
	}
	return outcomes, bounded.Err() == nil
}

func evaluateOne(ctx context.Context, rule cel.Program, object map[string]any) component.ExpressionOutcome {
	outcome := component.ExpressionOutcome{Evaluated: true}
	if ctx.Err() != nil {
		outcome.Failure = describeFailure(ctx.Err())
		return outcome
	}
	result, _, err := rule.ContextEval(ctx, map[string]any{"self": object})
	switch value, isBool := result.(types.Bool); {
	case err != nil:
		outcome.Failure = describeFailure(err)
	case !isBool:
		outcome.Failure = "the rule gives no bool; compare its value with something"
	default:
		outcome.True = bool(value)
	}
	return outcome
}

func describeFailure(err error) string {
	var cancelled interpreter.EvalCancelledError
	switch {
	case errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded:
		return fmt.Sprintf("the rule exceeds the cost limit of %d; make it simpler", costLimit)
	case errors.Is(err, context.Canceled):
		return "the evaluation was interrupted"
	case errors.Is(err, context.DeadlineExceeded):
		return "the evaluation takes too long; make the rule simpler"
	}
	message := conditions.Line(err.Error(), maxProblem)
	if strings.HasPrefix(message, "no such key: ") {
		return message + "; guard it with has()"
	}
	return message
}

// countValues counts the values in a decoded JSON value, and stops counting soon
// after maxValues.
func countValues(value any, counted int) int {
	counted++
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			if counted > maxValues {
				break
			}
			counted = countValues(inner, counted)
		}
	case []any:
		for _, inner := range v {
			if counted > maxValues {
				break
			}
			counted = countValues(inner, counted)
		}
	}
	return counted
}
