package site

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// fusedAttention reports whether n is a whole attention in one op.
func fusedAttention(n *onnx.Node) bool {
	if ir.Standard(n, "Attention") {
		return true
	}
	return n.Domain == "com.microsoft" && slices.Contains([]string{"Attention", "QAttention", "MultiHeadAttention", "GroupQueryAttention",
		"PackedAttention", "PackedMultiHeadAttention", "DecoderMaskedMultiHeadAttention", "DecoderMaskedSelfAttention",
		"SparseAttention", "PagedAttention", "LongformerAttention"}, n.OpType)
}

// Holder returns the scope's own graph, or the nearest around it, for which a
// condition holds, nil where it holds for none.
func (s *Scope) Holder(is func(*onnx.Graph) bool) *onnx.Graph {
	for _, g := range append([]*onnx.Graph{s.Graph}, s.Outer...) {
		if is(g) {
			return g
		}
	}
	return nil
}

// Scope is a graph in which attentions are looked for: the model's own, or one
// inside a node, which sees the values of the graphs around it.
type Scope struct {
	Where string // "" is the model's own graph
	Graph *onnx.Graph
	Outer []*onnx.Graph // the graphs around it, the nearest first
	loop  *onnx.Node    // a node that runs the graph any number of times, nil when none does
	Last  bool          // nothing in the graphs around it reads what it gives
	View  *graph.Graph
	nodes map[*onnx.Node]bool // the graph's own before it is changed
	Found []candidate         // that stand in it
}

// Scopes returns the model's graph and, after it, the graphs inside nodes that
// hold something like an attention.
func Scopes(m *onnx.Model) ([]*Scope, error) {
	view, err := graph.NewGraph(m)
	if err != nil {
		return nil, err
	}
	list := []*Scope{(&Scope{Graph: m.Graph, Last: true, View: view}).search()}
	return list, inner(m, list[0], &list)
}

// inner appends the scopes inside the nodes of one.
func inner(m *onnx.Model, s *Scope, list *[]*Scope) error {
	read := map[string]bool{}
	for _, n := range s.Graph.Nodes {
		for v := range ir.Uses(n) {
			read[v] = true
		}
	}
	for _, n := range s.Graph.Nodes {
		for sub := range n.Subgraphs() {
			in := &Scope{Where: branchName(n, sub) + " of " + ir.Label(n), Graph: sub, Outer: append([]*onnx.Graph{s.Graph}, s.Outer...), loop: s.loop}
			if s.Where != "" {
				in.Where += " in " + s.Where
			}
			in.Last = s.Last && !slices.ContainsFunc(n.Outputs, func(v string) bool { return read[v] })
			if !ir.Standard(n, "If") {
				in.loop = n
			}
			if slices.ContainsFunc(sub.Nodes, func(n *onnx.Node) bool { return ir.Standard(n, "Softmax") || fusedAttention(n) }) {
				var err error
				if in.View, err = in.read(m, n); err != nil {
					return fmt.Errorf("%s: %w", in.Where, err)
				}
				*list = append(*list, in.search())
			}
			if err := inner(m, in, list); err != nil {
				return err
			}
		}
	}
	return nil
}

// branchName is the attribute that a sub-graph is.
func branchName(n *onnx.Node, sub *onnx.Graph) string {
	for _, a := range n.Attributes {
		if a.Graph == sub {
			return a.Name
		}
	}
	return "a graph"
}

// read views a graph inside a node as if it were a model's own: with the nodes
// around it that it depends on and the inputs that it reads.
func (s *Scope) read(m *onnx.Model, holder *onnx.Node) (*graph.Graph, error) {
	flat := *m
	flat.Graph = &onnx.Graph{Name: s.Graph.Name, Outputs: s.Graph.Outputs}
	g := flat.Graph
	for _, each := range slices.Backward(append([]*onnx.Graph{s.Graph}, s.Outer...)) {
		for _, n := range each.Nodes {
			if n != holder && !slices.ContainsFunc(s.Outer, func(o *onnx.Graph) bool { return holds(n, o) }) {
				g.Nodes = append(g.Nodes, n)
			}
		}
		g.Inputs = append(g.Inputs, each.Inputs...)
		g.Initializers = append(g.Initializers, each.Initializers...)
		g.ValueInfo = append(g.ValueInfo, each.ValueInfo...)
	}
	needed, reached := reach(g)
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n *onnx.Node) bool { return !needed[n] })
	g.Inputs = slices.DeleteFunc(g.Inputs, func(v *onnx.ValueInfo) bool { return !reached[v.Name] })
	return graph.NewGraph(&flat)
}

// holds reports whether a graph is one of a node's own.
func holds(n *onnx.Node, g *onnx.Graph) bool {
	for sub := range n.Subgraphs() {
		if sub == g {
			return true
		}
	}
	return false
}

// reach returns the nodes and values that a graph's outputs depend on. Where two
// nodes make one name, the later one, which is further inside, is meant.
func reach(g *onnx.Graph) (nodes map[*onnx.Node]bool, values map[string]bool) {
	producer := map[string]*onnx.Node{}
	for _, n := range g.Nodes {
		for _, o := range n.Outputs {
			producer[o] = n
		}
	}
	nodes, values = map[*onnx.Node]bool{}, map[string]bool{}
	var stack []string
	for _, o := range g.Outputs {
		stack = append(stack, o.Name)
	}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if values[v] {
			continue
		}
		values[v] = true
		if n := producer[v]; n != nil && !nodes[n] {
			nodes[n] = true
			stack = append(stack, ir.Reads(n)...)
		}
	}
	return nodes, values
}

// Delimit delimits a candidate, all of which must stand in the scope's own graph.
func (s *Scope) Delimit(c candidate) (*Site, *graph.Refusal) {
	refusal := c.Refusal
	var delimited *Site
	if refusal == nil {
		delimited, refusal = Delimit(s.View, *c.Core)
		if refusal == nil {
			refusal = s.own(delimited)
		}
		if refusal != nil {
			refusal.Op = c.Node.OpType
		}
	}
	if refusal != nil {
		return nil, refusal
	}
	return delimited, nil
}

// own says whether a site's op can be put into the graph: all that it replaces
// stands there.
func (s *Scope) own(site *Site) *graph.Refusal {
	for _, n := range site.Replaced {
		if !s.nodes[n] {
			return graph.Refuse(n, "it stands outside %s, which holds the rest of this attention", s.Where)
		}
	}
	if s.loop != nil {
		return graph.Refuse(site.Softmax, "it stands in %s, and what a %s does from turn to turn is not evaluated", s.Where, s.loop.OpType)
	}
	return nil
}

// search notes the graph's own nodes and the candidates among them.
func (s *Scope) search() *Scope {
	s.nodes = make(map[*onnx.Node]bool, len(s.Graph.Nodes))
	for _, n := range s.Graph.Nodes {
		s.nodes[n] = true
	}
	s.Found = Find(s.View)
	if s.Where != "" {
		s.Found = slices.DeleteFunc(s.Found, func(c candidate) bool { return !s.nodes[c.Node] })
	}
	return s
}
