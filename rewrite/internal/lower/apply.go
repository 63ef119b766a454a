package lower

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Change is what replaces one site in the model's graph.
type Change struct {
	Scope     *site.Scope
	Site      *site.Sized
	Mask      *onnx.ValueInfo // the graph input with the padding mask, nil without one
	Reads     rope.Mask       // the mask that the nodes compute
	Nodes     []*onnx.Node
	Constants []*onnx.Tensor
	Positions string // the value that the op reads as positions where no method gives it others: it stays in the model; "" for none
}

// Apply puts the new nodes into the model, and removes the nodes and constants that
// nothing reads any more because of them. What was unused already stays.
func Apply(m *onnx.Model, changes []Change) error {
	if len(changes) == 0 {
		return nil
	}
	var graphs []*site.Scope
	for _, c := range changes {
		if !slices.Contains(graphs, c.Scope) {
			graphs = append(graphs, c.Scope)
		}
	}
	m.RequireOpset(customop.Domain, 1)
	// Graphs inside nodes come after those around them in the list, and are done first:
	// what they do not read any more may be unused in the graphs around them.
	for _, s := range slices.Backward(graphs) {
		if err := applyTo(s, changes); err != nil {
			return err
		}
	}
	return nil
}

// applyTo puts the changes of one scope into its graph.
func applyTo(s *site.Scope, changes []Change) error {
	g := s.Graph
	removed := map[*onnx.Node]bool{}
	made := map[string]bool{}                // by name: sites may share nodes and constants
	inFront := map[*onnx.Node][]*onnx.Node{} // node of the model → new nodes to put in front of it
	var kept []string
	makeRoom(s, changes)
	for _, c := range changes {
		if c.Scope != s {
			continue
		}
		kept = append(kept, c.Positions)
		for _, n := range c.Nodes {
			if !made[n.Outputs[0]] {
				inFront[c.Site.Replaced[0]] = append(inFront[c.Site.Replaced[0]], n)
			}
			made[n.Outputs[0]] = true
		}
		for _, t := range c.Constants {
			if !made[t.Name] {
				g.AddInitializer(t)
			}
			made[t.Name] = true
		}
		for _, n := range c.Site.Replaced {
			removed[n] = true
		}
	}
	var nodes []*onnx.Node
	for _, n := range g.Nodes {
		nodes = append(append(nodes, inFront[n]...), n)
	}
	g.Nodes = nodes
	free := ir.Sweep(g, removed, nil, kept...)
	for _, outer := range s.Outer {
		free = ir.Sweep(outer, map[*onnx.Node]bool{}, free, kept...)
	}
	return ir.Order(g)
}

// makeRoom takes out of a graph that was rewritten before what changes will write once more under
// the same name: what sites share is not among the nodes that a change replaces.
func makeRoom(s *site.Scope, changes []Change) {
	again := map[string]bool{}
	for _, c := range changes {
		if c.Scope != s {
			continue
		}
		for _, n := range c.Nodes {
			again[n.Outputs[0]] = true
		}
		for _, t := range c.Constants {
			again[t.Name] = true
		}
	}
	replaced := func(n *onnx.Node) bool {
		return slices.ContainsFunc(changes, func(c Change) bool { return slices.Contains(c.Site.Replaced, n) })
	}
	s.Graph.RemoveNodes(func(n *onnx.Node) bool { return len(n.Outputs) > 0 && again[n.Outputs[0]] && !replaced(n) })
	s.Graph.RemoveInitializers(func(t *onnx.Tensor) bool { return again[t.Name] })
}
