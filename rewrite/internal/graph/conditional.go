package graph

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Some exporters keep LongRoPE's two sets of frequencies: an If on the number of
// tokens chooses between two tables of cosines and two of sines. Each side is
// measured by itself, and at which number of tokens the choice changes.

// ChosenConstants returns what an If gives for its output, the constants of its two
// branches; nil for other nodes, and where a branch computes something.
func ChosenConstants(n *onnx.Node, value string) []*onnx.Tensor {
	if !ir.Standard(n, "If") {
		return nil
	}
	var list []*onnx.Tensor
	for _, name := range []string{"then_branch", "else_branch"} {
		branch, k := n.Graph(name), slices.Index(n.Outputs, value)
		if branch == nil || k >= len(branch.Outputs) {
			return nil
		}
		t := branch.Initializer(branch.Outputs[k].Name)
		for _, made := range branch.Nodes {
			if slices.Contains(made.Outputs, branch.Outputs[k].Name) {
				t = ir.ConstantValue(made)
			}
		}
		if t == nil {
			return nil
		}
		list = append(list, t)
	}
	return list
}
