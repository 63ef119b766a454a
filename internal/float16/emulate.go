package float16

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// ONNX Runtime's CPU provider has next to no kernels for bfloat16. What such a
// kernel gives is computed here as kernels do it: in float32, and rounded at the
// end. So every node reads its bfloat16 inputs as float32 and its output is cast
// back; the numbers between nodes stay those of the model.

// Emulate wraps the nodes of a graph that read or make a type of 16 bits, in topological
// order, those of the op library excepted, and reports whether there are any. Nodes with
// sub-graphs are unchanged. (ONNX Runtime has kernels for float16, but rounds less
// than node by node where it casts around several that it lacks.)
func Emulate(m *onnx.Model, short onnx.DataType) bool {
	e := &emulator{short: short, types: map[string]onnx.DataType{}, wide: map[string]string{}}
	for _, v := range m.Graph.Inputs {
		e.types[v.Name] = v.Type
	}
	for _, t := range m.Graph.Initializers {
		e.types[t.Name] = t.Type
	}
	for _, n := range m.Graph.Nodes {
		e.add(n)
	}
	if e.found {
		m.Graph.Nodes = e.nodes
	}
	return e.found
}

type emulator struct {
	short onnx.DataType
	types map[string]onnx.DataType
	wide  map[string]string // value in 16 bits → its float32 copy
	nodes []*onnx.Node
	found bool
}

const wideSuffix = "/rope-rewrite/wide"

func (e *emulator) add(n *onnx.Node) {
	for i, o := range n.Outputs {
		e.types[o] = OutputType(n, i, e.types)
	}
	is := func(v string) bool { return v != "" && e.types[v] == e.short }
	if n.Domain == customop.Domain || standard(n, "Cast") || hasGraph(n) || !slices.ContainsFunc(slices.Concat(n.Inputs, n.Outputs), is) {
		e.nodes = append(e.nodes, n)
		return
	}
	e.found = true
	c := n.Clone()
	for i, v := range c.Inputs {
		if !is(v) {
			continue
		}
		if e.wide[v] == "" {
			e.wide[v] = v + wideSuffix
			e.nodes = append(e.nodes, cast(v, e.wide[v], onnx.Float))
		}
		c.Inputs[i] = e.wide[v]
	}
	e.nodes = append(e.nodes, c)
	for i, o := range c.Outputs {
		if is(o) {
			c.Outputs[i] = o + "/rope-rewrite/exact"
			e.nodes = append(e.nodes, cast(c.Outputs[i], o, e.short))
		}
	}
	if standard(c, "ConstantOfShape", "Constant") {
		RetypeValue(c, onnx.Float)
	}
}

func hasGraph(n *onnx.Node) bool {
	for range n.Subgraphs() {
		return true
	}
	return false
}
