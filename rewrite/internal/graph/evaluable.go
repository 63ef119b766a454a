package graph

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Multiplies returns a node on the way from in to out that multiplies hidden
// states by what is no constant.
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

// Evaluable refuses nodes that must not be run while probing, fused ops that
// their adapter does not read among them: nobody has looked at their attributes.
func (g *Graph) Evaluable(n *onnx.Node) error {
	if err := g.Unread[n]; err != nil {
		return fmt.Errorf("the %s at %s cannot be read: %w", n.OpType, ir.Label(n), err)
	}
	if err := evaluable(n); err != nil && ir.Function(g.Model, n) {
		return fmt.Errorf("node %s calls %s, a function of the model itself, which is not looked into; %s", ir.Label(n), n.OpType, InlineThem)
	} else if err != nil {
		return err
	}
	return nil
}

// InlineThem says what to do about functions.
const InlineThem = "inline them first, for example by onnx.inliner.inline_local_functions in Python"

// evaluable refuses nodes that must not be run while probing: ops of other
// libraries, and loops, whose time nobody can bound.
func evaluable(n *onnx.Node) error {
	if n.Domain != "" && n.Domain != "ai.onnx" && n.Domain != "com.microsoft" {
		return fmt.Errorf("node %s is of the domain %q, which is not evaluated", ir.Label(n), n.Domain)
	}
	if ir.Standard(n, "Loop", "Scan") {
		return fmt.Errorf("node %s is a %s, which is not evaluated", ir.Label(n), n.OpType)
	}
	for sub := range n.Subgraphs() {
		for inner := range sub.AllNodes() {
			if err := evaluable(inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// Uniform returns the size of a value that is one number everywhere, "" where it
// is not known to be that.
func (g *Graph) Uniform(value string) string {
	n := g.Producer[value]
	for ir.Standard(n, "Transpose", "Identity", "Unsqueeze", "Cast") {
		n = g.Producer[n.Inputs[0]]
	}
	if ir.Standard(n, "ConstantOfShape") {
		return n.Inputs[0]
	}
	return ""
}
