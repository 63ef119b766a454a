package ir

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Sweep removes the given nodes and, from them and from values that are free
// backwards, every node and initializer that only they read. It returns the
// values that they read of the graphs around it.
func Sweep(g *onnx.Graph, removed map[*onnx.Node]bool, free map[string]bool) map[string]bool {
	readers := map[string]int{}
	producer := map[string]*onnx.Node{}
	for _, o := range g.Outputs {
		readers[o.Name]++
	}
	for _, n := range g.Nodes {
		if removed[n] {
			continue // its outputs are now made by a new node
		}
		for v := range Uses(n) {
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
		for v := range Uses(n) {
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
		for v := range Uses(n) {
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

// Order restores topological order where a new node stands behind a reader of
// its outputs. A list in order stays as it is.
func Order(g *onnx.Graph) error {
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
			return fmt.Errorf("node %s would depend on its own output", Label(g.Nodes[i]))
		}
		state[i] = open
		for v := range Uses(g.Nodes[i]) {
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
