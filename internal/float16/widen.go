package float16

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

const shortSuffix = "/rope-rewrite/short"

// Short reports whether numbers of the type have 16 bits.
func Short(t onnx.DataType) bool { return t == onnx.Float16 || t == onnx.BFloat16 }

// Has reports whether a model has inputs, outputs or weights of 16 bits.
func Has(m *onnx.Model) bool {
	value := func(v *onnx.ValueInfo) bool { return Short(v.Type) }
	return slices.ContainsFunc(m.Graph.Inputs, value) || slices.ContainsFunc(m.Graph.Outputs, value) ||
		slices.ContainsFunc(m.Graph.Initializers, func(t *onnx.Tensor) bool { return Short(t.Type) })
}

func cast(from, to string, t onnx.DataType) *onnx.Node {
	return onnx.NewNode("Cast", []string{from}, []string{to}, onnx.IntAttr("to", int64(t)))
}

// Widen makes the float16 and bfloat16 inputs and outputs of a model's graph
// float32 ones, cast behind the inputs and before the outputs, and reports whether
// there were any. The Go binding of ONNX Runtime cannot return 16-bit outputs.
func Widen(m *onnx.Model) bool {
	g := m.Graph
	names := map[string]string{}
	var first, last []*onnx.Node
	wide := func(list []*onnx.ValueInfo, found func(v *onnx.ValueInfo, inner string)) {
		for i, v := range list {
			if !Short(v.Type) {
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

// Retype makes every 16-bit value of a model float32: what the model would give
// if it were computed more exactly, from the same weights. It reports whether
// there were any.
func Retype(m *onnx.Model) bool {
	if !Has(m) {
		return false
	}
	for g := range m.Graph.AllGraphs() {
		for _, list := range []*[]*onnx.ValueInfo{&g.Inputs, &g.Outputs, &g.ValueInfo} {
			*list = slices.Clone(*list)
			for i, v := range *list {
				if Short(v.Type) {
					(*list)[i] = v.Clone()
					(*list)[i].Type = onnx.Float
				}
			}
		}
		var casts []*onnx.Node
		g.Initializers = slices.Clone(g.Initializers)
		for i, t := range g.Initializers {
			if Short(t.Type) {
				c := t.Clone()
				c.Name += shortSuffix
				g.Initializers[i] = c
				casts = append(casts, cast(c.Name, t.Name, onnx.Float))
				g.Inputs = slices.DeleteFunc(g.Inputs, func(v *onnx.ValueInfo) bool { return v.Name == t.Name })
			}
		}
		for _, n := range g.Nodes {
			retypeNode(n)
		}
		g.Nodes = append(casts, g.Nodes...)
	}
	for _, f := range m.Functions {
		for _, n := range f.Nodes {
			retypeNode(n)
			for sub := range n.Subgraphs() {
				for inner := range sub.AllNodes() {
					retypeNode(inner)
				}
			}
		}
	}
	return true
}

// retypeNode makes the types that a node names float32.
func retypeNode(n *onnx.Node) {
	for _, name := range []string{"to", "dtype", "output_dtype"} {
		if Short(onnx.DataType(n.Int(name, 0))) {
			n.SetAttribute(onnx.IntAttr(name, int64(onnx.Float)))
		}
	}
	if t := n.Tensor("value"); t != nil && Short(t.Type) {
		RetypeValue(n, onnx.Float)
	}
}
