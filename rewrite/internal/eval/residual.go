package eval

import (
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// residuals returns the sums x + f(x) of hidden states, with x of each: what a layer adds
// to its input has the input's shape. So the shapes of a model can be measured without
// its layers, where one of them does not run on the skeleton's zeros: TorchScript writes
// down how many experts the tokens of its example went to, and a layer of states that works in
// chunks the length that fills them. The first x are the embeddings.
//
// A sum that has another shape than x would be one that the model broadcasts. What is
// measured with a wrong shape is no danger: a site's own nodes are run at it, in the
// proof beside the op, and both refuse a value of another shape.
func residuals(g *graph.Graph) map[*onnx.Node]string {
	found := map[*onnx.Node]string{}
	for _, n := range g.Nodes {
		if !ir.Standard(n, "Add") {
			continue
		}
		for i, x := range n.Inputs {
			if y := n.Inputs[1-i]; g.Classes[x] >= graph.PositionClass && g.IsData(y) && computedFrom(g, y, x) {
				found[n] = x
				break
			}
		}
	}
	return found
}

// computedFrom reports whether y is computed from x through hidden states or, where x is embeddings,
// through what is computed from these. It looks at
// what stands behind x in the graph alone, so that all layers together take one pass.
func computedFrom(g *graph.Graph, y, x string) (found bool) {
	first, made := g.Order[g.Producer[x]]
	g.Upstream([]string{y}, func(v string, n *onnx.Node) []string {
		found = found || v == x
		if found || n == nil || g.Classes[v] < g.Classes[x] || made && g.Order[n] <= first {
			return nil
		}
		return n.Inputs
	})
	return found && y != x
}
