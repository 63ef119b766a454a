package eval

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/float16"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Double retypes a piece to float64: the reference of a proof. The nodes that make the
// angles (all that a Cos or Sin reads) keep the exporter's float32 rounding, so that the
// comparison stays tight at every position. Angles of 16 bits become float32, as the op
// rounds them. So do the nodes that make an integer of numbers that are no hidden states, such as
// the bucket of a distance from its logarithm: it is the exporter's rounding that decides where a
// bucket ends. Integer inputs and sizes keep their types; the boundaries become doubles.
func (p *Piece) Double() *onnx.Model { return p.double(p.angles()) }

// DoubleAngles is Double with angles in float64 too: the reference where the op rotates by other
// positions than the original, and so rounds other angles.
func (p *Piece) DoubleAngles() *onnx.Model { return p.double(nil) }

// double retypes a piece but for some nodes, which make angles.
func (p *Piece) double(angles map[*onnx.Node]bool) *onnx.Model {
	m := p.Model(onnx.Double)
	r := &retyper{
		angles: angles,
		kept:   p.upstream(p.cut()),
		coarse: p.AnglePrecision() != rope.Float32,
		types:  map[string]onnx.DataType{},
		made:   map[string]bool{},
	}
	for _, v := range m.Graph.Inputs {
		r.types[v.Name] = v.Type
	}
	for _, t := range p.Consts {
		r.types[t.Name] = t.Type
	}
	for _, n := range p.Nodes {
		r.add(n)
	}
	m.Graph.Nodes = r.nodes
	return m
}

// angles returns the nodes that make what a Cos or Sin reads.
func (p *Piece) angles() map[*onnx.Node]bool {
	var angles []string
	for _, n := range p.Nodes {
		if ir.Standard(n, "Cos", "Sin") {
			angles = append(angles, n.Inputs[0])
		}
	}
	return p.upstream(angles)
}

// cut returns the float values that are no hidden states and of which integers are made.
func (p *Piece) cut() (values []string) {
	for _, n := range p.Nodes {
		integer := slices.Contains([]onnx.DataType{onnx.Int32, onnx.Int64}, onnx.DataType(n.Int("to", 0)))
		if ir.Standard(n, "Cast") && integer && ir.IsFloat(p.element(n.Inputs[0])) && !p.Graph.IsData(n.Inputs[0]) {
			values = append(values, n.Inputs[0])
		}
	}
	return values
}

// upstream returns the nodes of the piece that make values.
func (p *Piece) upstream(values []string) map[*onnx.Node]bool {
	own := map[*onnx.Node]bool{}
	for _, n := range p.Nodes {
		own[n] = true
	}
	inside := map[*onnx.Node]bool{}
	p.Graph.Upstream(values, func(_ string, n *onnx.Node) []string {
		if !own[n] {
			return nil
		}
		inside[n] = true
		return ir.Reads(n)
	})
	return inside
}

// AnglePrecision returns the lowest precision in which positions are multiplied on
// their way to a Cos or Sin.
func (p *Piece) AnglePrecision() rope.Precision {
	weakest := rope.Float32
	for n := range p.angles() {
		if !ir.Standard(n, "Mul", "MatMul", "Div", "Einsum", "Add") || p.Graph.Classes[n.Outputs[0]] < graph.ShapeClass {
			continue
		}
		if q := ir.Precision(p.element(n.Outputs[0])); q.Epsilon() > weakest.Epsilon() {
			weakest = q
		}
	}
	return weakest
}

// retyper copies nodes and follows the types of their values.
type retyper struct {
	angles map[*onnx.Node]bool
	kept   map[*onnx.Node]bool // nodes that keep their types
	coarse bool                // the angles have 16 bits
	types  map[string]onnx.DataType
	made   map[string]bool // copies in another type that are written already
	nodes  []*onnx.Node
}

// add writes a copy of n that computes in the new type.
func (r *retyper) add(n *onnx.Node) {
	to := onnx.Double
	switch {
	case r.kept[n], r.angles[n] && !r.coarse:
		r.nodes = append(r.nodes, n)
		r.note(n)
		return
	case r.angles[n]:
		to = onnx.Float
	}
	c := n.Clone()
	for i, v := range c.Inputs {
		if t := r.types[v]; v != "" && ir.IsFloat(t) && t != to {
			c.Inputs[i] = r.as(v, to)
		}
	}
	switch {
	case ir.Standard(c, "Cast") && ir.IsFloat(onnx.DataType(c.Int("to", 0))):
		c.SetAttribute(onnx.IntAttr("to", int64(to)))
	case ir.Standard(c, "ConstantOfShape", "Constant"):
		float16.RetypeValue(c, to)
	}
	r.nodes = append(r.nodes, c)
	r.note(c)
}

// as returns the copy of a value in another type, made on first use.
func (r *retyper) as(v string, to onnx.DataType) string {
	key := fmt.Sprintf("%s/rope-rewrite/%v", v, to)
	if !r.made[key] {
		r.made[key] = true
		r.types[key] = to
		r.nodes = append(r.nodes, ir.Cast(v, key, to))
	}
	return key
}

// note records the types of n's outputs.
func (r *retyper) note(n *onnx.Node) {
	for i, o := range n.Outputs {
		r.types[o] = float16.OutputType(n, i, r.types)
	}
}
