package recipe

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/internal/suggest"
)

// Schema is the JSON Schema of recipes.
//
//go:embed schema.json
var Schema []byte

// Version is the version of the format.
const Version = 1

// Recipe is a list of flags with their values.
type Recipe struct{ Flags []Flag }

// Flag is one value of one flag; a flag with several values stands several times.
type Flag struct {
	Name  string
	Value string
	Line  int // of the file, from 1
}

// kinds of values that a key takes, as the schema has them.
type kinds struct{ text, list, object, whole, toggle bool }

// keys reads from the schema what each key takes, in the schema's order.
func keys() (names []string, takes map[string]kinds, err error) {
	type property struct {
		Type  string     `json:"type"`
		AnyOf []property `json:"anyOf"`
	}
	var schema struct {
		Properties map[string]property `json:"properties"`
	}
	if err := json.Unmarshal(Schema, &schema); err != nil {
		return nil, nil, fmt.Errorf("the schema of recipes: %w", err)
	}
	takes = map[string]kinds{}
	for name, p := range schema.Properties {
		var k kinds
		for _, one := range append(p.AnyOf, p) {
			switch one.Type {
			case "string":
				k.text = true
			case "array":
				k.list = true
			case "object":
				k.object = true
			case "integer":
				k.whole = true
			case "boolean":
				k.toggle = true
			}
		}
		takes[name] = k
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return bytes.Index(Schema, []byte(`"`+a+`": {`)) - bytes.Index(Schema, []byte(`"`+b+`": {`))
	})
	return names, takes, nil
}

// Error is what is wrong with a recipe, and where.
type Error struct {
	File string
	Line int
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// Parse reads a recipe. The error, an *Error, names the file and the line; values are checked as
// far as their kind goes.
func Parse(file string, data []byte) (*Recipe, error) {
	at := func(line int, format string, args ...any) error {
		return &Error{file, line, fmt.Errorf(format, args...)}
	}
	var document, second yaml.Node
	reader := yaml.NewDecoder(bytes.NewReader(data))
	if err := reader.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, notYAML(file, err)
	}
	switch err := reader.Decode(&second); {
	case err == nil:
		return nil, at(second.Line, "a second document begins here; a recipe is one document, so put this into another file")
	case !errors.Is(err, io.EOF):
		return nil, notYAML(file, err)
	}
	if len(document.Content) == 0 {
		return nil, at(1, "the recipe is empty; write version: %d and the flags", Version)
	}
	top := document.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil, at(top.Line, "a recipe has lines KEY: VALUE")
	}
	names, takes, err := keys()
	if err != nil {
		return nil, err
	}
	r := &Recipe{}
	seen := map[string]bool{}
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		k, known := takes[key.Value]
		switch {
		case !known:
			return nil, at(key.Line, "unknown key %q%s; keys: %s", short.Name(key.Value), suggest.Hint(key.Value, names), strings.Join(names, ", "))
		case seen[key.Value]:
			return nil, at(key.Line, "%s is given twice", key.Value)
		case key.Value == "version" && value.Value != strconv.Itoa(Version):
			return nil, at(value.Line, "version %.40q: this rope-rewrite knows version %d", value.Value, Version)
		}
		if seen[key.Value] = true; key.Value == "version" {
			continue
		}
		flags, wrong, err := k.flags(key.Value, value)
		if err != nil {
			return nil, at(wrong.Line, "%s: %w", key.Value, err)
		}
		r.Flags = append(r.Flags, flags...)
	}
	if !seen["version"] {
		return nil, at(top.Line, "version: %d is missing", Version)
	}
	return r, nil
}

// notYAML is the reader's error with the line that it names in front.
func notYAML(file string, err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if rest, found := strings.CutPrefix(text, "line "); found {
		number, what, _ := strings.Cut(rest, ": ")
		if n, err := strconv.Atoi(number); err == nil {
			line, text = n, what
		}
	}
	return &Error{file, line, fmt.Errorf("this is not YAML: %s", text)}
}

// flags reads the value of a key. With an error comes the part of the value that is wrong.
func (k kinds) flags(name string, value *yaml.Node) ([]Flag, *yaml.Node, error) {
	switch value.Kind {
	case yaml.ScalarNode:
		if err := k.scalar(value); err != nil {
			return nil, value, err
		}
		return []Flag{{name, value.Value, value.Line}}, nil, nil
	case yaml.SequenceNode:
		if !k.list {
			return nil, value, errors.New("takes one value, not a list")
		}
		if len(value.Content) == 0 {
			return nil, value, errors.New("the list is empty")
		}
		var list []Flag
		for _, item := range value.Content {
			if item.Kind != yaml.ScalarNode || item.Tag != "!!str" {
				return nil, item, errors.New("expected a text such as yarn:factor=4")
			}
			list = append(list, Flag{name, item.Value, item.Line})
		}
		return list, nil, nil
	case yaml.MappingNode:
		if !k.object {
			return nil, value, fmt.Errorf("takes no keys; write them as %s: NAME:KEY=VALUE,KEY=VALUE", name)
		}
		var object map[string]any
		if err := value.Decode(&object); err != nil {
			return nil, value, errors.New("expected keys that are texts, each once")
		}
		text, err := json.Marshal(object)
		if err != nil {
			return nil, value, err
		}
		return []Flag{{name, string(text), value.Line}}, nil, nil
	}
	return nil, value, errors.New("expected a value, not a reference")
}

// scalar refuses a value of another kind than the key takes.
func (k kinds) scalar(value *yaml.Node) error {
	switch value.Tag {
	case "!!str":
		if k.text {
			return nil
		}
	case "!!int":
		if k.whole {
			return nil
		}
	case "!!bool":
		if k.toggle {
			return nil
		}
	}
	var expected []string
	for _, e := range []struct {
		is   bool
		what string
	}{{k.text, "a text"}, {k.list, "a list of texts"}, {k.object, "keys with values"}, {k.whole, "a whole number"}, {k.toggle, "true or false"}} {
		if e.is {
			expected = append(expected, e.what)
		}
	}
	return fmt.Errorf("%q: expected %s", short.Name(value.Value), strings.Join(expected, " or "))
}

func digits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// Text is the recipe as Parse reads it.
func (r *Recipe) Text() ([]byte, error) {
	_, takes, err := keys()
	if err != nil {
		return nil, err
	}
	top := &yaml.Node{Kind: yaml.MappingNode}
	add := func(name string, value *yaml.Node) {
		top.Content = append(top.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, value)
	}
	add("version", &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.Itoa(Version)})
	for i := 0; i < len(r.Flags); {
		name := r.Flags[i].Name
		var values []*yaml.Node
		for ; i < len(r.Flags) && r.Flags[i].Name == name; i++ {
			v := &yaml.Node{Kind: yaml.ScalarNode, Value: r.Flags[i].Value}
			if k := takes[name]; k.text && !(k.whole && digits(r.Flags[i].Value)) {
				v.SetString(r.Flags[i].Value)
			}
			values = append(values, v)
		}
		if len(values) == 1 {
			add(name, values[0])
		} else {
			add(name, &yaml.Node{Kind: yaml.SequenceNode, Content: values})
		}
	}
	return yaml.Marshal(top)
}
