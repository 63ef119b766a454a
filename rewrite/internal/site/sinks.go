package site

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// A sink takes a share of each query's probabilities. Most exports have it as one more column of the scores. It may also be
// applied behind the softmax: of exp(sink) and the sum of the scores' exponentials, the latter has the share
// sigmoid(logsumexp(scores) − sink), and softmax([scores, sink])·[v, 0] is softmax(scores)·v times this share.

// sinkBehind moves the site's output behind the product with such a share, if there is one.
func (s *Site) sinkBehind() {
	g := s.Graph
	output := s.ValueMatMul.Outputs[0]
	readers := g.Consumers[output]
	for len(readers) == 1 && ir.Standard(readers[0], rearranging...) && readers[0].Inputs[0] == output {
		output = readers[0].Outputs[0]
		readers = g.Consumers[output]
	}
	if len(readers) != 1 || !ir.Standard(readers[0], "Mul") || g.Outputs[output] {
		return
	}
	product := readers[0]
	i := slices.Index(product.Inputs, output)
	sigmoid := g.Producer[asArranged(g, product.Inputs[1-i])]
	if !ir.Standard(sigmoid, "Sigmoid") {
		return
	}
	difference := g.Producer[asArranged(g, sigmoid.Inputs[0])]
	if !ir.Standard(difference, "Sub") {
		return
	}
	sum, sink := g.Producer[asArranged(g, difference.Inputs[0])], g.Constants[asArranged(g, difference.Inputs[1])]
	if sink == nil || !ir.Standard(sum, "ReduceLogSumExp") || asArranged(g, sum.Inputs[0]) != asArranged(g, s.SoftmaxInput()) {
		return
	}
	s.Sink, s.output, s.last = sink, g.Outward(product.Outputs[0]), product
}

var rearranging = []string{"Cast", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}

// asArranged follows a value back through nodes that only arrange its elements in another way.
func asArranged(g *graph.Graph, v string) string {
	for n := g.Producer[v]; ir.Standard(n, rearranging...); n = g.Producer[v] {
		v = n.Inputs[0]
	}
	return v
}

// ends returns the node that makes the site's output.
func (s *Site) ends() *onnx.Node {
	if s.last != nil {
		return s.last
	}
	return s.ValueMatMul
}
