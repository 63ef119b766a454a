package decoder

import "github.com/rope-rewrite/rope-rewrite/onnx"

const shortSuffix = "/rope-rewrite/short"

// Widen makes the float16 and bfloat16 inputs and outputs of a graph float32
// ones, cast behind the inputs and before the outputs, and reports whether there
// were any. The Go binding of ONNX Runtime cannot return 16-bit outputs.
func Widen(g *onnx.Graph) bool {
	names := map[string]string{}
	var first, last []*onnx.Node
	cast := func(from, to string, t onnx.DataType) *onnx.Node {
		return onnx.NewNode("Cast", []string{from}, []string{to}, onnx.IntAttr("to", int64(t)))
	}
	wide := func(list []*onnx.ValueInfo, found func(v *onnx.ValueInfo, inner string)) {
		for i, v := range list {
			if v.Type != onnx.Float16 && v.Type != onnx.BFloat16 {
				continue
			}
			names[v.Name] = v.Name + shortSuffix
			found(v, names[v.Name])
			list[i] = v.Clone()
			list[i].Type = onnx.Float
		}
	}
	wide(g.Inputs, func(v *onnx.ValueInfo, inner string) { first = append(first, cast(v.Name, inner, v.Type)) })
	wide(g.Outputs, func(v *onnx.ValueInfo, inner string) { last = append(last, cast(inner, v.Name, onnx.Float)) })
	if len(names) == 0 {
		return false
	}
	for n := range g.AllNodes() {
		for _, list := range [][]string{n.Inputs, n.Outputs} {
			for i, v := range list {
				if inner := names[v]; inner != "" {
					list[i] = inner
				}
			}
		}
	}
	nodes := append(first, g.Nodes...)
	g.Nodes = append(nodes, last...)
	return true
}
