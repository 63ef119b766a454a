package eval

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Piece is a part of the exporter's graph that can be evaluated by itself: from its
// boundaries (hidden states that are fed), integer graph inputs and the sizes that Shape
// nodes would give, to its outputs.
type Piece struct {
	Graph      *graph.Graph
	Nodes      []*onnx.Node
	Boundaries []string          // values that are fed, as float32
	Inputs     []*onnx.ValueInfo // integer graph inputs
	Typed      []*onnx.ValueInfo // other values that are fed, each with its own type
	Sizes      []string          // outputs of Shape nodes, fed from the shape table
	Consts     []*onnx.Tensor
	Outputs    []string

	elements map[string]onnx.DataType // element types of values that the graph does not have
	dims     map[string][]dim.Extent  // the shapes of these values
}

// element returns the element type of a value.
func (p *Piece) element(v string) onnx.DataType {
	if t, ok := p.elements[v]; ok {
		return t
	}
	return p.Graph.Element(v)
}

// Reads reports whether one of the piece's nodes reads a value.
func (p *Piece) Reads(value string) bool {
	return slices.ContainsFunc(p.Nodes, func(n *onnx.Node) bool { return slices.Contains(slices.Collect(ir.Uses(n)), value) })
}

// Precision returns the lowest precision among the types of the piece's values.
func (p *Piece) Precision() rope.Precision {
	weakest := rope.Float32
	look := func(v string) {
		if q := ir.Precision(p.element(v)); q.Epsilon() > weakest.Epsilon() {
			weakest = q
		}
	}
	for _, c := range p.Boundaries {
		look(c)
	}
	for _, n := range p.Nodes {
		for _, o := range n.Outputs {
			look(o)
		}
	}
	return weakest
}

// Extract returns the piece of g from boundaries to outputs. It is an error if outputs
// need a float input, a product with weights or a node that must not be run, unless a
// boundary stands before it.
func Extract(g *graph.Graph, outputs, boundaries []string) (*Piece, error) {
	p := &Piece{Graph: g, Boundaries: boundaries, Outputs: outputs}
	needed := map[*onnx.Node]bool{}
	var wrong error
	fail := func(format string, args ...any) {
		if wrong == nil {
			wrong = fmt.Errorf(format, args...)
		}
	}
	g.Upstream(outputs, func(v string, n *onnx.Node) []string {
		switch {
		case slices.Contains(boundaries, v):
		case g.Constants[v] != nil:
			t := g.Constants[v]
			if len(t.Dims) > ir.MaxRank {
				fail("constant %q has %d dimensions", short.Name(v), len(t.Dims))
			}
			if t.Name != v {
				t = t.Clone()
				t.Name = v
			}
			p.Consts = append(p.Consts, t)
		case n == nil && g.Classes[v] == graph.PositionClass:
			p.Inputs = append(p.Inputs, g.Inputs[v])
		case n == nil:
			fail("the part reads the graph input %q", short.Name(v))
		case g.Classes[v] == graph.ShapeClass && ir.Standard(n, "Shape", "Size") && !(g.Evaluated && g.Internal[v]) && !g.Counted(n.Inputs[0]):
			p.Sizes = append(p.Sizes, v)
		case g.WeightProduct(n):
			fail("the part reads %q, the product with weights at %s", short.Name(v), ir.Label(n))
		default:
			if err := g.Evaluable(n); err != nil {
				fail("%w", err)
			}
			needed[n] = true
			return ir.Reads(n)
		}
		return nil
	})
	if len(needed) > maxNodes {
		fail("the part needs %d nodes, above the limit of %d", len(needed), maxNodes)
	}
	if wrong != nil {
		return nil, wrong
	}
	for _, n := range g.Nodes {
		if needed[n] {
			p.Nodes = append(p.Nodes, n)
		}
	}
	slices.Sort(p.Sizes)
	slices.SortFunc(p.Inputs, func(a, b *onnx.ValueInfo) int { return strings.Compare(a.Name, b.Name) })
	return p, nil
}

// Fed returns the piece with other values that are fed: boundaries are hidden states, typed
// are values with types of their own. Together they are what the piece was extracted from.
func (p *Piece) Fed(boundaries []string, typed ...*onnx.ValueInfo) *Piece {
	q := *p
	q.Boundaries, q.Typed = boundaries, typed
	return &q
}

// Sized returns the piece with the shape of a value that is fed.
func (p *Piece) Sized(v string, dims []dim.Extent) *Piece {
	q := *p
	q.dims = maps.Clone(p.dims)
	if q.dims == nil {
		q.dims = map[string][]dim.Extent{}
	}
	q.dims[v] = dims
	return &q
}

// maxNodes is the largest number of nodes of a piece. A piece is run some hundred times,
// so that more would take minutes; exporters write some hundred at most.
const maxNodes = 10_000

// Model returns the piece as an ONNX model of its own; elem is the type of its float
// inputs and outputs. With float32 for elem, values that have 16 bits in the graph are
// cast behind the inputs and before the outputs.
func (p *Piece) Model(elem onnx.DataType) *onnx.Model {
	m := ir.EmptyModel(p.Graph.Model)
	input := func(name string, t onnx.DataType) {
		m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: name, Type: t})
	}
	inner := map[string]string{} // input or output in float32 → the same value in 16 bits
	within := func(v string) {
		if elem == onnx.Float && ir.Is16Bit(p.element(v)) {
			inner[v] = v + "/rope-rewrite/short"
		}
	}
	for _, c := range p.Boundaries {
		input(c, elem)
		within(c)
	}
	for _, v := range p.Inputs {
		input(v.Name, v.Type)
	}
	for _, v := range p.Typed {
		input(v.Name, v.Type)
		within(v.Name)
	}
	for _, s := range p.Sizes {
		input(s, onnx.Int64)
	}
	for v, s := range inner {
		m.Graph.Nodes = append(m.Graph.Nodes, ir.Cast(v, s, p.element(v)))
	}
	slices.SortFunc(m.Graph.Nodes, func(a, b *onnx.Node) int { return strings.Compare(a.Inputs[0], b.Inputs[0]) })
	var casts []*onnx.Node
	for _, o := range p.Outputs {
		m.Graph.Outputs = append(m.Graph.Outputs, &onnx.ValueInfo{Name: o})
		if inner[o] != "" {
			continue // an input is also an output
		}
		if within(o); inner[o] != "" {
			casts = append(casts, ir.Cast(inner[o], o, onnx.Float))
		}
	}
	m.Graph.Initializers = p.Consts
	m.Graph.Nodes = slices.Concat(m.Graph.Nodes, ir.Renamed(p.Nodes, inner), casts)
	return m
}

// State returns the tensor to be fed for a hidden state. Its values are rounded, in
// place, to numbers of the state's element type.
func (p *Piece) State(name string, values []float32, dims ...int64) engine.Tensor {
	ir.Round(values, p.element(name))
	return engine.Float32s(values, dims...)
}
