package graph

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// A graph with fused ops has three views. Source is the model as it is: a proof
// runs it in float32. The graph itself, in which sites are found, delimited and
// measured, has every fused op that an adapter reads expanded into primitive nodes.
// Definition has them expanded by the ops' whole definitions: a proof runs it in
// float64. Values of the model have the same names in all three.

// View is what the expansion of fused ops adds to a graph. Its maps are nil in a graph
// without fused ops.
type View struct {
	Source        *Graph                                   // the graph with the nodes that the model has
	Definition    *Graph                                   // the graph with the ops' whole definitions
	Written       map[*onnx.Node]*onnx.Node                // expanded node → the model's node that it comes from
	Internal      map[string]bool                          // values that exist in an expansion only
	Unread        map[*onnx.Node]error                     // the model's fused nodes that their adapter refused, with the reason
	LengthTracked map[*onnx.Node]*fused.LengthTrackedCache // length-tracked caches, by the model's node that has them
	Dims          map[string]map[int]int64                 // value → dimension → the size that expanded nodes need
	Evaluated     bool                                     // sizes inside expansions are computed by their nodes, not fed
}

// New reads a model's main graph, with the adapters of this project.
func New(m *onnx.Model) (*Graph, error) { return NewWith(m, Adapters()) }

// NewWith reads a model's main graph with the given adapters.
func NewWith(m *onnx.Model, table []fused.Adapter) (*Graph, error) {
	source, err := buildGraph(m, m.Graph.Nodes, nil, View{})
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

// expander is how an adapter replaces one fused node.
type expander = func(*onnx.Node, fused.Context) (*fused.Expansion, error)

// expanded returns the graph with every fused op replaced by its expansion.
func (g *Graph) expanded(table []fused.Adapter, by func(*fused.Adapter) expander) (*Graph, error) {
	v := View{Written: map[*onnx.Node]*onnx.Node{}, Internal: map[string]bool{}, Unread: map[*onnx.Node]error{},
		LengthTracked: map[*onnx.Node]*fused.LengthTrackedCache{}, Dims: map[string]map[int]int64{}}
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
			err = fmt.Errorf("the model has its own function %s", short.Name(n.OpType))
		}
		if err != nil {
			v.Unread[n] = err
			nodes = append(nodes, n)
			continue
		}
		v.LengthTracked[n] = e.Cache
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
	h := newShapeHints(g)
	return fused.Context{
		Opset:    g.Model.Opset(""),
		Rank:     h.rank,
		Type:     h.element,
		Constant: func(value string) *onnx.Tensor { return g.Constants[value] },
		Width:    h.width,
	}
}

// AsWritten returns the model's node that an expanded node comes from; any other node
// is returned as it is.
func (g *Graph) AsWritten(n *onnx.Node) *onnx.Node {
	if o := g.Written[n]; o != nil {
		return o
	}
	return n
}

// Outward follows a value inside an expansion forward, through single readers, to the
// value of the model that it becomes; "" where it has several readers or none.
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
