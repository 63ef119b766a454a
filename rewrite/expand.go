package rewrite

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/fused"
)

// A graph with fused ops has three views. The source is the model as it stands:
// what a proof runs in float32. The graph that is analysed has every fused op
// that an adapter reads expanded into primitive nodes: sites are found,
// delimited and measured in it. The definition has them expanded to the ops'
// whole definitions: what a proof runs in float64. Values of the model have the
// same names in all three.

// view is what the expansion of fused ops adds to a graph.
type view struct {
	source     *graph                             // the graph as the model has it
	definition *graph                             // with the ops' whole definitions
	written    map[*onnx.Node]*onnx.Node          // primitive node → the model's node that it is a part of
	internal   map[string]bool                    // values that only an expansion has
	unread     map[*onnx.Node]error               // the model's nodes that their adapter does not read
	counted    map[*onnx.Node]*fused.CountedCache // the model's nodes that count their cache
	dims       map[string]map[int]int64           // dimensions that values must have for expanded nodes to run
	evaluated  bool                               // sizes inside expansions are evaluated, not measured and fed
}

// newGraph reads a model's main graph.
func newGraph(m *onnx.Model) (*graph, error) { return newGraphWith(m, adapters()) }

// newGraphWith reads it with the given adapters.
func newGraphWith(m *onnx.Model, table []fused.Adapter) (*graph, error) {
	source, err := buildGraph(m, m.Graph.Nodes, nil, view{})
	if err != nil {
		return nil, err
	}
	source.source, source.definition = source, source
	if !slices.ContainsFunc(source.nodes, func(n *onnx.Node) bool { return adapterOf(table, n) != nil }) {
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
	definition.evaluated = true
	g, err := source.expanded(table, func(a *fused.Adapter) expander { return a.Expand })
	if err != nil {
		return nil, err
	}
	g.source, g.definition = source, definition
	return g, nil
}

type expander = func(*onnx.Node, fused.Context) (*fused.Expansion, error)

// expanded returns the graph with every fused op replaced by its expansion.
func (g *graph) expanded(table []fused.Adapter, by func(*fused.Adapter) expander) (*graph, error) {
	v := view{written: map[*onnx.Node]*onnx.Node{}, internal: map[string]bool{}, unread: map[*onnx.Node]error{},
		counted: map[*onnx.Node]*fused.CountedCache{}, dims: map[string]map[int]int64{}}
	c := g.context()
	var nodes []*onnx.Node
	var constants []*onnx.Tensor
	for _, n := range g.nodes {
		a := adapterOf(table, n)
		if a == nil {
			nodes = append(nodes, n)
			continue
		}
		e, err := by(a)(n, c)
		if err == nil && function(g.model, n) {
			err = fmt.Errorf("the model defines %s itself", n.OpType)
		}
		if err != nil {
			v.unread[n] = err
			nodes = append(nodes, n)
			continue
		}
		v.counted[n] = e.Cache
		for value, dims := range e.Dims {
			v.dims[value] = dims
		}
		for _, p := range e.Nodes {
			v.written[p] = n
			for _, o := range p.Outputs {
				v.internal[o] = !slices.Contains(n.Outputs, o)
			}
		}
		for _, t := range e.Constants {
			v.internal[t.Name] = true
		}
		nodes, constants = append(nodes, e.Nodes...), append(constants, e.Constants...)
	}
	return buildGraph(g.model, nodes, constants, v)
}

// context answers an adapter's questions.
func (g *graph) context() fused.Context {
	k := newKinds(g)
	return fused.Context{
		Opset:    g.model.Opset(""),
		Rank:     k.rank,
		Type:     k.element,
		Constant: func(value string) *onnx.Tensor { return g.constants[value] },
		Width:    k.width,
	}
}

// asWritten returns the model's node that n is, or is a part of.
func (g *graph) asWritten(n *onnx.Node) *onnx.Node {
	if o := g.written[n]; o != nil {
		return o
	}
	return n
}

// outward follows a value inside an expansion forward to the value of the model
// that it becomes; "" when it becomes none or several.
func (g *graph) outward(value string) string {
	for g.internal[value] {
		readers := g.consumers[value]
		if len(readers) != 1 || len(readers[0].Outputs) != 1 {
			return ""
		}
		value = readers[0].Outputs[0]
	}
	return value
}
