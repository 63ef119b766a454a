package rewrite

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// change replaces one site by nodes.
type change struct {
	scope     *scope
	site      *sizedSite
	mask      *onnx.ValueInfo // the graph's own padding mask, nil without one
	reads     rope.Mask       // what the nodes compute of it
	edited    bool            // the nodes mean something else than what they replace
	nodes     []*onnx.Node
	constants []*onnx.Tensor
}

// apply puts the new nodes into the model and takes out what nothing reads any
// more because of them. What was unused before stays.
func apply(m *onnx.Model, changes []change) error {
	if len(changes) == 0 {
		return nil
	}
	var graphs []*scope
	for _, c := range changes {
		if !slices.Contains(graphs, c.scope) {
			graphs = append(graphs, c.scope)
		}
	}
	m.RequireOpset(opsDomain, 1)
	// What a graph inside a node reads no more may stand in those around it, which
	// come first among the scopes and so are swept last.
	for _, s := range slices.Backward(graphs) {
		if err := s.apply(changes); err != nil {
			return err
		}
	}
	return nil
}

// apply puts the changes of one scope into its graph.
func (s *scope) apply(changes []change) error {
	g := s.graph
	removed := map[*onnx.Node]bool{}
	made := map[string]bool{}               // sites may share nodes and constants
	before := map[*onnx.Node][]*onnx.Node{} // new nodes in front of an old one
	for _, c := range changes {
		if c.scope != s {
			continue
		}
		for _, n := range c.nodes {
			if !made[n.Outputs[0]] {
				before[c.site.replaced[0]] = append(before[c.site.replaced[0]], n)
			}
			made[n.Outputs[0]] = true
		}
		for _, t := range c.constants {
			if !made[t.Name] {
				g.AddInitializer(t)
			}
			made[t.Name] = true
		}
		for _, n := range c.site.replaced {
			removed[n] = true
		}
	}
	var nodes []*onnx.Node
	for _, n := range g.Nodes {
		nodes = append(append(nodes, before[n]...), n)
	}
	g.Nodes = nodes
	free := sweep(g, removed, nil)
	for _, outer := range s.outer {
		free = sweep(outer, map[*onnx.Node]bool{}, free)
	}
	return order(g)
}

// sweep removes the given nodes and, from them and from values that are free
// backwards, every node and initializer that only they read. It returns the
// values that they read of the graphs around it.
func sweep(g *onnx.Graph, removed map[*onnx.Node]bool, free map[string]bool) map[string]bool {
	readers := map[string]int{}
	producer := map[string]*onnx.Node{}
	for _, o := range g.Outputs {
		readers[o.Name]++
	}
	for _, n := range g.Nodes {
		if removed[n] {
			continue // its outputs are now made by a new node
		}
		for v := range uses(n) {
			readers[v]++
		}
		for _, o := range n.Outputs {
			producer[o] = n
		}
	}
	candidates := map[string]bool{}
	var next []string // candidates to look at, again when a reader has gone
	release := func(v string) {
		candidates[v] = true
		next = append(next, v)
	}
	for v, is := range free {
		if is {
			release(v)
		}
	}
	for n := range removed {
		for v := range uses(n) {
			release(v)
		}
	}
	for len(next) > 0 {
		n := producer[next[len(next)-1]]
		next = next[:len(next)-1]
		if n == nil || removed[n] || slices.ContainsFunc(n.Outputs, func(o string) bool { return readers[o] > 0 }) {
			continue
		}
		removed[n] = true
		for v := range uses(n) {
			readers[v]--
			release(v)
		}
	}
	initializers := map[string]bool{}
	for _, t := range g.Initializers {
		initializers[t.Name] = true
	}
	outside := map[string]bool{}
	for v := range candidates {
		outside[v] = producer[v] == nil && !initializers[v]
	}
	g.RemoveNodes(func(n *onnx.Node) bool { return removed[n] })
	g.RemoveInitializers(func(t *onnx.Tensor) bool { return candidates[t.Name] && readers[t.Name] <= 0 })
	gone := map[string]bool{}
	for n := range removed {
		for _, o := range n.Outputs {
			gone[o] = true
		}
	}
	for _, n := range g.Nodes {
		for _, o := range n.Outputs {
			delete(gone, o)
		}
	}
	g.ValueInfo = slices.DeleteFunc(slices.Clone(g.ValueInfo), func(v *onnx.ValueInfo) bool { return gone[v.Name] })
	return outside
}

// order restores topological order where a new node stands behind a reader of
// its outputs. A list in order stays as it is.
func order(g *onnx.Graph) error {
	producer := map[string]int{}
	for i, n := range g.Nodes {
		for _, o := range n.Outputs {
			if o != "" {
				producer[o] = i
			}
		}
	}
	const (
		unseen = iota
		open
		done
	)
	state := make([]uint8, len(g.Nodes))
	var sorted []*onnx.Node
	var visit func(i int) error
	visit = func(i int) error {
		switch state[i] {
		case done:
			return nil
		case open:
			return fmt.Errorf("node %s would depend on its own output", label(g.Nodes[i]))
		}
		state[i] = open
		for v := range uses(g.Nodes[i]) {
			if p, ok := producer[v]; ok {
				if err := visit(p); err != nil {
					return err
				}
			}
		}
		state[i] = done
		sorted = append(sorted, g.Nodes[i])
		return nil
	}
	for i := range g.Nodes {
		if err := visit(i); err != nil {
			return err
		}
	}
	if !slices.Equal(sorted, g.Nodes) {
		g.Nodes = sorted
	}
	return nil
}
