package site

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
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

// Holder returns the first graph for which the condition holds: the scope's own, then
// those around it, the nearest first. It returns nil where there is none.
func (s *Scope) Holder(is func(*onnx.Graph) bool) *onnx.Graph {
	for _, g := range append([]*onnx.Graph{s.Graph}, s.Outer...) {
		if is(g) {
			return g
		}
	}
	return nil
}

// Scope is a graph that is searched for attention layers: the model's own, or one inside a
// node (If, Loop), which can read the values of the graphs around it.
type Scope struct {
	Where string // for texts, as "then_branch of If …"; "" is the model's own graph
	Graph *onnx.Graph
	Outer []*onnx.Graph       // the graphs around it, the nearest first
	loop  *onnx.Node          // the node that runs the graph several times, nil where none does
	Last  bool                // no node of the graphs around it reads its outputs
	View  *graph.Graph        // the graph with what it reads of those around it
	nodes map[*onnx.Node]bool // the graph's own, as they were when the scope was made
	Found []Candidate         // the candidates among these nodes
}

// Scopes returns the model's own graph and, after it, the graphs inside nodes that have
// a Softmax, a fused attention or an op of an earlier rewrite, each with its candidates.
func Scopes(m *onnx.Model) ([]*Scope, error) {
	view, err := graph.New(m)
	if err != nil {
		return nil, err
	}
	list := []*Scope{(&Scope{Graph: m.Graph, Last: true, View: view}).search()}
	return list, appendInner(m, list[0], &list)
}

// appendInner appends the scopes inside the nodes of s to list.
func appendInner(m *onnx.Model, s *Scope, list *[]*Scope) error {
	read := map[string]bool{}
	for _, n := range s.Graph.Nodes {
		for v := range ir.Uses(n) {
			read[v] = true
		}
	}
	for _, n := range s.Graph.Nodes {
		for sub := range n.Subgraphs() {
			in := &Scope{Where: branchName(n, sub) + " of " + ir.FullLabel(n), Graph: sub, Outer: append([]*onnx.Graph{s.Graph}, s.Outer...), loop: s.loop}
			if s.Where != "" {
				in.Where += " in " + s.Where
			}
			in.Last = s.Last && !slices.ContainsFunc(n.Outputs, func(v string) bool { return read[v] })
			if !ir.Standard(n, "If") {
				in.loop = n
			}
			if slices.ContainsFunc(sub.Nodes, func(n *onnx.Node) bool { return ir.Standard(n, "Softmax") || fusedAttention(n) || IsOp(n) }) {
				var err error
				if in.View, err = in.read(m); err != nil {
					return fmt.Errorf("%s: %w", short.Name(in.Where), err)
				}
				*list = append(*list, in.search())
			}
			if err := appendInner(m, in, list); err != nil {
				return err
			}
		}
	}
	return nil
}

// branchName returns the name of the attribute that holds a sub-graph.
func branchName(n *onnx.Node, sub *onnx.Graph) string {
	for _, a := range n.Attributes {
		if a.Graph == sub {
			return a.Name
		}
	}
	return "a graph"
}

// read returns a view of a graph inside a node as if it were a model of its own: with
// the nodes of the graphs around it that it depends on and the values that it reads.
// A name that a graph around it has too means the inner value there; a view in which
// it would have to mean both is refused.
func (s *Scope) read(m *onnx.Model) (*graph.Graph, error) {
	levels := append([]*onnx.Graph{s.Graph}, s.Outer...)
	needed, level, err := reachable(levels)
	if err != nil {
		return nil, err
	}
	flat := *m
	flat.Graph = &onnx.Graph{Name: s.Graph.Name, Outputs: s.Graph.Outputs}
	g := flat.Graph
	for i, each := range slices.Backward(levels) {
		read := func(name string) bool { at, is := level[name]; return is && at == i }
		g.Nodes = append(g.Nodes, keep(each.Nodes, func(n *onnx.Node) bool { return needed[n] })...)
		g.Inputs = append(g.Inputs, keep(each.Inputs, func(v *onnx.ValueInfo) bool { return read(v.Name) })...)
		g.Initializers = append(g.Initializers, keep(each.Initializers, func(t *onnx.Tensor) bool { return read(t.Name) })...)
		g.SparseInitializers = append(g.SparseInitializers, keep(each.SparseInitializers, func(t *onnx.SparseTensor) bool { return read(t.Name()) })...)
		g.ValueInfo = append(g.ValueInfo, keep(each.ValueInfo, func(v *onnx.ValueInfo) bool { return read(v.Name) })...)
	}
	return graph.New(&flat)
}

// keep returns what of a list is wanted.
func keep[T any](list []T, want func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return !want(x) })
}

// holds reports whether a graph is directly inside a node.
func holds(n *onnx.Node, g *onnx.Graph) bool {
	for sub := range n.Subgraphs() {
		if sub == g {
			return true
		}
	}
	return false
}

// reachable returns the nodes and values that the outputs of the first graph depend on. Of each
// value it says which graph has it: those behind the first are around it, the nearest first.
func reachable(levels []*onnx.Graph) (nodes map[*onnx.Node]bool, level map[string]int, err error) {
	makers := make([]map[string]*onnx.Node, len(levels)) // of the values of each graph; nil where no node makes it
	for i, g := range levels {
		makers[i] = map[string]*onnx.Node{}
		for _, v := range g.Inputs {
			makers[i][v.Name] = nil
		}
		for name := range g.InitializerNames() {
			makers[i][name] = nil
		}
		for _, n := range g.Nodes {
			if slices.ContainsFunc(levels, func(inner *onnx.Graph) bool { return holds(n, inner) }) {
				continue
			}
			for _, o := range n.Outputs {
				makers[i][o] = n
			}
		}
	}
	type use struct {
		value string
		by    int // the graph that reads it
	}
	var stack []use
	for _, o := range levels[0].Outputs {
		stack = append(stack, use{o.Name, 0})
	}
	nodes, level = map[*onnx.Node]bool{}, map[string]int{}
	for len(stack) > 0 {
		u := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		at := u.by + slices.IndexFunc(makers[u.by:], func(own map[string]*onnx.Node) bool { _, is := own[u.value]; return is })
		if at < u.by {
			continue // nothing makes it, or the node that holds the first graph
		}
		if was, seen := level[u.value]; seen {
			if was != at {
				return nil, nil, fmt.Errorf("two values that it depends on have the name %q, in a graph and in one around it; rename one of them", short.Name(u.value))
			}
			continue
		}
		level[u.value] = at
		if n := makers[at][u.value]; n != nil && !nodes[n] {
			nodes[n] = true
			for v := range ir.Uses(n) {
				stack = append(stack, use{v, at})
			}
		}
	}
	return nodes, level, nil
}

// Delimit returns the site of a candidate, or why there is none. All nodes that the op
// replaces must be in the scope's own graph, and no Loop may run it.
func (s *Scope) Delimit(c Candidate) (*Site, *graph.Refusal) {
	refusal := c.Refusal
	var delimited *Site
	if refusal == nil {
		delimited, refusal = Delimit(s.View, *c.Core)
		if refusal == nil {
			refusal = s.replaceable(delimited)
		}
		if refusal != nil {
			refusal = &graph.Refusal{Node: refusal.Node, Op: c.Node.OpType, Reason: refusal.Reason}
		}
	}
	if refusal != nil {
		return nil, refusal
	}
	return delimited, nil
}

// replaceable refuses a site whose nodes cannot be replaced in the scope's own graph.
func (s *Scope) replaceable(site *Site) *graph.Refusal {
	for _, n := range site.Replaced {
		if !s.nodes[n] {
			return graph.Refuse(n, "%s is outside %s, which contains the rest of this attention layer", ir.Label(n), short.Name(s.Where))
		}
	}
	if s.loop != nil {
		return graph.Refuse(site.Softmax, "this attention layer is in %s, and the iterations of a %s are not evaluated", short.Name(s.Where), s.loop.OpType)
	}
	return nil
}

// search completes a new scope: its own nodes, and the candidates among them.
func (s *Scope) search() *Scope {
	s.nodes = make(map[*onnx.Node]bool, len(s.Graph.Nodes))
	for _, n := range s.Graph.Nodes {
		s.nodes[n] = true
	}
	s.Found = Find(s.View)
	if s.Where != "" {
		s.Found = slices.DeleteFunc(s.Found, func(c Candidate) bool { return !s.nodes[c.Node] })
	}
	return s
}
