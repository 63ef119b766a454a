package graph

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// A graph with fused ops has three views. The source is the model as it stands:
// what a proof runs in float32. The graph that is analysed has every fused op
// that an adapter reads expanded into primitive nodes: sites are found,
// delimited and measured in it. The definition has them expanded to the ops'
// whole definitions: what a proof runs in float64. Values of the model have the
// same names in all three.

// view is what the expansion of fused ops adds to a graph.
type view struct {
	Source     *Graph                             // the graph as the model has it
	Definition *Graph                             // with the ops' whole definitions
	Written    map[*onnx.Node]*onnx.Node          // primitive node → the model's node that it is a part of
	Internal   map[string]bool                    // values that only an expansion has
	Unread     map[*onnx.Node]error               // the model's nodes that their adapter does not read
	Counted    map[*onnx.Node]*fused.CountedCache // the model's nodes that count their cache
	Dims       map[string]map[int]int64           // dimensions that values must have for expanded nodes to run
	Evaluated  bool                               // sizes inside expansions are evaluated, not measured and fed
}

// NewGraph reads a model's main graph.
func NewGraph(m *onnx.Model) (*Graph, error) { return NewGraphWith(m, Adapters()) }

// NewGraphWith reads it with the given adapters.
func NewGraphWith(m *onnx.Model, table []fused.Adapter) (*Graph, error) {
	source, err := buildGraph(m, m.Graph.Nodes, nil, view{})
	if err != nil {
		return nil, err
	}
	source.Source, source.Definition = source, source
	if !slices.ContainsFunc(source.Nodes, func(n *onnx.Node) bool { return adapterOf(table, n) != nil }) {
		return source, nil
	}
	definition, err := source.expanded(table, func(a *fused.Adapter) expander {
		if a.Define != nil {
			return a.Define
		}
		return a.Expand
	})
	if err != nil {
		return nil, err
	}
	definition.Evaluated = true
	g, err := source.expanded(table, func(a *fused.Adapter) expander { return a.Expand })
	if err != nil {
		return nil, err
	}
	g.Source, g.Definition = source, definition
	return g, nil
}

type expander = func(*onnx.Node, fused.Context) (*fused.Expansion, error)

// expanded returns the graph with every fused op replaced by its expansion.
func (g *Graph) expanded(table []fused.Adapter, by func(*fused.Adapter) expander) (*Graph, error) {
	v := view{Written: map[*onnx.Node]*onnx.Node{}, Internal: map[string]bool{}, Unread: map[*onnx.Node]error{},
		Counted: map[*onnx.Node]*fused.CountedCache{}, Dims: map[string]map[int]int64{}}
	c := g.context()
	var nodes []*onnx.Node
	var constants []*onnx.Tensor
	for _, n := range g.Nodes {
		a := adapterOf(table, n)
		if a == nil {
			nodes = append(nodes, n)
			continue
		}
		e, err := by(a)(n, c)
		if err == nil && ir.Function(g.Model, n) {
			err = fmt.Errorf("the model defines %s itself", n.OpType)
		}
		if err != nil {
			v.Unread[n] = err
			nodes = append(nodes, n)
			continue
		}
		v.Counted[n] = e.Cache
		for value, dims := range e.Dims {
			v.Dims[value] = dims
		}
		for _, p := range e.Nodes {
			v.Written[p] = n
			for _, o := range p.Outputs {
				v.Internal[o] = !slices.Contains(n.Outputs, o)
			}
		}
		for _, t := range e.Constants {
			v.Internal[t.Name] = true
		}
		nodes, constants = append(nodes, e.Nodes...), append(constants, e.Constants...)
	}
	return buildGraph(g.Model, nodes, constants, v)
}

// context answers an adapter's questions.
func (g *Graph) context() fused.Context {
	k := newShapeHints(g)
	return fused.Context{
		Opset:    g.Model.Opset(""),
		Rank:     k.rank,
		Type:     k.element,
		Constant: func(value string) *onnx.Tensor { return g.Constants[value] },
		Width:    k.width,
	}
}

// AsWritten returns the model's node that n is, or is a part of.
func (g *Graph) AsWritten(n *onnx.Node) *onnx.Node {
	if o := g.Written[n]; o != nil {
		return o
	}
	return n
}

// Outward follows a value inside an expansion forward to the value of the model
// that it becomes; "" when it becomes none or several.
func (g *Graph) Outward(value string) string {
	for g.Internal[value] {
		readers := g.Consumers[value]
		if len(readers) != 1 || len(readers[0].Outputs) != 1 {
			return ""
		}
		value = readers[0].Outputs[0]
	}
	return value
}
