package eval

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/narrow"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Piece is a part of the exporter's graph that can be evaluated by itself:
// from cuts (hidden states that are fed), integer graph inputs and the sizes
// that Shape nodes would give, to outputs.
type Piece struct {
	Graph      *graph.Graph
	Nodes      []*onnx.Node
	Boundaries []string
	Inputs     []*onnx.ValueInfo // integer graph inputs
	Typed      []*onnx.ValueInfo // other values that are fed, of a type of their own
	Sizes      []string          // outputs of Shape nodes, fed from the shape table
	Consts     []*onnx.Tensor
	Outputs    []string

	kinds map[string]onnx.DataType // element types of values that the graph does not have
	dims  map[string][]dim.Extent  // their dimensions
}

// element returns the element type of a value.
func (p *Piece) element(v string) onnx.DataType {
	if t, ok := p.kinds[v]; ok {
		return t
	}
	return p.Graph.Element(v)
}

// Reads reports whether one of the piece's nodes reads a value.
func (p *Piece) Reads(value string) bool {
	return slices.ContainsFunc(p.Nodes, func(n *onnx.Node) bool { return slices.Contains(slices.Collect(ir.Uses(n)), value) })
}

// Precision returns that of the weakest type among the piece's values.
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

// Extract cuts the piece that makes outputs out of cuts.
func Extract(g *graph.Graph, outputs, cuts []string) (*Piece, error) {
	p := &Piece{Graph: g, Boundaries: cuts, Outputs: outputs}
	needed := map[*onnx.Node]bool{}
	var wrong error
	fail := func(format string, args ...any) {
		if wrong == nil {
			wrong = fmt.Errorf(format, args...)
		}
	}
	g.Upstream(outputs, func(v string, n *onnx.Node) []string {
		switch {
		case slices.Contains(cuts, v):
		case g.Constants[v] != nil:
			t := g.Constants[v]
			if len(t.Dims) > ir.MaxRank {
				fail("constant %q has %d dimensions", v, len(t.Dims))
			}
			if t.Name != v {
				t = t.Clone()
				t.Name = v
			}
			p.Consts = append(p.Consts, t)
		case n == nil && g.Classes[v] == graph.PositionClass:
			p.Inputs = append(p.Inputs, g.Inputs[v])
		case n == nil:
			fail("it reads the graph input %q", v)
		case g.Classes[v] == graph.ShapeClass && ir.Standard(n, "Shape", "Size") && !(g.Evaluated && g.Internal[v]):
			p.Sizes = append(p.Sizes, v)
		case g.WeightProduct(n):
			fail("it reads %q, the product with weights at %s", v, ir.Label(n))
		default:
			if err := g.Evaluable(n); err != nil {
				fail("%w", err)
			}
			needed[n] = true
			return ir.Reads(n)
		}
		return nil
	})
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

// Model writes the piece as an ONNX model of its own; elem is the type in which
// hidden states are fed and given. Of a float32 model those in 16 bits are cast
// behind the inputs and before the outputs.
func (p *Piece) Model(elem onnx.DataType) *onnx.Model {
	m := ir.EmptyModel(p.Graph.Model)
	input := func(name string, t onnx.DataType) {
		m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: name, Type: t})
	}
	inner := map[string]string{} // value that is fed or given as float32 → its 16 bits
	within := func(v string) {
		if elem == onnx.Float && ir.Short(p.element(v)) {
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
			continue // what is given is what was fed
		}
		if within(o); inner[o] != "" {
			casts = append(casts, ir.Cast(inner[o], o, onnx.Float))
		}
	}
	m.Graph.Initializers = p.Consts
	m.Graph.Nodes = slices.Concat(m.Graph.Nodes, ir.Renamed(p.Nodes, inner), casts)
	return m
}

// State makes the tensor of a hidden state that is fed, its elements rounded in
// place to numbers that the state can hold.
func (p *Piece) State(name string, values []float32, dims ...int64) engine.Tensor {
	ir.Round(values, p.element(name))
	return engine.Float32s(values, dims...)
}

// InputNames returns the names of all that is fed.
func InputNames(m *onnx.Model) []string {
	var names []string
	for _, v := range m.Graph.Inputs {
		names = append(names, v.Name)
	}
	return names
}

// Loaded is a piece in an engine.
type Loaded struct {
	Session engine.Session
	Piece   *Piece
	Table   *ShapeTable
	Elem    onnx.DataType
	bounds  bound.Bounds
}

func (l *Loader) Load(ctx context.Context, p *Piece) (*Loaded, error) {
	s, err := l.Session(ctx, p.Model(onnx.Float), p.Outputs)
	if err != nil {
		return nil, err
	}
	return &Loaded{Session: s, Piece: p, Table: l.Table, Elem: onnx.Float}, nil
}

// Loader turns models into sessions.
type Loader struct {
	Engine engine.Engine
	Table  *ShapeTable
}

func (l *Loader) Session(ctx context.Context, m *onnx.Model, outputs []string) (engine.Session, error) {
	if err := Contain(m); err != nil {
		return nil, err
	}
	narrow.Emulate(m, onnx.BFloat16)
	data, err := m.Marshal()
	if err != nil {
		return nil, err
	}
	if len(data) > MaxPiece {
		return nil, tooLarge(int64(len(data)))
	}
	return l.Engine.Load(ctx, engine.Model{
		Bytes: data, Inputs: InputNames(m), Outputs: outputs, Library: m.Opset(graph.OpsDomain) > 0, Large: len(m.Graph.Nodes) > manyNodes,
	})
}

// manyNodes are more than a site has, and fewer than a skeleton of many layers.
const manyNodes = 1000

// MaxPiece bounds the bytes of a piece; rotary tables of 131,072 positions take 64 MB.
const MaxPiece = 512 << 20

// Run evaluates at the sizes pt.
func (l *Loaded) Run(ctx context.Context, pt dim.Point, feeds map[string]engine.Tensor) (map[string]engine.Tensor, error) {
	if l.Table.Static != (dim.Point{}) {
		return l.runStatic(ctx, pt, feeds)
	}
	return l.evaluate(ctx, pt, feeds)
}

// Random runs with normal numbers for one value, and returns these and what
// comes of them.
func (l *Loaded) Random(ctx context.Context, pt dim.Point, from, to string, seed uint64) (x, y engine.Tensor, err error) {
	dims := dim.Evaluate(l.Table.Dims[from], pt)
	elements, err := bound.Room(dims)
	if err != nil {
		return x, y, err
	}
	rng := rand.New(rand.NewPCG(seed, seed+1))
	values := make([]float32, elements)
	for i := range values {
		values[i] = float32(rng.NormFloat64())
	}
	x = l.Piece.State(from, values, dims...)
	results, err := l.Run(ctx, pt, map[string]engine.Tensor{from: x})
	return x, results[to], err
}

// evaluate runs at sizes that the model can have.
func (l *Loaded) evaluate(ctx context.Context, pt dim.Point, feeds map[string]engine.Tensor) (map[string]engine.Tensor, error) {
	all, err := l.Feeds(pt, feeds)
	if err != nil {
		return nil, err
	}
	if err := l.bounds.Check(l.Piece.Nodes, l.Piece.Consts, all); err != nil {
		return nil, err
	}
	return l.Session.Run(ctx, all)
}

// Feeds completes the inputs of a run: sizes come from the shape table, integer
// inputs and scales of tokens that are left out are filled with ones.
func (l *Loaded) Feeds(pt dim.Point, feeds map[string]engine.Tensor) (map[string]engine.Tensor, error) {
	all := map[string]engine.Tensor{}
	for _, s := range l.Piece.Sizes {
		extents, ok := l.Table.Sizes[s]
		if !ok {
			return nil, fmt.Errorf("the size %q does not follow from batch, length and past", s)
		}
		values := make([]int64, len(extents))
		for i, e := range extents {
			values[i] = e.At(pt)
		}
		all[s] = engine.Int64s(values, int64(len(values)))
	}
	for _, v := range l.Piece.Inputs {
		if _, fed := feeds[v.Name]; fed {
			continue
		}
		t, err := l.Table.fill(v, pt, 1)
		if err != nil {
			return nil, err
		}
		all[v.Name] = t
	}
	for _, c := range l.Piece.Boundaries {
		if l.Table.Scales[c] && feeds[c].Dims == nil {
			dims := dim.Evaluate(l.Table.Dims[c], pt)
			elements, err := bound.Room(dims)
			if err != nil {
				return nil, err
			}
			all[c] = l.Piece.State(c, slices.Repeat([]float32{1}, int(elements)), dims...)
		}
	}
	for name, t := range feeds {
		all[name] = t
	}
	return all, nil
}
