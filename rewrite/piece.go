package rewrite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/narrow"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// piece is a part of the exporter's graph that can be evaluated by itself:
// from cuts (hidden states that are fed), integer graph inputs and the sizes
// that Shape nodes would give, to outputs.
type piece struct {
	graph   *graph
	nodes   []*onnx.Node
	cuts    []string
	inputs  []*onnx.ValueInfo // integer graph inputs
	typed   []*onnx.ValueInfo // other values that are fed, of a type of their own
	sizes   []string          // outputs of Shape nodes, fed from the shape table
	consts  []*onnx.Tensor
	outputs []string

	kinds map[string]onnx.DataType // element types of values that the graph does not have
	dims  map[string][]extent      // their dimensions
}

// element returns the element type of a value.
func (p *piece) element(v string) onnx.DataType {
	if t, ok := p.kinds[v]; ok {
		return t
	}
	return p.graph.element(v)
}

// reads reports whether one of the piece's nodes reads a value.
func (p *piece) reads(value string) bool {
	return slices.ContainsFunc(p.nodes, func(n *onnx.Node) bool { return slices.Contains(slices.Collect(uses(n)), value) })
}

// precision returns that of the weakest type among the piece's values.
func (p *piece) precision() rope.Precision {
	weakest := rope.Float32
	look := func(v string) {
		if q := precision(p.element(v)); q.Epsilon() > weakest.Epsilon() {
			weakest = q
		}
	}
	for _, c := range p.cuts {
		look(c)
	}
	for _, n := range p.nodes {
		for _, o := range n.Outputs {
			look(o)
		}
	}
	return weakest
}

// maxRank bounds what is handed to ONNX Runtime, which crashes on tensors of
// absurd rank; ONNX models use at most 6 or so.
const maxRank = 16

// extract cuts the piece that makes outputs out of cuts.
func (g *graph) extract(outputs, cuts []string) (*piece, error) {
	p := &piece{graph: g, cuts: cuts, outputs: outputs}
	needed := map[*onnx.Node]bool{}
	var wrong error
	fail := func(format string, args ...any) {
		if wrong == nil {
			wrong = fmt.Errorf(format, args...)
		}
	}
	g.upstream(outputs, func(v string, n *onnx.Node) []string {
		switch {
		case slices.Contains(cuts, v):
		case g.constants[v] != nil:
			t := g.constants[v]
			if len(t.Dims) > maxRank {
				fail("constant %q has %d dimensions", v, len(t.Dims))
			}
			if t.Name != v {
				t = t.Clone()
				t.Name = v
			}
			p.consts = append(p.consts, t)
		case n == nil && g.classes[v] == positionClass:
			p.inputs = append(p.inputs, g.inputs[v])
		case n == nil:
			fail("it reads the graph input %q", v)
		case g.classes[v] == shapeClass && standard(n, "Shape", "Size") && !(g.evaluated && g.internal[v]):
			p.sizes = append(p.sizes, v)
		case g.weightProduct(n):
			fail("it reads %q, the product with weights at %s", v, label(n))
		default:
			if err := g.evaluable(n); err != nil {
				fail("%w", err)
			}
			needed[n] = true
			return reads(n)
		}
		return nil
	})
	if wrong != nil {
		return nil, wrong
	}
	for _, n := range g.nodes {
		if needed[n] {
			p.nodes = append(p.nodes, n)
		}
	}
	slices.Sort(p.sizes)
	slices.SortFunc(p.inputs, func(a, b *onnx.ValueInfo) int { return strings.Compare(a.Name, b.Name) })
	return p, nil
}

// evaluable refuses nodes that must not be run while probing, fused ops that
// their adapter does not read among them: nobody has looked at their attributes.
func (g *graph) evaluable(n *onnx.Node) error {
	if err := g.unread[n]; err != nil {
		return fmt.Errorf("the %s at %s cannot be read: %w", n.OpType, label(n), err)
	}
	if err := evaluable(n); err != nil && function(g.model, n) {
		return fmt.Errorf("node %s calls %s, a function of the model itself, which is not looked into; %s", label(n), n.OpType, inlineThem)
	} else if err != nil {
		return err
	}
	return nil
}

// inlineThem says what to do about functions.
const inlineThem = "inline them first, for example by onnx.inliner.inline_local_functions in Python"

// function reports whether a node calls one of the model's own functions.
func function(m *onnx.Model, n *onnx.Node) bool {
	return slices.ContainsFunc(m.Functions, func(f *onnx.Function) bool { return f.Name == n.OpType && domain(f.Domain) == domain(n.Domain) })
}

// functionCalls counts the nodes that call them and returns the first.
func functionCalls(m *onnx.Model) (first *onnx.Node, calls int) {
	for n := range m.Graph.AllNodes() {
		if function(m, n) {
			if first == nil {
				first = n
			}
			calls++
		}
	}
	return first, calls
}

// evaluable refuses nodes that must not be run while probing: ops of other
// libraries, and loops, whose time nobody can bound.
func evaluable(n *onnx.Node) error {
	if n.Domain != "" && n.Domain != "ai.onnx" && n.Domain != "com.microsoft" {
		return fmt.Errorf("node %s is of the domain %q, which is not evaluated", label(n), n.Domain)
	}
	if standard(n, "Loop", "Scan") {
		return fmt.Errorf("node %s is a %s, which is not evaluated", label(n), n.OpType)
	}
	for sub := range n.Subgraphs() {
		for inner := range sub.AllNodes() {
			if err := evaluable(inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// model writes the piece as an ONNX model of its own; elem is the type in which
// hidden states are fed and given. Of a float32 model those in 16 bits are cast
// behind the inputs and before the outputs.
func (p *piece) model(elem onnx.DataType) *onnx.Model {
	m := emptyModel(p.graph.model)
	input := func(name string, t onnx.DataType) {
		m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: name, Type: t})
	}
	inner := map[string]string{} // value that is fed or given as float32 → its 16 bits
	within := func(v string) {
		if elem == onnx.Float && short(p.element(v)) {
			inner[v] = v + "/rope-rewrite/short"
		}
	}
	for _, c := range p.cuts {
		input(c, elem)
		within(c)
	}
	for _, v := range p.inputs {
		input(v.Name, v.Type)
	}
	for _, v := range p.typed {
		input(v.Name, v.Type)
		within(v.Name)
	}
	for _, s := range p.sizes {
		input(s, onnx.Int64)
	}
	for v, s := range inner {
		m.Graph.Nodes = append(m.Graph.Nodes, cast(v, s, p.element(v)))
	}
	slices.SortFunc(m.Graph.Nodes, func(a, b *onnx.Node) int { return strings.Compare(a.Inputs[0], b.Inputs[0]) })
	var casts []*onnx.Node
	for _, o := range p.outputs {
		m.Graph.Outputs = append(m.Graph.Outputs, &onnx.ValueInfo{Name: o})
		if inner[o] != "" {
			continue // what is given is what was fed
		}
		if within(o); inner[o] != "" {
			casts = append(casts, cast(inner[o], o, onnx.Float))
		}
	}
	m.Graph.Initializers = p.consts
	m.Graph.Nodes = slices.Concat(m.Graph.Nodes, renamed(p.nodes, inner), casts)
	return m
}

func cast(from, to string, t onnx.DataType) *onnx.Node {
	return onnx.NewNode("Cast", []string{from}, []string{to}, onnx.IntAttr("to", int64(t)))
}

// renamed returns the nodes with other names for some values.
func renamed(nodes []*onnx.Node, names map[string]string) []*onnx.Node {
	if len(names) == 0 {
		return nodes
	}
	out := make([]*onnx.Node, len(nodes))
	for i, n := range nodes {
		out[i] = n.Clone()
		for _, list := range [][]string{out[i].Inputs, out[i].Outputs} {
			for k, v := range list {
				if s := names[v]; s != "" {
					list[k] = s
				}
			}
		}
	}
	return out
}

// emptyModel returns a model with the opset imports of another and no nodes.
func emptyModel(like *onnx.Model) *onnx.Model {
	m := onnx.New()
	m.RequireIR(max(like.IRVersion, 7))
	for _, o := range like.Opsets() {
		m.RequireOpset(o.Domain, o.Version)
	}
	m.Graph.Name = "piece"
	return m
}

// state makes the tensor of a hidden state that is fed, its elements rounded in
// place to numbers that the state can hold.
func (p *piece) state(name string, values []float32, dims ...int64) engine.Tensor {
	round(values, p.element(name))
	return engine.Float32s(values, dims...)
}

// inputNames returns the names of all that is fed.
func inputNames(m *onnx.Model) []string {
	var names []string
	for _, v := range m.Graph.Inputs {
		names = append(names, v.Name)
	}
	return names
}

// loaded is a piece in an engine.
type loaded struct {
	session engine.Session
	piece   *piece
	table   *shapeTable
	elem    onnx.DataType
	bounds  bounds
}

func (l *loader) load(ctx context.Context, p *piece) (*loaded, error) {
	s, err := l.session(ctx, p.model(onnx.Float), p.outputs)
	if err != nil {
		return nil, err
	}
	return &loaded{session: s, piece: p, table: l.table, elem: onnx.Float}, nil
}

// loader turns models into sessions.
type loader struct {
	engine engine.Engine
	table  *shapeTable
}

func (l *loader) session(ctx context.Context, m *onnx.Model, outputs []string) (engine.Session, error) {
	if err := contain(m); err != nil {
		return nil, err
	}
	narrow.Emulate(m, onnx.BFloat16)
	data, err := m.Marshal()
	if err != nil {
		return nil, err
	}
	if len(data) > maxPiece {
		return nil, tooLarge(int64(len(data)))
	}
	return l.engine.Load(ctx, engine.Model{
		Bytes: data, Inputs: inputNames(m), Outputs: outputs, Library: m.Opset(opsDomain) > 0, Large: len(m.Graph.Nodes) > manyNodes,
	})
}

// manyNodes are more than a site has, and fewer than a skeleton of many layers.
const manyNodes = 1000

// maxPiece bounds the bytes of a piece; rotary tables of 131,072 positions take 64 MB.
const maxPiece = 512 << 20

// run evaluates at the sizes pt.
func (l *loaded) run(ctx context.Context, pt point, feeds map[string]engine.Tensor) (map[string]engine.Tensor, error) {
	if l.table.fixed != (point{}) {
		return l.runFixed(ctx, pt, feeds)
	}
	return l.evaluate(ctx, pt, feeds)
}

// random runs with normal numbers for one value, and returns these and what
// comes of them.
func (l *loaded) random(ctx context.Context, pt point, from, to string, seed uint64) (x, y engine.Tensor, err error) {
	dims := evaluate(l.table.dims[from], pt)
	elements, err := room(dims)
	if err != nil {
		return x, y, err
	}
	rng := rand.New(rand.NewPCG(seed, seed+1))
	values := make([]float32, elements)
	for i := range values {
		values[i] = float32(rng.NormFloat64())
	}
	x = l.piece.state(from, values, dims...)
	results, err := l.run(ctx, pt, map[string]engine.Tensor{from: x})
	return x, results[to], err
}

// evaluate runs at sizes that the model can have.
func (l *loaded) evaluate(ctx context.Context, pt point, feeds map[string]engine.Tensor) (map[string]engine.Tensor, error) {
	all, err := l.feeds(pt, feeds)
	if err != nil {
		return nil, err
	}
	if err := l.bounds.check(l.piece.nodes, l.piece.consts, all); err != nil {
		return nil, err
	}
	return l.session.Run(ctx, all)
}

// feeds completes the inputs of a run: sizes come from the shape table, integer
// inputs and scales of tokens that are left out are filled with ones.
func (l *loaded) feeds(pt point, feeds map[string]engine.Tensor) (map[string]engine.Tensor, error) {
	all := map[string]engine.Tensor{}
	for _, s := range l.piece.sizes {
		extents, ok := l.table.sizes[s]
		if !ok {
			return nil, fmt.Errorf("the size %q does not follow from batch, length and past", s)
		}
		values := make([]int64, len(extents))
		for i, e := range extents {
			values[i] = e.at(pt)
		}
		all[s] = engine.Int64s(values, int64(len(values)))
	}
	for _, v := range l.piece.inputs {
		if _, fed := feeds[v.Name]; fed {
			continue
		}
		t, err := l.table.fill(v, pt, 1)
		if err != nil {
			return nil, err
		}
		all[v.Name] = t
	}
	for _, c := range l.piece.cuts {
		if l.table.scales[c] && feeds[c].Dims == nil {
			dims := evaluate(l.table.dims[c], pt)
			elements, err := room(dims)
			if err != nil {
				return nil, err
			}
			all[c] = l.piece.state(c, slices.Repeat([]float32{1}, int(elements)), dims...)
		}
	}
	for name, t := range feeds {
		all[name] = t
	}
	return all, nil
}
