package jinja

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testfuzz"
)

// templates are pieces of templates, with models' own in a long run.
func templates(f *testing.F) []string {
	f.Helper()
	seeds := []string{
		"{{ a }}", "{% for x in xs if x %}{{ loop.index }}{% else %}-{% endfor %}", "{%- set ns = namespace(x=1) -%}{% set ns.x = ns.x + 1 %}",
		"{% macro m(a, b=1) %}{{ varargs }}{% endmacro %}{{ m(1, b=2) }}", "{{ d|tojson(indent=2) }}{{ s[::-1] }}{{ d.items()|list }}", "{# c -#} {% raw %}{{ x }}{% endraw %}",
		"{{ xs|map('upper')|select('in', 'a')|join(',') }}{{ s.split(',', 1)[-1].title() }}", "{% call(x) m() %}{% endcall %}{% filter upper %}{% endfilter %}", "{{ -2 ** 2 // 3 % 1.5 ~ 'x' }}",
		"{% for x in xs recursive %}{{ loop(x) }}{% break %}{% endfor %}", "{{ '%s %d'|format(s, a) }}{{ '{0} {}'.format(s) }}{{ s * 3 }}{{ range(9)|list }}",
		"{% with a = 2 %}{{ a if a is odd else d.k[0] }}{% endwith %}{{ xs|sort|unique|first }}{{ s.replace(',', 'b' * 9) }}", "{{ raise_exception('no') }}", "{{ s|indent(2)|trim }}{{ 'x'.ljust(9) }}{{ '1'.zfill(9) }}",
	}
	files, err := filepath.Glob("../testdata/templates/*")
	if err != nil || len(files) == 0 {
		f.Fatalf("no templates (%v)", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		seeds = append(seeds, string(text))
	}
	return seeds
}

// Whatever a template says, rendering ends: with an error of one line, or with the same text each time, of
// at most 16 bytes for each step. It never changes its variables.
func FuzzRender(f *testing.F) {
	message := func(role, text string) any { return map[string]any{"role": role, "content": text} }
	given := func() map[string]any {
		return map[string]any{"xs": []any{"a", "B", "é"}, "d": map[string]any{"k": []any{1, 2.5, nil}}, "s": "a,b", "a": 1,
			"messages": []any{message("system", "You help."), message("user", "Hi"), message("assistant", "Hello"), message("user", " Bye ")},
			"tools":    []any{map[string]any{"type": "function", "function": map[string]any{"name": "f", "parameters": map[string]any{}}}}, "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true}
	}
	variables := given()
	testfuzz.Run(f, templates(f), 2000, func(t testing.TB, source []byte) bool {
		text, err := render(string(source), variables)
		if err != nil {
			if said := err.Error(); said == "" || strings.Contains(said, "\n") && !errors.Is(err, ErrRaised) { // which has the template's own words
				t.Errorf("the error is not one line: %q", said)
			}
			return false
		}
		if len(text) > 16*MaxSteps {
			t.Errorf("%d bytes were made", len(text))
		}
		if again, err := render(string(source), variables); err != nil || again != text {
			t.Errorf("%q and then %q, %v", text, again, err)
		}
		if !reflect.DeepEqual(variables, given()) {
			t.Errorf("the variables are now %v", variables)
		}
		return true
	})
}

// FromJSON takes what it is given, or says why not. What tojson writes of it is JSON that gives the same again.
func FuzzFromJSON(f *testing.F) {
	seeds := []string{`{"a": [1, 2.5, null, {"b": true}], "a": "\ud83d\ude00"}`, `[-0, 1e400, "\ud800"]`, `{"type": "function", "parameters": {"required": ["x"]}}`}
	testfuzz.Run(f, seeds, 4000, func(t testing.TB, data []byte) bool {
		v, err := FromJSON(data)
		if err != nil {
			if said := err.Error(); said == "" || strings.Contains(said, "\n") {
				t.Errorf("the error is not one line: %q", said)
			}
			return false
		}
		if !json.Valid(data) {
			t.Fatal("it is read and is not JSON")
		}
		text, err := render("{{ v|tojson }}", map[string]any{"v": v})
		if err != nil || strings.Contains(text, "Infinity") { // which is Python's alone
			return false
		}
		again, err := FromJSON([]byte(text))
		if err != nil || !reflect.DeepEqual(again, v) {
			t.Errorf("%s gives %v, %v instead of %v", text, again, err, v)
		}
		return true
	})
}
