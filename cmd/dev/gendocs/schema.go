package main

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// words are the values of texts that programs may decide by.
var words = map[reflect.Type][]string{
	reflect.TypeFor[rewrite.Status](): {string(rewrite.Rewritten), string(rewrite.Rotation), string(rewrite.Unchanged)},
	reflect.TypeFor[rewrite.Kind](): {string(rewrite.NotDelimited), string(rewrite.SharesCache), string(rewrite.NotMeasured), string(rewrite.NotVerified),
		string(rewrite.NotRotary), string(rewrite.NotAskedFor), string(rewrite.CrossAlone), string(rewrite.PaddingRead), string(rewrite.ReadOutside), string(rewrite.LeftBefore)},
	reflect.TypeFor[rewrite.Form](): {string(rewrite.OwnNodes), string(rewrite.Inlined), string(rewrite.GroupQuery), string(rewrite.Rotary)},
}

// reportSchema returns the JSON Schema of the report that --json prints. Records are described in
// docs/provenance.md.
func reportSchema() (string, error) {
	schema := schemaOf(reflect.TypeFor[rewrite.Report]())
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "The report of rope-rewrite --json"
	schema["properties"].(map[string]any)["report_version"] = map[string]any{"const": rewrite.ReportVersion}
	text, err := json.MarshalIndent(schema, "", "  ")
	return string(text) + "\n", err
}

func schemaOf(t reflect.Type) map[string]any {
	if list := words[t]; list != nil {
		return map[string]any{"enum": list}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return map[string]any{"anyOf": []any{schemaOf(t.Elem()), map[string]any{"type": "null"}}}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Struct:
		return object(t)
	}
	return map[string]any{}
}

func object(t reflect.Type) map[string]any {
	if t.Name() == "Record" {
		return map[string]any{"type": "object", "description": "docs/provenance.md"}
	}
	properties, required := map[string]any{}, []string{}
	for f := range t.Fields() {
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		if name == "" {
			name = f.Name
		}
		properties[name] = schemaOf(f.Type)
		if rest == "" {
			required = append(required, name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}
