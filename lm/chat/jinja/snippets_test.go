package jinja

import (
	"encoding/json"
	"os"
	"testing"
	"time"
)

type snippets struct {
	Context map[string]json.RawMessage
	Members map[string][]string
	Cases   []struct {
		Template, Text string
		Error          bool
	}
}

func readSnippets(t *testing.T) (golden snippets) {
	t.Helper()
	data, err := os.ReadFile("../testdata/snippets.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	return golden
}

// Each attribute that Python's types have is known or refused: none is undefined.
func TestMembers(t *testing.T) {
	values := map[string]string{
		"str": "''", "int": "1", "bool": "true", "float": "1.5", "list": "[]", "tuple": "()", "dict": "{}", "range": "range(3)",
		"dict_keys": "({}.keys())", "dict_values": "({}.values())", "dict_items": "({}.items())", "generator": "([1]|map('string'))",
	}
	for kind, members := range readSnippets(t).Members {
		if values[kind] == "" {
			t.Errorf("there is no value of the type %s", kind)
		}
		for _, member := range members {
			got, err := render("{{ ("+values[kind]+")."+member+" is defined }}", nil)
			if err == nil && got != "True" {
				t.Errorf("%s.%s is undefined", kind, member)
			}
		}
	}
}

// Each snippet gives Python's text or an error, and an error where Python has one.
func TestSnippets(t *testing.T) {
	golden := readSnippets(t)
	variables := map[string]any{}
	for name, raw := range golden.Context {
		v, err := FromJSON(raw)
		if err != nil {
			t.Fatal(err)
		}
		variables[name] = v
	}
	equal, bothFail, refused := 0, 0, 0
	for _, c := range golden.Cases {
		got, err := render(c.Template, variables)
		switch {
		case c.Error && err == nil:
			t.Errorf("%q gives %q, and Python an error", c.Template, got)
		case c.Error:
			bothFail++
		case err != nil:
			refused++
			t.Logf("refused: %q: %v", c.Template, err)
		case got != c.Text:
			t.Errorf("%q gives\n%q, and Python\n%q", c.Template, got, c.Text)
		default:
			equal++
		}
	}
	t.Logf("%d snippets: %d equal, %d errors in both, %d refused", len(golden.Cases), equal, bothFail, refused)
}

func render(source string, variables map[string]any) (string, error) {
	t, err := Parse(source)
	if err != nil {
		return "", err
	}
	return t.Render(variables, time.Date(2024, 7, 26, 9, 5, 3, 0, time.UTC))
}
