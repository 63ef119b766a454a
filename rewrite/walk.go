package rewrite

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// upstream walks from values back to what they are made of, each value once.
// visit is told a value and the node that makes it (nil for inputs and
// initializers) and returns the values to go on with.
func (g *graph) upstream(from []string, visit func(value string, made *onnx.Node) []string) {
	seen := map[string]bool{}
	stack := slices.Clone(from)
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if v != "" && !seen[v] {
			seen[v] = true
			stack = append(stack, visit(v, g.producer[v])...)
		}
	}
}

// reads returns the values that a node reads, as upstream's visitors want them.
func reads(n *onnx.Node) []string { return slices.Collect(uses(n)) }
