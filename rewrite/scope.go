package rewrite

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// scope is a graph in which attentions are looked for: the model's own, or one
// inside a node, which sees the values of the graphs around it.
type scope struct {
	where string // "" is the model's own graph
	graph *onnx.Graph
	outer []*onnx.Graph // the graphs around it, the nearest first
	loop  *onnx.Node    // a node that runs the graph any number of times, nil when none does
	last  bool          // nothing in the graphs around it reads what it gives
	view  *graph
	nodes map[*onnx.Node]bool // the graph's own before it is changed
	found []candidate         // that stand in it
}

// scopes returns the model's graph and, after it, the graphs inside nodes that
// hold something like an attention.
func scopes(m *onnx.Model) ([]*scope, error) {
	view, err := newGraph(m)
	if err != nil {
		return nil, err
	}
	list := []*scope{(&scope{graph: m.Graph, last: true, view: view}).search()}
	return list, inner(m, list[0], &list)
}

// inner appends the scopes inside the nodes of one.
func inner(m *onnx.Model, s *scope, list *[]*scope) error {
	read := map[string]bool{}
	for _, n := range s.graph.Nodes {
		for v := range uses(n) {
			read[v] = true
		}
	}
	for _, n := range s.graph.Nodes {
		for sub := range n.Subgraphs() {
			in := &scope{where: branchName(n, sub) + " of " + label(n), graph: sub, outer: append([]*onnx.Graph{s.graph}, s.outer...), loop: s.loop}
			if s.where != "" {
				in.where += " in " + s.where
			}
			in.last = s.last && !slices.ContainsFunc(n.Outputs, func(v string) bool { return read[v] })
			if !standard(n, "If") {
				in.loop = n
			}
			if slices.ContainsFunc(sub.Nodes, func(n *onnx.Node) bool { return standard(n, "Softmax") || fusedAttention(n) }) {
				var err error
				if in.view, err = in.read(m, n); err != nil {
					return fmt.Errorf("%s: %w", in.where, err)
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
func (s *scope) read(m *onnx.Model, holder *onnx.Node) (*graph, error) {
	flat := *m
	flat.Graph = &onnx.Graph{Name: s.graph.Name, Outputs: s.graph.Outputs}
	g := flat.Graph
	for _, each := range slices.Backward(append([]*onnx.Graph{s.graph}, s.outer...)) {
		for _, n := range each.Nodes {
			if n != holder && !slices.ContainsFunc(s.outer, func(o *onnx.Graph) bool { return holds(n, o) }) {
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
	return newGraph(&flat)
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
			stack = append(stack, reads(n)...)
		}
	}
	return nodes, values
}

// delimit delimits a candidate, all of which must stand in the scope's own graph.
func (s *scope) delimit(c candidate) (*site, *Refusal) {
	refusal := c.refusal
	var delimited *site
	if refusal == nil {
		delimited, refusal = s.view.delimit(*c.core)
		if refusal == nil {
			refusal = s.own(delimited)
		}
		if refusal != nil {
			refusal.Op = c.node.OpType
		}
	}
	if refusal != nil {
		return nil, refusal
	}
	return delimited, nil
}

// own says whether a site's op can be put into the graph: all that it replaces
// stands there.
func (s *scope) own(site *site) *Refusal {
	for _, n := range site.replaced {
		if !s.nodes[n] {
			return refuse(n, "it stands outside %s, which holds the rest of this attention", s.where)
		}
	}
	if s.loop != nil {
		return refuse(site.softmax, "it stands in %s, and what a %s does from turn to turn is not evaluated", s.where, s.loop.OpType)
	}
	return nil
}

// search notes the graph's own nodes and the candidates among them.
func (s *scope) search() *scope {
	s.nodes = make(map[*onnx.Node]bool, len(s.graph.Nodes))
	for _, n := range s.graph.Nodes {
		s.nodes[n] = true
	}
	s.found = find(s.view)
	if s.where != "" {
		s.found = slices.DeleteFunc(s.found, func(c candidate) bool { return !s.nodes[c.node] })
	}
	return s
}
