package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Constraints are the values that a type may have, where these are a closed list, or the keywords of a
// schema for it.
type Constraints map[reflect.Type]map[string]any

// Of returns the schema of a value that is of one of the types.
func Of(title string, types []reflect.Type, constraints Constraints) ([]byte, error) {
	w := writer{constraints: constraints, definitions: map[string]any{}, named: map[string]reflect.Type{}}
	var forms []any
	for _, t := range types {
		forms = append(forms, w.of(t))
	}
	if w.err != nil {
		return nil, w.err
	}
	text, err := json.MarshalIndent(struct {
		Schema      string         `json:"$schema"`
		Title       string         `json:"title"`
		Forms       []any          `json:"anyOf"`
		Definitions map[string]any `json:"$defs"`
	}{"https://json-schema.org/draft/2020-12/schema", title, forms, w.definitions}, "", "  ")
	return append(text, '\n'), err
}

// writer collects the definitions of structs.
type writer struct {
	constraints Constraints
	definitions map[string]any
	named       map[string]reflect.Type
	err         error
}

func (w *writer) of(t reflect.Type) map[string]any {
	if keywords := w.constraints[t]; keywords != nil {
		return keywords
	}
	switch {
	case t.Kind() == reflect.Pointer:
		return w.of(t.Elem())
	case t.Implements(reflect.TypeFor[json.Marshaler]()):
		return map[string]any{}
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		list := map[string]any{"type": "array", "items": w.of(t.Elem())}
		if t.Kind() == reflect.Array {
			list["minItems"], list["maxItems"] = t.Len(), t.Len()
		}
		return list
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": w.of(t.Elem())}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Struct:
		return w.reference(t)
	}
	w.fail(fmt.Errorf("no schema is known for %v", t))
	return nil
}

// reference defines a struct once, and points there.
func (w *writer) reference(t reflect.Type) map[string]any {
	name, _, _ := strings.Cut(strings.TrimPrefix(t.String(), "main."), "[")
	switch before := w.named[name]; {
	case before == nil:
		w.named[name] = t
		object := object{Type: "object", Properties: map[string]any{}, Required: []string{}}
		w.fields(t, &object)
		w.definitions[name] = object
	case before != t:
		w.fail(fmt.Errorf("%v and %v have one name", before, t))
	}
	return map[string]any{"$ref": "#/$defs/" + name}
}

// object is the schema of a struct.
type object struct {
	Type       string         `json:"type"`
	Properties map[string]any `json:"properties"`
	Required   []string       `json:"required"`
}

func (w *writer) fields(t reflect.Type, o *object) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			w.fields(f.Type, o)
			continue
		case name == "-" || !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		value := w.of(f.Type)
		if strings.Contains(options, "omit") {
			o.Properties[name] = value
			continue
		}
		if f.Type.Kind() == reflect.Pointer {
			value = map[string]any{"anyOf": []any{value, map[string]any{"type": "null"}}}
		}
		o.Properties[name] = value
		o.Required = append(o.Required, name)
	}
}

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}
