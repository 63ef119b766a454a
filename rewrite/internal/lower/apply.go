package lower

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Change replaces one site by nodes.
type Change struct {
	Scope     *site.Scope
	Site      *site.Sized
	Mask      *onnx.ValueInfo // the graph's own padding mask, nil without one
	Reads     rope.Mask       // what the nodes compute of it
	Edited    bool            // the nodes mean something else than what they replace
	Nodes     []*onnx.Node
	Constants []*onnx.Tensor
}

// Apply puts the new nodes into the model and takes out what nothing reads any
// more because of them. What was unused before stays.
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
	m.RequireOpset(graph.OpsDomain, 1)
	// What a graph inside a node reads no more may stand in those around it, which
	// come first among the scopes and so are swept last.
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
	made := map[string]bool{}               // sites may share nodes and constants
	before := map[*onnx.Node][]*onnx.Node{} // new nodes in front of an old one
	for _, c := range changes {
		if c.Scope != s {
			continue
		}
		for _, n := range c.Nodes {
			if !made[n.Outputs[0]] {
				before[c.Site.Replaced[0]] = append(before[c.Site.Replaced[0]], n)
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
		nodes = append(append(nodes, before[n]...), n)
	}
	g.Nodes = nodes
	free := ir.Sweep(g, removed, nil)
	for _, outer := range s.Outer {
		free = ir.Sweep(outer, map[*onnx.Node]bool{}, free)
	}
	return ir.Order(g)
}
