package graph

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// ChosenConstants returns the two constants between which an If chooses for its output
// value: that of then_branch and that of else_branch. It is nil for other nodes, and
// where a branch computes something. Some exporters keep LongRoPE's two sets of
// frequencies so: the number of tokens chooses between two tables of cosines, and
// between two of sines.
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
