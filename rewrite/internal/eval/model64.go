package eval

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// InFloat64 returns a model that computes what m does, in float64. It is the reference
// for whole models, and the way to compare two models that may differ in their float32
// rounding only (a mixture of experts magnifies that). The angles of rotations keep
// their float32 rounding, which is part of what a model computes. Ops for which ONNX
// Runtime has no float64 kernel compute in float32: Gelu, Softplus, fused norms and activations,
// and this project's own op. Float inputs and outputs become doubles.
func InFloat64(m *onnx.Model) (*onnx.Model, error) {
	g, err := graph.New(m)
	if err != nil {
		return nil, err
	}
	g = g.Definition
	p := &Piece{Graph: g, Nodes: g.Nodes}
	p.Consts = append(p.Consts, m.Graph.Initializers...)
	for name, t := range g.Constants {
		if g.Internal[name] {
			p.Consts = append(p.Consts, t)
		}
	}
	for _, v := range m.Graph.Inputs {
		if ir.IsFloat(v.Type) {
			p.Boundaries = append(p.Boundaries, v.Name)
		} else {
			p.Inputs = append(p.Inputs, v)
		}
	}
	for _, v := range m.Graph.Outputs {
		p.Outputs = append(p.Outputs, v.Name)
	}
	d := p.Double()
	d.Graph.Inputs, d.Graph.Outputs = doubles(m.Graph.Inputs), doubles(m.Graph.Outputs)
	for i, n := range slices.Clone(d.Graph.Nodes) {
		if ir.Standard(n, "Erf", "Gelu", "Softplus") || n.Domain == "com.microsoft" || n.Domain == customop.Domain {
			inFloat32(d.Graph, n, i, g)
		}
	}
	return d, ir.Order(d.Graph)
}

// doubles returns copies of inputs or outputs in which float types are double.
func doubles(list []*onnx.ValueInfo) (out []*onnx.ValueInfo) {
	for _, v := range list {
		c := v.Clone()
		if ir.IsFloat(c.Type) {
			c.Type = onnx.Double
		}
		out = append(out, c)
	}
	return out
}

// inFloat32 makes a node of a float64 graph compute in float32: it casts its inputs,
// and casts its outputs back. types tells which inputs are floats.
func inFloat32(d *onnx.Graph, n *onnx.Node, at int, types *graph.Graph) {
	for j, v := range n.Inputs {
		if v == "" || types.Producer[v] == nil && types.Inputs[v] != nil && !ir.IsFloat(types.Inputs[v].Type) || !ir.IsFloat(types.Element(v)) && types.Element(v) != onnx.Undefined {
			continue
		}
		n.Inputs[j] = fmt.Sprintf("%s/rope-rewrite/float32.%d.%d", v, at, j)
		d.InsertNode(nil, ir.Cast(v, n.Inputs[j], onnx.Float))
	}
	for j, v := range n.Outputs {
		if v != "" {
			n.Outputs[j] = v + "/rope-rewrite/float32"
			d.InsertNode(nil, ir.Cast(n.Outputs[j], v, onnx.Double))
		}
	}
}
