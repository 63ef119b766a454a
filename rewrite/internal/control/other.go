package control

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// simple are the ops that compare, add, count and move integers and booleans.
var simple = []string{"Identity", "Cast", "CastLike", "Unsqueeze", "Squeeze", "Reshape", "Flatten", "Expand", "Concat", "Transpose", "Slice", "Split", "Tile",
	"Gather", "GatherND", "GatherElements", "ScatterND", "ScatterElements", "Shape", "Size", "ConstantOfShape", "Range", "Trilu",
	"And", "Or", "Not", "Xor", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Where", "Min", "Max", "Clip",
	"Add", "Sub", "Neg", "Abs", "CumSum", "ReduceMax", "ReduceMin", "ReduceSum"}

// other returns the first node that does more than these, if what it gives is compared with anything or is where
// something is cut. What is added to scores decides nothing, nor does an index: a sum of products of sizes
// that finds the right element in every small call finds it in each.
func (c *Part) other() *onnx.Node {
	readers := map[string][]*onnx.Node{}
	for _, n := range c.piece.Nodes {
		for v := range ir.Uses(n) {
			readers[v] = append(readers[v], n)
		}
	}
	c.findFew()
	g := c.piece.Graph
	for _, n := range c.piece.Nodes {
		switch data := slices.ContainsFunc(n.Inputs, g.IsData); {
		case data && (decides(n) || ir.Standard(n, "Where") && g.IsData(n.Inputs[0])):
			return n // by what scores are
		case !data && !c.constant(n) && c.looksUp(n):
			return n
		case data, c.constant(n), ir.Standard(n, simple...), c.turnsSign(n), c.few[n.Outputs[0]]:
		case c.decided(n, readers):
			return n
		}
	}
	return nil
}

// findFew finds the values that hold few numbers: truths as numbers, and what is made of these and constants.
func (c *Part) findFew() {
	g := c.piece.Graph
	for _, n := range c.piece.Nodes {
		few := !ir.Standard(n, "Range", "CumSum", "ReduceSum", "Shape", "Size")
		for i, v := range n.Inputs {
			switch {
			case v == "", c.few[v], g.Element(v) == onnx.Bool && !g.IsData(v):
			case g.Classes[v] == graph.ConstantClass && (g.Uniform(v) != "" || g.Constants[v] != nil && g.Constants[v].Len() == 1):
			case i > 0 && ir.Standard(n, "Gather", "GatherND", "GatherElements", "Reshape", "Expand", "Unsqueeze", "Squeeze", "Slice", "Tile", "Trilu", "CumSum", "Concat"),
				i == 0 && ir.Standard(n, "ConstantOfShape"), i == 1 && ir.Standard(n, "ScatterND", "ScatterElements"):
				few = few && !ir.Standard(n, "Concat")
			default:
				few = false
			}
		}
		for _, o := range n.Outputs {
			if few && g.Element(o) != onnx.Bool {
				c.few[o] = true
			}
		}
	}
}

// looksUp reports whether a node takes elements of a table, of which each may be anything.
func (c *Part) looksUp(n *onnx.Node) bool {
	t := c.piece.Graph.Constants[n.Inputs[0]]
	return t != nil && t.Len() > Small && ir.Standard(n, "Gather", "GatherND", "GatherElements", "Slice")
}

// decides reports whether a node gives truths or integers that depend on how large its inputs are.
func decides(n *onnx.Node) bool {
	return ir.Standard(n, "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Not", "And", "Or", "Xor", "IsNaN", "IsInf", "If", "Loop", "Scan")
}

// turnsSign reports whether a node multiplies by a number no larger than 1.
func (c *Part) turnsSign(n *onnx.Node) bool {
	return ir.Standard(n, "Mul") && slices.ContainsFunc(n.Inputs, func(v string) bool {
		list := c.piece.Graph.Integers(v)
		return list != nil && !slices.ContainsFunc(list, func(x int64) bool { return x < -1 || x > 1 })
	})
}

// decided reports whether anything is decided by what a node gives.
func (c *Part) decided(n *onnx.Node, readers map[string][]*onnx.Node) bool {
	g := c.piece.Graph
	seen, stack := map[string]bool{}, slices.Clone(n.Outputs)
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[v] {
			continue
		}
		seen[v] = true
		for _, r := range readers[v] {
			input := slices.Index(r.Inputs, v)
			switch {
			case decides(r), ir.Standard(r, "Where") && input == 0, ir.Standard(r, "Range", "Min", "Max", "Clip", "Trilu"):
				return true
			case ir.Standard(r, "Slice", "Split", "Pad", "Trilu") && input > 0:
				return true
			case input > 0 && ir.Standard(r, "Gather", "GatherND", "GatherElements", "ScatterND", "ScatterElements", "Reshape", "Expand", "Tile"),
				ir.Standard(r, "ConstantOfShape"), ir.Standard(r, "Shape", "Size"):
				continue // an index or a shape
			case ir.Standard(r, "Cast") && g.Element(r.Outputs[0]) == onnx.Bool && ir.IsFloat(g.Element(v)):
				return true
			}
			for _, o := range r.Outputs {
				if g.Classes[o] != graph.DataClass {
					stack = append(stack, o)
				}
			}
		}
	}
	return false
}
