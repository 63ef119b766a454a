package rewrite_test

import "github.com/rope-rewrite/rope-rewrite/onnx"

// firstLarge returns a zero of the shape [1] that is computed from the first element of a
// hidden state that is above zero. It fails on hidden states of zeros, as the experts do
// that an exporter wrote down for the tokens of its example.
func (p *patient) firstLarge(hidden string) string {
	places := p.op("NonZero", p.op("Greater", hidden, p.float(0)))
	first := p.node("Gather", []string{places, p.ints(0)}, onnx.IntAttr("axis", 1)) // [3, 1]
	row := p.op("Slice", first, p.ints(0), p.ints(1), p.ints(0))
	return p.op("Mul", p.cast(p.op("Reshape", row, p.ints(1)), onnx.Float), p.float(0))
}

// layerSum returns the sum in front of layer 1: what layer 0 gets and what it adds.
func (p *patient) layerSum() *onnx.Node { return p.up(p.sites[1].Query.Boundary, "Add") }

// partsThatDoNotRun are models of which a part does not run on the zeros with which
// shapes are measured.
func partsThatDoNotRun() []lookalike {
	models := []string{"llama__ts17", "llama__dynamo18-eager", "llama__optimum"}
	return []lookalike{
		{
			name: "in what a layer adds", models: models, is: hasScale(1),
			change: func(p *patient) {
				p.into(p.layerSum(), 1, func(v string) string { return p.op("Add", v, p.firstLarge(v)) })
			},
		},
		{
			name: "on the way from layer to layer", models: models, kept: both("the shapes of the graph could not be measured"),
			change: func(p *patient) {
				p.after(p.layerSum().Outputs[0], func(v string) string { return p.op("Mul", v, p.op("Exp", p.firstLarge(v))) })
			},
		},
		{
			name: "in a sum of another shape", models: models, kept: both("the shapes of the graph could not be measured"),
			change: func(p *patient) {
				sum := p.layerSum()
				p.after(sum.Outputs[0], func(v string) string { return p.op("Squeeze", v, p.ints(0)) })
				p.into(sum, 1, func(v string) string { return p.op("Unsqueeze", p.op("Add", v, p.firstLarge(v)), p.ints(0)) })
			},
		},
	}
}
