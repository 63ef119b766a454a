package eval

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// SizeInputs returns the values computed from sizes that the nodes between boundaries
// and output read: factors, which change the numbers that are computed, and arguments
// (shapes, ends of slices), which change where these are. What depends on a boundary counts as a
// state, positions among them too.
func SizeInputs(g *graph.Graph, output string, boundaries []string) (factors, arguments []string) {
	states := g.Behind(slices.DeleteFunc(slices.Clone(boundaries), g.IsData))
	g.Upstream([]string{output}, func(v string, n *onnx.Node) (next []string) {
		if slices.Contains(boundaries, v) || !g.IsData(v) && !states[v] || n == nil {
			return nil
		}
		places := ir.Standard(n, "Reshape", "Expand", "Slice", "Tile", "Unsqueeze", "Squeeze", "Pad", "Split", "Gather", "GatherND")
		for _, in := range n.Inputs {
			made := g.Producer[in]
			switch {
			case slices.Contains(boundaries, in): // one number for each token
			case g.Classes[in] != graph.ShapeClass || states[in]:
				next = append(next, in)
			case ir.Standard(made, "Shape", "Size"): // the shape table has it
			case ir.Scatters(n) && in == n.Inputs[1]: // see PlacedAlike
			case g.Uniform(in) != "": // equal numbers: only their shape matters
				arguments = append(arguments, g.Uniform(in))
			case places:
				arguments = append(arguments, in)
			default:
				factors = append(factors, in)
			}
		}
		return next
	})
	return ir.Unique(factors), ir.Unique(arguments)
}
