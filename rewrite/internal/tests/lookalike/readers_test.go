package lookalike_test

import (
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// The exports of dynamo give a padded query that sees no key the average of all
// values; the op gives zeros. That shows where something reads padded tokens.
var averaging = []string{"llama__dynamo18", "llama__dynamo18-eager", "gpt_neox__dynamo18"}

// softly hides the keys of padding from a layer's queries by a finite number only.
func (p *patient) softly(layer int, by float32) {
	visible := p.Op("Greater", p.maskOf(layer), p.Float(-1))
	later := p.Op("Less", p.distance(), p.Int(0))
	p.Into(p.Sites[layer].Softmax, 0, func(string) string {
		hidden := p.Op("Where", later, p.Float(-1e30), p.Float(by))
		return p.Op("Add", p.scoresWithoutMask(layer), p.Op("Where", visible, p.Float(0), hidden))
	})
}

// twoBehind says whether a call has two tokens behind so many cached ones.
func (p *patient) twoBehind(past int64) string {
	return p.Op("And", p.Op("Equal", p.Past(), p.Int(past)), p.Op("Equal", p.Size("input_ids", 1), p.Int(2)))
}

// paddingShownIf shows padding in calls of which a condition holds.
func (p *patient) paddingShownIf(condition func() string) {
	p.After("attention_mask", func(old string) string { return p.Op("Max", old, p.Cast(condition(), onnx.Int64)) })
}

// laterKey shows the queries of the last layer the key behind them, if it is no padding and where says so. The layers
// before it stay causal, so that their op gives zeros to padded queries.
func (p *patient) laterKey(where func(later string) string) {
	layer := len(p.Sites) - 1
	later := p.Op("And", p.Op("Equal", p.distance(), p.Int(-1)), p.Op("Unsqueeze", p.Cast("attention_mask", onnx.Bool), p.Ints(1, 2)))
	visible := p.Op("Or", p.Op("Greater", p.maskOf(layer), p.Float(-1)), where(later))
	p.Into(p.Sites[layer].Softmax, 0, func(string) string {
		return p.Op("Where", visible, p.scoresWithoutMask(layer), p.Float(-1e30))
	})
}

// paddingReaders has models in which something reads what attention
// gives to padded tokens that see no key.
func paddingReaders() []lookalike {
	first := []string{kit.DependsOnPadding, ""}
	pooled := func(p *patient, old string) string {
		return p.Node("ReduceMean", []string{old, p.Ints(2)}, onnx.IntAttr("keepdims", 1))
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
			name: "a later softmax goes over the queries", models: averaging, kept: []string{kit.DependsOnPadding, "Softmax"},
			change: func(p *patient) { p.Sites[1].Softmax.SetAttribute(onnx.IntAttr("axis", 2)) },
		},
		{
			name: "the order of tokens is turned round", models: averaging, kept: both(kit.DependsOnPadding),
			change: func(p *patient) {
				for _, s := range p.Sites {
					p.After(s.Output(), func(old string) string {
						return p.Op("Add", old, p.Op("Slice", old, p.Ints(-1), p.Ints(-1<<40), p.Ints(2), p.Ints(-1)))
					})
				}
			},
		},
		{
			name: "all tokens are pooled", models: averaging, kept: both(kit.DependsOnPadding),
			change: func(p *patient) {
				p.After(p.Sites[1].Output(), func(old string) string { return p.Op("Add", old, pooled(p, old)) })
			},
		},
		{
			name: "an output pools all tokens", models: averaging, kept: both(kit.DependsOnPadding),
			change: func(p *patient) { p.Output(pooled(p, p.Sites[1].Output())) },
		},
		{
			name: "tokens that are not padding are pooled", models: averaging,
			change: func(p *patient) {
				p.After(p.Sites[1].Output(), func(old string) string {
					length := p.Op("Unsqueeze", p.Size("input_ids", 1), p.Ints(0))
					mask := p.Op("Slice", "attention_mask", p.Op("Neg", length), p.Ints(1<<40), p.Ints(1))
					real := p.Cast(p.Op("Unsqueeze", mask, p.Ints(1, 3)), onnx.Float)
					return p.Op("Add", old, pooled(p, p.Op("Mul", old, real)))
				})
			},
		},
		{
			name: "outputs are divided by their length", models: averaging, kept: both("gives NaN"),
			change: func(p *patient) { // 0 by 0 in padded rows, whose values are NaN to the next attention
				p.After(p.Sites[0].Output(), func(old string) string {
					length := p.Op("Sqrt", p.Node("ReduceSum", []string{p.Op("Mul", old, old), p.Ints(3)}, onnx.IntAttr("keepdims", 1)))
					return p.Op("Div", old, length)
				})
			},
		},
		{
			name: "padding is hidden in calls without a past alone", models: averaging, kept: both(kit.DependsOnPadding),
			change: func(p *patient) {
				p.paddingShownIf(func() string { return p.Op("Greater", p.Past(), p.Int(0)) })
			},
		},
		{
			name: "padding is shown with one cached token", models: averaging, kept: []string{"shows them to other tokens in some call", ""},
			change: func(p *patient) {
				p.paddingShownIf(func() string { return p.Op("Equal", p.Past(), p.Int(1)) })
			},
		},
		{
			name: "padding is shown with twenty cached tokens", models: averaging, kept: []string{"shows them to other tokens in some call", ""},
			change: func(p *patient) {
				p.paddingShownIf(func() string { return p.Op("Equal", p.Past(), p.Int(20)) })
			},
		},
		{
			name: "padding is shown to two tokens behind twenty, a later key to all", models: averaging,
			kept: []string{"shows them to other tokens in some call", ""},
			change: func(p *patient) {
				p.paddingShownIf(func() string { return p.twoBehind(20) })
				p.laterKey(func(later string) string { return later })
			},
		},
		{
			name: "padding is shown to two tokens behind twenty, a later key to two behind twelve", models: averaging,
			kept: []string{"shows them to other tokens in some call", ""},
			change: func(p *patient) {
				p.paddingShownIf(func() string { return p.twoBehind(20) })
				p.laterKey(func(later string) string { return p.Op("And", later, p.twoBehind(12)) })
			},
		},
		{
			name: "all keys are hidden with one cached token", models: averaging, kept: both("hides all keys from some tokens that are not padding"),
			change: func(p *patient) {
				p.VisibleIf(func() string { return p.Op("Not", p.Op("Equal", p.Past(), p.Int(1))) })
			},
		},
		{
			name: "the past is taken away from the place of a query", models: averaging, kept: both("hides all keys from some tokens that are not padding"),
			change: func(p *patient) {
				p.VisibleIf(func() string {
					past := p.Past()
					return p.Op("GreaterOrEqual", p.Op("Sub", p.distance(), p.Op("Mul", past, p.Int(2))), p.Int(0))
				})
			},
		},
	}
}
