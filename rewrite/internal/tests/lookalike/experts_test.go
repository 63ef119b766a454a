package lookalike_test

import (
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// firstLarge returns a zero of the shape [1] that is computed from the first element of a
// hidden state that is above zero. It fails on hidden states of zeros, as the experts do
// that an exporter wrote down for the tokens of its example.
func (p *patient) firstLarge(hidden string) string {
	places := p.Op("NonZero", p.Op("Greater", hidden, p.Float(0)))
	first := p.Node("Gather", []string{places, p.Ints(0)}, onnx.IntAttr("axis", 1)) // [3, 1]
	row := p.Op("Slice", first, p.Ints(0), p.Ints(1), p.Ints(0))
	return p.Op("Mul", p.Cast(p.Op("Reshape", row, p.Ints(1)), onnx.Float), p.Float(0))
}

// layerSum returns the sum in front of layer 1: what layer 0 gets and what it adds.
func (p *patient) layerSum() *onnx.Node { return p.Up(p.Sites[1].Query.Boundary, "Add") }

// partsThatDoNotRun are models of which a part does not run on the zeros with which
// shapes are measured.
func partsThatDoNotRun() []lookalike {
	models := []string{"llama__ts17", "llama__dynamo18-eager", "llama__optimum"}
	return []lookalike{
		{
			name: "in what a layer adds", models: models, is: hasScale(1),
			change: func(p *patient) {
				p.Into(p.layerSum(), 1, func(v string) string { return p.Op("Add", v, p.firstLarge(v)) })
			},
		},
		{
			name: "on the way from layer to layer", models: models, kept: both("the shapes of the graph could not be measured"),
			change: func(p *patient) {
				p.After(p.layerSum().Outputs[0], func(v string) string { return p.Op("Mul", v, p.Op("Exp", p.firstLarge(v))) })
			},
		},
		{
			name: "in a sum of another shape", models: models, kept: both("the shapes of the graph could not be measured"),
			change: func(p *patient) {
				sum := p.layerSum()
				p.After(sum.Outputs[0], func(v string) string { return p.Op("Squeeze", v, p.Ints(0)) })
				p.Into(sum, 1, func(v string) string { return p.Op("Unsqueeze", p.Op("Add", v, p.firstLarge(v)), p.Ints(0)) })
			},
		},
	}
}
