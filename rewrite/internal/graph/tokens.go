package graph

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// How many tokens a graph is for, or is told of.

// PerToken reports whether a constant may hold one row for each token of a model with a
// static length, such as cosines and sines that a simplifier has computed.
func (g *Graph) PerToken(value string) bool {
	if value == "" || g.Classes[value] != ConstantClass {
		return false
	}
	length := g.StaticLength()
	if length == 0 {
		return false
	}
	for ir.Standard(g.Producer[value], "Cast", "Identity", "Unsqueeze", "Squeeze") && g.Constants[value] == nil {
		value = g.Producer[value].Inputs[0]
	}
	dims, known := g.constantDims[value]
	return !known || slices.Contains(dims, length) && g.Weight(value)
}

// PicksRows reports whether what an integer input holds picks rows of a constant with more than two, as token ids do:
// it is then more than 0 and 1.
func (g *Graph) PicksRows(input string) bool {
	seen := map[string]bool{}
	stack := []string{input}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[v] || g.Element(v) == onnx.Bool {
			continue
		}
		seen[v] = true
		for _, n := range g.Consumers[v] {
			if g.picks(n, v) {
				return true
			}
			if keepsNumbers(n, v) {
				stack = append(stack, n.Outputs[0])
			}
		}
	}
	return false
}

// picks reports whether a node, or one inside its graphs, takes rows of a constant with more than two by the numbers
// of a value. What a table inside is made of is not known.
func (g *Graph) picks(n *onnx.Node, value string) bool {
	for each := range (&onnx.Graph{Nodes: []*onnx.Node{n}}).AllNodes() {
		if table := tableOf(each, value); table != "" && (g.Classes[table] == ConstantClass || !g.has(table)) && g.manyRows(each, table) {
			return true
		}
	}
	return false
}

// tableOf is what a node takes rows of by the numbers of a value; "" where it takes none.
func tableOf(n *onnx.Node, value string) string {
	switch inputs := n.Inputs; {
	case n.OpType == "Gather" || n.OpType == "GatherBlockQuantized":
		if len(inputs) > 1 && inputs[1] == value {
			return inputs[0]
		}
	case n.OpType == "EmbedLayerNormalization":
		if len(inputs) > 2 && inputs[0] == value {
			return inputs[2]
		}
	}
	return ""
}

// has reports whether a value is of this graph, and not of one inside a node.
func (g *Graph) has(value string) bool {
	return g.Producer[value] != nil || g.Inputs[value] != nil || g.Constants[value] != nil
}

// manyRows reports whether a table of which a node takes rows may have more than two.
func (g *Graph) manyRows(n *onnx.Node, table string) bool {
	dims, known := g.constantDims[table]
	axis := n.Int("axis", 0)
	if axis < 0 {
		axis += int64(len(dims))
	}
	return !known || axis < 0 || axis >= int64(len(dims)) || dims[axis] > 2
}

// keepsNumbers reports whether a node moves what a value holds, or replaces some of it.
func keepsNumbers(n *onnx.Node, value string) bool {
	if ir.Standard(n, "Where") {
		return value != n.Inputs[0]
	}
	return ir.Standard(n, "Max", "Min") ||
		value == n.Inputs[0] && ir.Standard(n, "Cast", "Identity", "Reshape", "Flatten", "Unsqueeze", "Squeeze", "Expand", "Transpose", "Slice", "Clip")
}

// StaticLength returns the number of tokens that the declared shapes of the integer
// inputs ask for, 0 where the length is open. An input that no node reads asks for nothing.
func (g *Graph) StaticLength() (length int64) {
	for _, v := range g.Model.Graph.Inputs {
		if g.Inputs[v.Name] == nil || ir.IsFloat(v.Type) || len(v.Shape) == 0 || len(v.Shape) > 2 || len(g.Consumers[v.Name]) == 0 {
			continue
		}
		if last := v.Shape[len(v.Shape)-1]; last.Known() && (length == 0 || last.Value < length) {
			length = last.Value
		}
	}
	return length
}

// Total returns the value behind the total length of a length-tracked cache, without
// casts and reshapes on the way. Other nodes that depend on the number of tokens read
// that value too.
func (g *Graph) Total(c *fused.LengthTrackedCache) string {
	v := c.Total
	for n := g.Producer[v]; ir.Standard(n, "Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"); n = g.Producer[v] {
		v = n.Inputs[0]
	}
	return v
}
