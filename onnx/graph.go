package onnx

import (
	"fmt"
	"iter"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// Graph is a graph of nodes: the model's own or one inside a node's attribute.
//
// Its lists may be read and changed freely, directly or by the methods below:
// on saving, what differs from the file that the graph came from is written
// anew and everything else, unknown fields included, is copied from there.
type Graph struct {
	Name    string
	Nodes   []*Node // in topological order, as ONNX demands
	Inputs  []*ValueInfo
	Outputs []*ValueInfo

	// ValueInfo tells types of values inside the graph; it may be incomplete.
	ValueInfo          []*ValueInfo
	Initializers       []*Tensor
	SparseInitializers []*SparseTensor

	src source
}

// AllNodes yields the graph's nodes and, after each node, the nodes of its
// sub-graphs at any depth.
func (g *Graph) AllNodes() iter.Seq[*Node] {
	return func(yield func(*Node) bool) { walkNodes(g.Nodes, yield) }
}

// AllGraphs yields the graph and the sub-graphs of its nodes at any depth.
func (g *Graph) AllGraphs() iter.Seq[*Graph] {
	return func(yield func(*Graph) bool) {
		if !yield(g) {
			return
		}
		for n := range g.AllNodes() {
			for sub := range n.Subgraphs() {
				if !yield(sub) {
					return
				}
			}
		}
	}
}

func walkNodes(nodes []*Node, yield func(*Node) bool) bool {
	for _, n := range nodes {
		if !yield(n) {
			return false
		}
		for sub := range n.Subgraphs() {
			if !walkNodes(sub.Nodes, yield) {
				return false
			}
		}
	}
	return true
}

// Initializer returns the initializer of that name, or nil. It searches the
// list: build a map to look up many.
func (g *Graph) Initializer(name string) *Tensor {
	for _, t := range g.Initializers {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// InitializerNames yields the names of the initializers, dense and sparse.
func (g *Graph) InitializerNames() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, t := range g.Initializers {
			if !yield(t.Name) {
				return
			}
		}
		for _, t := range g.SparseInitializers {
			if !yield(t.Name()) {
				return
			}
		}
	}
}

// RemoveNodes removes the nodes for which drop is true.
func (g *Graph) RemoveNodes(drop func(*Node) bool) {
	g.Nodes = slices.DeleteFunc(slices.Clone(g.Nodes), drop)
}

// InsertNode inserts n in front of the node before, or at the end if before is
// nil or no node of the graph.
func (g *Graph) InsertNode(before, n *Node) {
	i := slices.Index(g.Nodes, before)
	if i < 0 {
		i = len(g.Nodes)
	}
	g.Nodes = slices.Insert(g.Nodes, i, n)
}

// AddInitializer adds a constant to the graph.
func (g *Graph) AddInitializer(t *Tensor) { g.Initializers = append(g.Initializers, t) }

// RemoveInitializers removes the initializers for which drop is true.
func (g *Graph) RemoveInitializers(drop func(*Tensor) bool) {
	g.Initializers = slices.DeleteFunc(slices.Clone(g.Initializers), drop)
}

// AddInput adds an input after the others.
func (g *Graph) AddInput(v *ValueInfo) { g.Inputs = append(g.Inputs, v) }

// RemoveInput removes the inputs of that name.
func (g *Graph) RemoveInput(name string) { g.Inputs = removeNamed(g.Inputs, name) }

// AddOutput adds an output after the others.
func (g *Graph) AddOutput(v *ValueInfo) { g.Outputs = append(g.Outputs, v) }

// RemoveOutput removes the outputs of that name.
func (g *Graph) RemoveOutput(name string) { g.Outputs = removeNamed(g.Outputs, name) }

func removeNamed(list []*ValueInfo, name string) []*ValueInfo {
	return slices.DeleteFunc(slices.Clone(list), func(v *ValueInfo) bool { return v.Name == name })
}

// Clone returns a copy that can be changed without changing g; nil for nil.
// Tensor contents are shared, not copied.
func (g *Graph) Clone() *Graph {
	if g == nil {
		return nil
	}
	c := *g
	c.Nodes = cloneAll(g.Nodes)
	c.Inputs, c.Outputs, c.ValueInfo = cloneAll(g.Inputs), cloneAll(g.Outputs), cloneAll(g.ValueInfo)
	c.Initializers, c.SparseInitializers = cloneAll(g.Initializers), cloneAll(g.SparseInitializers)
	return &c
}

func (g *Graph) origin() source { return g.src }

func (g *Graph) original() view {
	o := &Graph{src: g.src}
	_ = o.read(&reader{shallow: true}) // read before, so it cannot fail
	return o
}

func (g *Graph) read(r *reader) error {
	if r.nesting >= maxNesting {
		return fmt.Errorf("graphs are nested more than %d deep", maxNesting)
	}
	r.nesting++
	defer func() { r.nesting-- }()
	var p onnxpb.GraphProto
	err := g.src.decode(&p, graphSmall, func(rec record) error {
		switch rec.num {
		case graphNode:
			return openNode(r, &g.Nodes, rec)
		case graphInitializer:
			t := &Tensor{src: source{rec.body}}
			g.Initializers = append(g.Initializers, t)
			return r.openAt(t, func() string { return fmt.Sprintf("initializer %q", short.Name(t.Name)) })
		case graphSparse:
			t := &SparseTensor{src: source{rec.body}}
			g.SparseInitializers = append(g.SparseInitializers, t)
			return r.openAt(t, func() string { return fmt.Sprintf("sparse initializer %d", len(g.SparseInitializers)-1) })
		case graphInput:
			return openValue(r, &g.Inputs, rec)
		case graphOutput:
			return openValue(r, &g.Outputs, rec)
		case graphValueInfo:
			return openValue(r, &g.ValueInfo, rec)
		}
		return nil
	})
	g.Name = p.GetName()
	return err
}

func openNode(r *reader, list *[]*Node, rec record) error {
	n := &Node{src: source{rec.body}}
	*list = append(*list, n)
	return r.openAt(n, func() string { return n.place(len(*list) - 1) })
}

func openValue(r *reader, list *[]*ValueInfo, rec record) error {
	v := &ValueInfo{src: source{rec.body}}
	*list = append(*list, v)
	return r.openAt(v, func() string { return fmt.Sprintf("value %q", short.Name(v.Name)) })
}

func (g *Graph) fields() []field {
	out := childFields(graphNode, g.Nodes...)
	out = append(out, smallFields(&onnxpb.GraphProto{Name: text(g.Name)})...)
	out = append(out, childFields(graphInitializer, g.Initializers...)...)
	out = append(out, childFields(graphSparse, g.SparseInitializers...)...)
	out = append(out, childFields(graphInput, g.Inputs...)...)
	out = append(out, childFields(graphOutput, g.Outputs...)...)
	return append(out, childFields(graphValueInfo, g.ValueInfo...)...)
}
