package definition

import (
	"fmt"
	"math"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Text writes a function in ONNX's textual syntax, one node a line, as onnx.parser reads
// it. Functions of one text compute the same.
func Text(f *onnx.Function) string {
	var b strings.Builder
	var opsets []string
	for _, o := range f.Opsets {
		opsets = append(opsets, fmt.Sprintf("%q : %d", o.Domain, o.Version))
	}
	fmt.Fprintf(&b, "<\n  domain: %q,\n  opset_import: [%s]\n>\n%s", f.Domain, strings.Join(opsets, ", "), f.Name)
	if len(f.AttributeNames) > 0 {
		fmt.Fprintf(&b, " <%s>", strings.Join(f.AttributeNames, ", "))
	}
	fmt.Fprintf(&b, " (%s) => (%s)\n{\n", strings.Join(f.Inputs, ", "), strings.Join(f.Outputs, ", "))
	for _, n := range f.Nodes {
		name := n.OpType
		if n.Domain != "" {
			name = n.Domain + "." + name
		}
		fmt.Fprintf(&b, "  %s = %s", strings.Join(n.Outputs, ", "), name)
		if len(n.Attributes) > 0 {
			var attributes []string
			for _, a := range n.Attributes {
				attributes = append(attributes, attributeText(a))
			}
			fmt.Fprintf(&b, " <%s>", strings.Join(attributes, ", "))
		}
		fmt.Fprintf(&b, " (%s)\n", strings.Join(n.Inputs, ", "))
	}
	b.WriteString("}\n")
	return b.String()
}

// attributeText writes one attribute of a node.
func attributeText(a *onnx.Attribute) string {
	kind := map[onnx.AttributeType]string{onnx.AttrInt: "int", onnx.AttrFloat: "float", onnx.AttrString: "string", onnx.AttrInts: "ints", onnx.AttrFloats: "floats"}[a.Type]
	if a.RefName != "" {
		return fmt.Sprintf("%s: %s = @%s", a.Name, kind, a.RefName)
	}
	switch a.Type {
	case onnx.AttrInt:
		return fmt.Sprintf("%s = %d", a.Name, a.Int)
	case onnx.AttrFloat:
		return fmt.Sprintf("%s: float = %s", a.Name, numberText(float64(a.Float)))
	case onnx.AttrString:
		return fmt.Sprintf("%s = %q", a.Name, a.Bytes)
	case onnx.AttrInts:
		return fmt.Sprintf("%s: ints = [%s]", a.Name, listed(a.Ints))
	case onnx.AttrTensor:
		return a.Name + " = " + tensorText(a.Tensor)
	}
	return fmt.Sprintf("%s: type %d", a.Name, a.Type) // no function of this package has one
}

// tensorText writes a constant.
func tensorText(t *onnx.Tensor) string {
	name := map[onnx.DataType]string{onnx.Int64: "int64", onnx.Float: "float", onnx.Double: "double", onnx.Bool: "bool", onnx.Int32: "int32"}[t.Type]
	if name == "" {
		name = fmt.Sprintf("type%d", t.Type)
	}
	if len(t.Dims) > 0 {
		name += fmt.Sprintf("[%s]", strings.ReplaceAll(listed(t.Dims), " ", ""))
	}
	if t.Type != onnx.Float && t.Type != onnx.Double {
		values, err := t.Int64s()
		if err != nil {
			return name // of a type that no function of this package has
		}
		return fmt.Sprintf("%s {%s}", name, listed(values))
	}
	values, err := t.Float64s()
	if err != nil {
		return name
	}
	var list []string
	for _, x := range values {
		list = append(list, numberText(x))
	}
	return fmt.Sprintf("%s {%s}", name, strings.Join(list, ", "))
}

// numberText writes a number as C does: onnx.parser knows no other infinity.
func numberText(x float64) string {
	if math.IsInf(x, 0) {
		return strings.Replace(fmt.Sprint(x), "Inf", "inf", 1)
	}
	return fmt.Sprintf("%g", x)
}

func listed(values []int64) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(values), "[]"), " ", ", ")
}
