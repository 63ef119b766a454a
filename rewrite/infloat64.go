package rewrite

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// InFloat64 returns a model that computes what m does in float64: what models are
// held against, and where two of them are compared whose float32 roundings alone
// may differ (a mixture of experts magnifies them). The angles of rotations keep
// their float32 rounding, which belongs to a model's meaning. What ONNX Runtime
// has no kernel in float64 for computes in float32: Gelu, fused norms and
// activations, and this project's own op. Inputs and outputs that were floats
// become doubles.
func InFloat64(m *onnx.Model) (*onnx.Model, error) {
	g, err := newGraph(m)
	if err != nil {
		return nil, err
	}
	g = g.definition
	p := &piece{graph: g, nodes: g.nodes}
	p.consts = append(p.consts, m.Graph.Initializers...)
	for name, t := range g.constants {
		if g.internal[name] {
			p.consts = append(p.consts, t)
		}
	}
	for _, v := range m.Graph.Inputs {
		if isFloat(v.Type) {
			p.cuts = append(p.cuts, v.Name)
		} else {
			p.inputs = append(p.inputs, v)
		}
	}
	for _, v := range m.Graph.Outputs {
		p.outputs = append(p.outputs, v.Name)
	}
	d := p.double()
	d.Graph.Inputs, d.Graph.Outputs = doubles(m.Graph.Inputs), doubles(m.Graph.Outputs)
	for i, n := range slices.Clone(d.Graph.Nodes) {
		if standard(n, "Erf", "Gelu") || n.Domain == "com.microsoft" || n.Domain == opsDomain {
			inFloat32(d.Graph, n, i, g)
		}
	}
	return d, order(d.Graph)
}

// doubles returns values of a graph with doubles for floats.
func doubles(list []*onnx.ValueInfo) (out []*onnx.ValueInfo) {
	for _, v := range list {
		c := v.Clone()
		if isFloat(c.Type) {
			c.Type = onnx.Double
		}
		out = append(out, c)
	}
	return out
}

// inFloat32 casts what a node of a graph in float64 reads to float32, and what it
// makes back; the types are those of a graph.
func inFloat32(d *onnx.Graph, n *onnx.Node, at int, types *graph) {
	for j, v := range n.Inputs {
		if v == "" || types.producer[v] == nil && types.inputs[v] != nil && !isFloat(types.inputs[v].Type) || !isFloat(types.element(v)) && types.element(v) != onnx.Undefined {
			continue
		}
		n.Inputs[j] = fmt.Sprintf("%s/rope-rewrite/float32.%d.%d", v, at, j)
		d.InsertNode(nil, cast(v, n.Inputs[j], onnx.Float))
	}
	for j, v := range n.Outputs {
		if v != "" {
			n.Outputs[j] = v + "/rope-rewrite/float32"
			d.InsertNode(nil, cast(n.Outputs[j], v, onnx.Double))
		}
	}
}
