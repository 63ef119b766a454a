package rewrite_test

import (
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// The exports of dynamo give a padded query that sees no key the average of all
// values; the op gives zeros. That shows where something reads padded tokens.
var averaging = []string{"llama__dynamo18", "llama__dynamo18-eager", "gpt_neox__dynamo18"}

const dependsOnPadding = "what the model gives for other tokens depends on them"

// softly hides the keys of padding from a layer's queries by a finite number only.
func (p *patient) softly(layer int, by float32) {
	visible := p.op("Greater", p.maskOf(layer), p.float(-1))
	later := p.op("Less", p.distance(), p.int(0))
	p.into(p.sites[layer].Softmax, 0, func(string) string {
		hidden := p.op("Where", later, p.float(-1e30), p.float(by))
		return p.op("Add", p.scoresWithoutMask(layer), p.op("Where", visible, p.float(0), hidden))
	})
}

// paddingReaders has models in which something reads what attention
// gives to padded tokens that see no key.
func paddingReaders() []lookalike {
	first := []string{dependsOnPadding, ""}
	pooled := func(p *patient, old string) string {
		return p.node("ReduceMean", []string{old, p.ints(2)}, onnx.IntAttr("keepdims", 1))
	}
	return []lookalike{
		{
			name: "a later mask hides padding softly", models: averaging, kept: first,
			change: func(p *patient) { p.softly(1, -3) },
		},
		{
			name: "a later mask hides padding a little", models: averaging, kept: first,
			change: func(p *patient) { p.softly(1, -9) },
		},
		{
			name: "a later softmax goes over the queries", models: averaging, kept: []string{dependsOnPadding, "Softmax"},
			change: func(p *patient) { p.sites[1].Softmax.SetAttribute(onnx.IntAttr("axis", 2)) },
		},
		{
			name: "the order of tokens is turned round", models: averaging, kept: both(dependsOnPadding),
			change: func(p *patient) {
				for _, s := range p.sites {
					p.after(s.Output(), func(old string) string {
						return p.op("Add", old, p.op("Slice", old, p.ints(-1), p.ints(-1<<40), p.ints(2), p.ints(-1)))
					})
				}
			},
		},
		{
			name: "all tokens are pooled", models: averaging, kept: both(dependsOnPadding),
			change: func(p *patient) {
				p.after(p.sites[1].Output(), func(old string) string { return p.op("Add", old, pooled(p, old)) })
			},
		},
		{
			name: "an output pools all tokens", models: averaging, kept: both(dependsOnPadding),
			change: func(p *patient) { p.output(pooled(p, p.sites[1].Output())) },
		},
		{
			name: "tokens that are not padding are pooled", models: averaging,
			change: func(p *patient) {
				p.after(p.sites[1].Output(), func(old string) string {
					length := p.op("Unsqueeze", p.size("input_ids", 1), p.ints(0))
					mask := p.op("Slice", "attention_mask", p.op("Neg", length), p.ints(1<<40), p.ints(1))
					real := p.cast(p.op("Unsqueeze", mask, p.ints(1, 3)), onnx.Float)
					return p.op("Add", old, pooled(p, p.op("Mul", old, real)))
				})
			},
		},
		{
			name: "outputs are divided by their length", models: averaging, kept: both("gives NaN"),
			change: func(p *patient) { // 0 by 0 in padded rows, whose values are NaN to the next attention
				p.after(p.sites[0].Output(), func(old string) string {
					length := p.op("Sqrt", p.node("ReduceSum", []string{p.op("Mul", old, old), p.ints(3)}, onnx.IntAttr("keepdims", 1)))
					return p.op("Div", old, length)
				})
			},
		},
		{
			name: "the past is taken away from the place of a query", models: averaging, kept: both("hides all keys from some tokens that are not padding"),
			change: func(p *patient) {
				p.visibleIf(func() string {
					past := p.past()
					return p.op("GreaterOrEqual", p.op("Sub", p.distance(), p.op("Mul", past, p.int(2))), p.int(0))
				})
			},
		},
	}
}
