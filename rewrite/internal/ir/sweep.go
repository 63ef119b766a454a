package ir

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Sweep removes the nodes in removed, and then every node and initializer that is
// read by nothing else: it goes back from the inputs of removed nodes and from the
// values in free, which may have lost their readers. It adds the nodes that it
// removes to removed. It returns the values among these that the graph does not make
// itself: true for those of a graph around it. What is kept stays, whoever reads it.
func Sweep(g *onnx.Graph, removed map[*onnx.Node]bool, free map[string]bool, kept ...string) map[string]bool {
	readers := map[string]int{}
	producer := map[string]*onnx.Node{}
	for _, o := range g.Outputs {
		readers[o.Name]++
	}
	for _, v := range kept {
		readers[v]++
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
	for name := range g.InitializerNames() {
		initializers[name] = true
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
