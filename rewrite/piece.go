package rewrite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
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
	return evaluable(n)
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

// model writes the piece as an ONNX model of its own; elem is the type of the
// hidden states.
func (p *piece) model(elem onnx.DataType) *onnx.Model {
	m := emptyModel(p.graph.model)
	for _, c := range p.cuts {
		m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: c, Type: elem})
	}
	for _, v := range slices.Concat(p.inputs, p.typed) {
		m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: v.Name, Type: v.Type})
	}
	for _, s := range p.sizes {
		m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: s, Type: onnx.Int64})
	}
	m.Graph.Initializers = p.consts
	m.Graph.Nodes = p.nodes
	for _, o := range p.outputs {
		m.Graph.Outputs = append(m.Graph.Outputs, &onnx.ValueInfo{Name: o})
	}
	return m
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
	data, err := m.Marshal()
	if err != nil {
		return nil, err
	}
	if len(data) > maxPiece {
		return nil, tooLarge(int64(len(data)))
	}
	return l.engine.Load(ctx, engine.Model{
		Bytes: data, Inputs: inputNames(m), Outputs: outputs, Library: m.Opset(opsDomain) > 0,
	})
}

// maxPiece bounds the bytes of a piece; rotary tables of 131,072 positions take 64 MB.
const maxPiece = 512 << 20

// run evaluates at the sizes pt. Sizes come from the shape table, integer
// inputs that feeds leaves out are filled with ones.
func (l *loaded) run(ctx context.Context, pt point, feeds map[string]engine.Tensor) (map[string]engine.Tensor, error) {
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
	for name, t := range feeds {
		all[name] = t
	}
	if err := bounded(l.piece.nodes, l.piece.consts, all); err != nil {
		return nil, err
	}
	return l.session.Run(ctx, all)
}
