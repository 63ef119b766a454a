package rewrite

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/narrow"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// double retypes a piece to float64: the yardstick of a proof. The sub-graph
// that makes the angles (all that a Cos or Sin reads) keeps the exporter's
// float32 rounding, so that the comparison stays tight at every position.
// The integer inputs and sizes stay as they are; the cuts become doubles.
func (p *piece) double() *onnx.Model {
	m := p.model(onnx.Double)
	r := &retyper{
		angles:  p.angles(),
		types:   map[string]onnx.DataType{},
		doubled: map[string]string{},
	}
	for _, v := range m.Graph.Inputs {
		r.types[v.Name] = v.Type
	}
	for _, t := range p.consts {
		r.types[t.Name] = t.Type
	}
	for _, n := range p.nodes {
		r.add(n)
	}
	m.Graph.Nodes = r.nodes
	return m
}

// angles returns the nodes whose values a Cos or Sin reads.
func (p *piece) angles() map[*onnx.Node]bool {
	var angles []string
	for _, n := range p.nodes {
		if standard(n, "Cos", "Sin") {
			angles = append(angles, n.Inputs[0])
		}
	}
	inside := map[*onnx.Node]bool{}
	p.graph.upstream(angles, func(_ string, n *onnx.Node) []string {
		if n == nil || !slices.Contains(p.nodes, n) {
			return nil
		}
		inside[n] = true
		return reads(n)
	})
	return inside
}

// retyper copies nodes and follows the types of their values.
type retyper struct {
	angles  map[*onnx.Node]bool
	types   map[string]onnx.DataType
	doubled map[string]string // value → its double copy
	nodes   []*onnx.Node
}

func (r *retyper) add(n *onnx.Node) {
	if r.angles[n] {
		r.nodes = append(r.nodes, n)
		r.note(n)
		return
	}
	c := n.Clone()
	for i, v := range c.Inputs {
		if t := r.types[v]; v != "" && isFloat(t) && t != onnx.Double {
			c.Inputs[i] = r.asDouble(v)
		}
	}
	switch {
	case standard(c, "Cast") && isFloat(onnx.DataType(c.Int("to", 0))):
		c.SetAttribute(onnx.IntAttr("to", int64(onnx.Double)))
	case standard(c, "ConstantOfShape", "Constant"):
		narrow.RetypeValue(c, onnx.Double)
	}
	r.nodes = append(r.nodes, c)
	r.note(c)
}

// asDouble returns the double copy of a value, made on first use.
func (r *retyper) asDouble(v string) string {
	if d := r.doubled[v]; d != "" {
		return d
	}
	d := v + "/rope-rewrite/double"
	r.doubled[v] = d
	r.types[d] = onnx.Double
	r.nodes = append(r.nodes, onnx.NewNode("Cast", []string{v}, []string{d}, onnx.IntAttr("to", int64(onnx.Double))))
	return d
}

// note records the types of n's outputs.
func (r *retyper) note(n *onnx.Node) {
	for _, o := range n.Outputs {
		r.types[o] = narrow.OutputType(n, r.types)
	}
}
