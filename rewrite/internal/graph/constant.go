package graph

import (
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Integers returns the elements of a constant list, nil where a value is none.
func (g *Graph) Integers(value string) []int64 {
	t := g.Constants[value]
	if t == nil {
		return nil
	}
	list, err := t.Int64s()
	if err != nil {
		return nil // what cannot be read tells nothing
	}
	return list
}

// Axes returns those of a node that has them as an attribute or as a constant.
func (g *Graph) Axes(n *onnx.Node) []int64 {
	if len(n.Inputs) > 1 {
		return g.Integers(n.Inputs[1])
	}
	return n.Ints("axes")
}

// OverLast reports whether a reduction takes the last of so many dimensions alone,
// and leaves 1 in its place.
func (g *Graph) OverLast(n *onnx.Node, rank int) bool {
	axes := g.Axes(n)
	return n.Int("keepdims", 1) == 1 && len(axes) == 1 && ir.LastAxis(axes[0], rank)
}
