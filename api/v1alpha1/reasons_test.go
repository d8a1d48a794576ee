package v1alpha1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// constant is one string constant of a source file.
type constant struct {
	name, value, comment string
}

// constants reads a source file, so that one that is added later is checked too.
func constants(t *testing.T, file string) []constant {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	require.NoError(t, err)
	var found []constant
	for _, declaration := range parsed.Decls {
		group, ok := declaration.(*ast.GenDecl)
		require.True(t, ok && group.Tok == token.CONST, "%s holds something else than constants", file)
		for _, spec := range group.Specs {
			value := spec.(*ast.ValueSpec)
			require.Len(t, value.Names, 1)
			require.Len(t, value.Values, 1, "%s", value.Names[0].Name)
			literal, ok := value.Values[0].(*ast.BasicLit)
			require.True(t, ok && literal.Kind == token.STRING, "%s is not a plain string", value.Names[0].Name)
			text, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			found = append(found, constant{value.Names[0].Name, text, value.Doc.Text()})
		}
	}
	require.NotEmpty(t, found)
	return found
}

// olmReason is what the OperatorCondition CRD demands of a reason.
var olmReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

func TestConstantsAreValidDocumentedAndUnique(t *testing.T) {
	for file, prefix := range map[string]string{"reasons.go": "Reason", "conditions.go": "Condition"} {
		seen := map[string]string{}
		for _, c := range constants(t, file) {
			require.Equal(t, prefix+c.value, c.name, "the name says the value")
			require.Regexp(t, olmReason, c.value, c.name)
			require.True(t, strings.HasPrefix(c.comment, c.name), "%s has no comment that starts with its name", c.name)
			require.Empty(t, seen[c.value], "%s and %s are the same", c.name, seen[c.value])
			seen[c.value] = c.name
		}
	}
}

// documented reads the first column of the tables below a heading of
// docs/conditions.md.
func documented(t *testing.T, headings ...string) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/conditions.md")
	require.NoError(t, err)
	row := regexp.MustCompile("^\\| `(\\w+)` \\|(.*)\\|$")
	var names []string
	inside := false
	for _, line := range strings.Split(string(text), "\n") {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			inside = slices.Contains(headings, heading)
		}
		cells := row.FindStringSubmatch(line)
		if !inside || cells == nil {
			continue
		}
		require.Equal(t, 2, strings.Count(cells[2], "|"), "a row has four columns: %s", line)
		for _, cell := range strings.Split(cells[2], "|") {
			require.NotEmpty(t, strings.TrimSpace(cell), "an empty cell: %s", line)
		}
		names = append(names, cells[1])
	}
	return names
}

func values(list []constant) []string {
	var all []string
	for _, c := range list {
		all = append(all, c.value)
	}
	return all
}

// TestEveryReasonIsInTheDocumentation also finds reasons in it that do not
// exist, and that are described twice.
func TestEveryReasonIsInTheDocumentation(t *testing.T) {
	require.ElementsMatch(t, values(constants(t, "reasons.go")), documented(t,
		"Reasons of a component", "Reasons of the gate", "Reasons of Available, Progressing and Degraded", "Reasons of Published",
		"Reasons of events"))
}

func TestEveryConditionIsInTheDocumentation(t *testing.T) {
	require.ElementsMatch(t, values(constants(t, "conditions.go")), documented(t, "Conditions"))
}

// TestComponentReasonsAreInTheOrderOfJudging keeps reasons.go and the pages in
// the same order, which readers rely on.
func TestComponentReasonsAreInTheOrderOfJudging(t *testing.T) {
	described := documented(t, "Reasons of a component")
	require.Equal(t, values(constants(t, "reasons.go"))[:len(described)], described)
}

// TestNothingElseIsCalledAReason finds words in the pages for users that look
// like a reason and are none.
func TestNothingElseIsCalledAReason(t *testing.T) {
	known := append(values(constants(t, "reasons.go")), values(constants(t, "conditions.go"))...)
	known = append(known, "True", "False", "Unknown", "Reconciling", "Stalled", "Ignore", "Required", "UpgradeGate", "OperatorCondition")
	word := regexp.MustCompile("`([A-Z][A-Za-z0-9]+)(?:=(?:True|False))?`")
	for _, page := range []string{"../../docs/judging.md", "../../docs/conditions.md"} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, found := range word.FindAllStringSubmatch(string(text), -1) {
			require.Contains(t, known, found[1], page)
		}
	}
}
