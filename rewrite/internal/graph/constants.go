package graph

import (
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
