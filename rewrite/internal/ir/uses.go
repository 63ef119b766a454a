package ir

import (
	"iter"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Uses yields the values that a node reads, with those that its sub-graphs capture
// from the graph around them.
func Uses(n *onnx.Node) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, v := range n.Inputs {
			if v != "" && !yield(v) {
				return
			}
		}
		for sub := range n.Subgraphs() {
			for v := range captured(sub) {
				if !yield(v) {
					return
				}
			}
		}
	}
}

// Reads returns the values of Uses as a list.
func Reads(n *onnx.Node) []string { return slices.Collect(Uses(n)) }

// captured yields the values that a sub-graph reads and does not make itself.
func captured(g *onnx.Graph) iter.Seq[string] {
	return func(yield func(string) bool) {
		own := map[string]bool{}
		for _, v := range g.Inputs {
			own[v.Name] = true
		}
		for name := range g.InitializerNames() {
			own[name] = true
		}
		for _, n := range g.Nodes {
			for v := range Uses(n) {
				if !own[v] && !yield(v) {
					return
				}
			}
			for _, o := range n.Outputs {
				own[o] = true
			}
		}
		for _, o := range g.Outputs {
			if !own[o.Name] && !yield(o.Name) {
				return
			}
		}
	}
}
