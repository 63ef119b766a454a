package recipe_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/recipe"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

func Example() {
	r, err := recipe.Parse("long.yaml", []byte(`
version: 1
context: 32k            # tokens
scaling:
  - yarn:factor=4@0-15
  - nope@16
mask: anchor
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range r.Flags {
		fmt.Printf("%d --%s %s\n", f.Line, f.Name, f.Value)
	}
	// Output:
	// 3 --context 32k
	// 5 --scaling yarn:factor=4@0-15
	// 6 --scaling nope@16
	// 7 --mask anchor
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "r.yaml:1: the recipe is empty",
		"- a":                                  "r.yaml:1: a recipe has lines KEY: VALUE",
		"scaling: yarn":                        "r.yaml:1: version: 1 is missing",
		"version: 2":                           "r.yaml:1: version \"2\": this rope-rewrite knows version 1",
		"version: 1\nscalling: x":              `r.yaml:2: unknown key "scalling" (did you mean "scaling"?)`,
		"version: 1\nmask: a\nmask: b":         "r.yaml:3: ",
		"version: 1\n\nopset: new":             `r.yaml:3: opset: "new": expected a whole number`,
		"version: 1\nkv: [a, b]":               "r.yaml:2: kv: takes one value, not a list",
		"version: 1\nscaling: []":              "r.yaml:2: scaling: the list is empty",
		"version: 1\nscaling:\n- a\n- 5":       "r.yaml:4: scaling: expected a text such as yarn:factor=4",
		"version: 1\nscaling: {factor: 2}":     "r.yaml:2: scaling: takes no keys",
		"version: 1\nallow-partial: 1":         "expected true or false",
		"version: 1\nscaling:":                 `expected a text or a list of texts`,
		"version: 1\nmask: a\n---\nversion: 1": "r.yaml:3: a second document begins here",
		"version: 1\na: [":                     "r.yaml:2: this is not YAML",
		"version: 1\nmask: &x a\nkv: *x":       "r.yaml:3: kv: expected a value, not a reference",
	} {
		_, err := recipe.Parse("r.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
		if e := (*recipe.Error)(nil); !errors.As(err, &e) {
			t.Errorf("%q: the error does not name a line: %v", text, err)
		}
	}
}

func TestRopeParameters(t *testing.T) {
	r, err := recipe.Parse("r.yaml", []byte("version: 1\nrope-parameters:\n  rope_type: yarn\n  factor: 4.0\n"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := rope.ParseRopeParameters([]byte(r.Flags[0].Value))
	if err != nil || s.String() != "yarn:factor=4" {
		t.Errorf("%v, %v", s, err)
	}
}

// What Of writes, Parse reads: numbers that look like layers stay texts.
func TestOf(t *testing.T) {
	record := &provenance.Record{Target: "onnx", Configuration: provenance.Configuration{Context: 256}, Sites: []provenance.Site{{Layers: []int{0, 2}}}, Kept: []provenance.Kept{{Layer: 1}}, Edits: []provenance.Edit{
		{What: "scaling", Given: "yarn", Layers: []int{0}, Settings: []rope.Setting{
			{Name: "factor", Value: rope.Number(4), From: rope.FromContext}, {Name: "beta_fast", Value: rope.Number(32), From: rope.Default}}},
		{What: "mask", Given: "causal", Layers: []int{0, 2}},
		{What: "scaling", Given: "nope", Layers: []int{2}},
		{What: "angles", Given: "exact", Layers: []int{0, 2}},
		{What: "kv", Given: "fixed:capacity=64,input=n", Layers: []int{0, 2}},
	}}
	want := `version: 1
context: 256
angles: exact
scaling:
    - yarn@0
    - nope@2
mask: causal
kv: fixed:capacity=64,input=n
target: onnx
layers: 0,2
`
	text, err := recipe.Of(record).Text()
	if err != nil || string(text) != want {
		t.Errorf("%v\n%s", err, text)
	}
	if _, err := recipe.Parse("r.yaml", text); err != nil {
		t.Error(err)
	}
}

// A scaling of all layers says so where some have a window: without it they would not get it.
func TestAllLayers(t *testing.T) {
	full, window := provenance.Site{Layers: []int{0}}, provenance.Site{Layers: []int{1}}
	window.Original.Mask.Window = 8
	for want, sites := range map[string][]provenance.Site{
		"linear:factor=2":     {{Layers: []int{0, 1}}},
		"linear:factor=2@all": {full, window},
	} {
		r := &provenance.Record{Target: "ops", Sites: sites, Edits: []provenance.Edit{{What: "scaling", Given: "linear", Layers: []int{0, 1},
			Settings: []rope.Setting{{Name: "factor", Value: rope.Number(2), From: rope.Given}}}, {What: "angles", Given: "exact", Layers: []int{0, 1}}}}
		if flags := recipe.Of(r).Flags; len(flags) != 1 || flags[0].Value != want {
			t.Errorf("%v, want %s", flags, want)
		}
	}
}

func TestSchemaIsJSON(t *testing.T) {
	if !json.Valid(recipe.Schema) {
		t.Error("it is not")
	}
}
