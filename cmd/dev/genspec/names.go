package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
)

var functions = template.FuncMap{
	"camel":    func(snake string) string { return join(snake, capital) },
	"field":    func(snake string) string { return join(snake, goWord) },
	"goType":   goType,
	"required": required,
	"cDefault": cDefault,
	"reason":   func() string { return "it comes with a later library" },
	"cell":     cell,
	"settled":  settled,
	"lower":    strings.ToLower,
	"snake":    snake,

	"plain":    func(op string) string { return plainNodes[op].is },
	"fallback": plainFallback,

	"reservedCount": reservedCount,
}

// plainNodes are the nodes whose fallbacks the page shows, by their ops.
var plainNodes = map[string]struct {
	is              string
	inputs, outputs []string
	attributes      []*onnx.Attribute
}{
	customop.RotaryAttentionSpec.Name: {
		"A growing cache, causal, a padding mask",
		[]string{"query", "key", "value", "past_key", "past_value", "position_ids", "attention_mask"},
		[]string{"output", "present_key", "present_value"},
		[]*onnx.Attribute{onnx.IntAttr("num_heads", 2), onnx.IntAttr("kv_num_heads", 1), onnx.FloatAttr("scale", 1)},
	},
	customop.RotarySpec.Name: {
		"Query and key [batch, length, heads, head_size]",
		[]string{"query", "key", "position_ids"},
		[]string{"rotated_query", "rotated_key"},
		nil,
	},
}

// plainFallback is the fallback of a plain node of an op, as text.
func plainFallback(op string) (string, error) {
	plain := plainNodes[op]
	node := onnx.NewNode(op, plain.inputs, plain.outputs, append(plain.attributes, onnx.IntAttr("spec_version", 7), onnx.FloatsAttr("frequencies", 1))...)
	node.Domain = customop.Domain
	f, err := definition.Body(node, false, 18)
	if err != nil {
		return "", err
	}
	return definition.Text(f), nil
}

// versionAttribute is the one attribute that no caller sets.
const versionAttribute = "spec_version"

// settled says whether the builder fills the attribute in by itself.
func settled(a customop.Attribute) bool { return a.Name == versionAttribute }

// reservedCount counts the reserved among []Value or []Attribute.
func reservedCount(list any) (n int) {
	switch list := list.(type) {
	case []customop.Value:
		for _, v := range list {
			if v.Reserved {
				n++
			}
		}
	case []customop.Attribute:
		for _, a := range list {
			if a.Reserved != "" {
				n++
			}
		}
	}
	return n
}

func required(a customop.Attribute) bool { return a.Default == "" }

func join(snake string, word func(string) string) string {
	var b strings.Builder
	for _, w := range strings.Split(snake, "_") {
		b.WriteString(word(w))
	}
	return b.String()
}

// snake writes a type's name as C++ names a namespace.
func snake(name string) string {
	return strings.ToLower(wordStart.ReplaceAllString(name, "${1}_$2"))
}

var wordStart = regexp.MustCompile(`([a-z0-9])([A-Z])`)

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// goWord is capital with Go's initialisms.
func goWord(word string) string {
	switch word {
	case "id", "kv":
		return strings.ToUpper(word)
	case "ids":
		return "IDs"
	}
	return capital(word)
}

var goTypes = map[string]string{"int": "int64", "float": "float32", "string": "string", "ints": "[]int64", "floats": "[]float32"}

func goType(a customop.Attribute) string { return goTypes[a.Type] }

// cDefault writes the declaration of an attribute's default, or nothing for a
// list (whose default is empty) and for a required attribute.
func cDefault(a customop.Attribute) string {
	name := "kDefault" + join(a.Name, capital)
	switch {
	case required(a):
		return ""
	case a.Type == "int":
		return fmt.Sprintf("inline constexpr int64_t %s = %s;", name, a.Default)
	case a.Type == "float":
		return fmt.Sprintf("inline constexpr float %s = %s;", name, a.Default)
	case a.Type == "string":
		return fmt.Sprintf("inline constexpr char %s[] = %s;", name, a.Default)
	}
	return ""
}

// cell makes a text fit into one cell of a Markdown table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

var snakeCase = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// check refuses a specification that the generated code could not hold.
func check(spec customop.Spec) error {
	seen := map[string]bool{}
	name := func(kind, name string, since int) error {
		if !snakeCase.MatchString(name) {
			return fmt.Errorf("%s %s: %q is not a snake_case name", spec.Name, kind, name)
		}
		if field := join(name, goWord); seen[field] {
			return fmt.Errorf("%s %s %s: the Go field %s exists already", spec.Name, kind, name, field)
		} else {
			seen[field] = true
		}
		if since < 1 || since > customop.SpecVersion {
			return fmt.Errorf("%s %s %s: since version %d, but versions go from 1 to %d", spec.Name, kind, name, since, customop.SpecVersion)
		}
		return nil
	}
	for _, v := range spec.Inputs {
		if err := name("input", v.Name, v.Since); err != nil {
			return err
		}
	}
	for _, v := range spec.Outputs {
		if err := name("output", v.Name, v.Since); err != nil {
			return err
		}
	}
	for _, a := range spec.Attributes {
		if err := name("attribute", a.Name, a.Since); err != nil {
			return err
		}
		if err := checkDefault(a); err != nil {
			return fmt.Errorf("%s attribute %s: %w", spec.Name, a.Name, err)
		}
	}
	return nil
}

// checkDefault refuses a default that is no literal of the attribute's type.
func checkDefault(a customop.Attribute) error {
	if goTypes[a.Type] == "" {
		return fmt.Errorf("unknown type %q", a.Type)
	}
	if a.Reserved != "" && required(a) {
		return fmt.Errorf("is reserved and has no default")
	}
	if required(a) {
		return nil
	}
	var err error
	switch a.Type {
	case "int":
		_, err = strconv.ParseInt(a.Default, 10, 64)
	case "float":
		_, err = strconv.ParseFloat(a.Default, 32)
	case "string":
		_, err = strconv.Unquote(a.Default)
	default:
		if a.Default != "nil" {
			err = fmt.Errorf("a list's default is nil")
		}
	}
	return err
}
