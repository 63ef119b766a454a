package graph

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Integers returns the elements of an integer constant, nil where a value is none.
func (g *Graph) Integers(value string) []int64 {
	t := g.Constants[value]
	if t == nil {
		return nil
	}
	list, err := t.Int64s()
	if err != nil {
		return nil // unreadable external data, or no integers
	}
	return list
}

// Axes returns the axes of a node, from its second input if that is constant, or from
// its attribute; nil where they are not known.
func (g *Graph) Axes(n *onnx.Node) []int64 {
	if len(n.Inputs) > 1 {
		return g.Integers(n.Inputs[1])
	}
	return n.Ints("axes")
}

// OverLast reports whether a reduction of a value with rank dimensions is over the
// last one alone, and keeps it as a dimension of size 1.
func (g *Graph) OverLast(n *onnx.Node, rank int) bool {
	axes := g.Axes(n)
	return n.Int("keepdims", 1) == 1 && len(axes) == 1 && ir.LastAxis(axes[0], rank)
}

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
