package schema_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/schema"
)

type color string

type base struct {
	Lists map[string][]int `json:"lists"`
}

type sample struct {
	base
	Base   *sample         `json:"base"`
	Names  []string        `json:"names"`
	Color  color           `json:"color"`
	Pair   [2]bool         `json:"pair"`
	Raw    json.RawMessage `json:"raw,omitempty"`
	Note   *string         `json:"note,omitempty"`
	Left   []int           `json:"left,omitzero"`
	Hidden int             `json:"-"`
}

// What encoding/json makes of a filled value is valid, and what lacks a field or has another type is not.
func TestOf(t *testing.T) {
	text, err := schema.Of("a sample", []reflect.Type{reflect.TypeFor[sample]()}, schema.Constraints{reflect.TypeFor[color](): {"enum": []string{"red"}}})
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("sample.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := compiler.Compile("sample.json")
	if err != nil {
		t.Fatal(err)
	}
	valid := func(text string) bool {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return s.Validate(value) == nil
	}
	one := sample{Color: "red", Base: &sample{Color: "red", base: base{map[string][]int{"none": nil}}}, Raw: json.RawMessage(`{"any": 1}`)}
	printed, err := json.Marshal(schema.Fill(one))
	if err != nil {
		t.Fatal(err)
	}
	if !valid(string(printed)) || strings.Count(string(printed), "null") != 1 || strings.Contains(string(printed), "left") { // the end of the list of bases
		t.Errorf("refused, or null: %s", printed)
	}
	for _, change := range [][2]string{
		{`"color":"red"`, `"color":"blue"`}, {`"names":[]`, `"names":null`}, {`"pair":[false,false]`, `"pair":[false]`},
		{`"lists":{}`, `"lists":{"one":["1"]}`}, {`"names"`, `"name"`},
	} {
		broken := strings.Replace(string(printed), change[0], change[1], 1)
		if broken == string(printed) || valid(broken) {
			t.Errorf("not refused, or not changed: %s", broken)
		}
	}
}

// Types of which encoding/json makes nothing, and two structs of one name, are errors.
func TestNoSchema(t *testing.T) {
	type twice[T any] struct{ X T }
	for _, types := range [][]reflect.Type{
		{reflect.TypeFor[chan int]()},
		{reflect.TypeFor[twice[int]](), reflect.TypeFor[twice[string]]()},
	} {
		if _, err := schema.Of("", types, nil); err == nil {
			t.Errorf("%v: no error", types)
		}
	}
}
