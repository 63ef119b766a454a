package graph

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Upstream walks from values back to what they are computed from, each value once.
// visit takes a value and the node that makes it (nil for inputs and initializers), and
// returns the values to go on with.
func (g *Graph) Upstream(from []string, visit func(value string, made *onnx.Node) []string) {
	seen := map[string]bool{}
	stack := slices.Clone(from)
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if v != "" && !seen[v] {
			seen[v] = true
			stack = append(stack, visit(v, g.Producer[v])...)
		}
	}
}

// Multiplies returns a node between in and out that multiplies or divides hidden states
// by a value that is neither a constant nor a hidden state; nil where there is none.
func (g *Graph) Multiplies(out, in string) (found *onnx.Node) {
	g.Upstream([]string{out}, func(v string, n *onnx.Node) []string {
		if v == in || !g.IsData(v) || n == nil {
			return nil
		}
		if ir.Standard(n, "Mul", "Div", "Pow", "MatMul", "Mod") &&
			slices.ContainsFunc(n.Inputs, func(x string) bool { return !g.IsData(x) && g.Classes[x] != ConstantClass }) {
			found = n
		}
		return n.Inputs
	})
	return found
}

// Uniform returns the value that holds the shape of a tensor whose elements are all the
// same number, or of a constant that is repeated, "" where it is not known that they are.
func (g *Graph) Uniform(value string) string {
	n := g.Producer[value]
	for ir.Standard(n, "Transpose", "Identity", "Unsqueeze", "Cast") {
		n = g.Producer[n.Inputs[0]]
	}
	if ir.Standard(n, "ConstantOfShape") {
		return n.Inputs[0]
	}
	if ir.Standard(n, "Expand") && g.Classes[n.Inputs[0]] == ConstantClass {
		return n.Inputs[1]
	}
	return ""
}

// Behind returns the values that depend on one of some, through other nodes than those that give
// sizes.
func (g *Graph) Behind(values []string) map[string]bool {
	behind := map[string]bool{}
	stack := slices.Clone(values)
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, n := range g.Consumers[v] {
			if ir.Standard(n, "Shape", "Size") {
				continue
			}
			for _, o := range n.Outputs {
				if !behind[o] {
					behind[o] = true
					stack = append(stack, o)
				}
			}
		}
	}
	return behind
}

// Counted reports whether how many elements a value has depends on what integer inputs hold: it was
// picked out of another one by its numbers.
func (g *Graph) Counted(value string) (counted bool) {
	if g.Classes[value] != PositionClass {
		return false
	}
	g.Upstream([]string{value}, func(v string, n *onnx.Node) []string {
		if n == nil || counted || ir.Standard(n, "Shape", "Size") {
			return nil
		}
		counted = counted || ir.Standard(n, "NonZero", "Unique", "Compress")
		return ir.Reads(n)
	})
	return counted
}
