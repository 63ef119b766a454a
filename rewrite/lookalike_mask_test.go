package rewrite_test

import (
	"errors"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// past returns how many tokens are cached.
func (p *patient) past() string {
	if p.sites[0].Key.Cache == nil {
		return p.int(0)
	}
	return p.size("past_key_values.0.key", 2)
}

// distance returns [length, past + length] of query index − key index.
func (p *patient) distance() string {
	past := p.past()
	length := p.size("input_ids", 1)
	total := p.op("Add", past, length)
	queries := p.op("Unsqueeze", p.op("Range", past, total, p.int(1)), p.ints(1))
	keys := p.op("Unsqueeze", p.op("Range", p.int(0), total, p.int(1)), p.ints(0))
	return p.op("Sub", queries, keys)
}

// visibleIf hides keys beyond what the export hides, where condition is false.
func (p *patient) visibleIf(condition func() string) {
	le := p.first("LessOrEqual")
	p.after(le.Outputs[0], func(old string) string { return p.op("And", old, condition()) })
}

// scores changes what enters the softmax of every layer.
func (p *patient) scores(change func(old string) string) {
	for _, s := range p.sites {
		p.into(s.Softmax, 0, change)
	}
}

// product changes the scores of every layer before its mask.
func (p *patient) product(change func(old string) string) {
	for _, s := range p.sites {
		p.after(s.Scores(), change)
	}
}

func (p *patient) tanh(v string, limit float32) string {
	return p.op("Mul", p.op("Tanh", p.op("Div", v, p.float(limit))), p.float(limit))
}

// fill changes the value of hidden keys' scores.
func (p *patient) fill(value float32) {
	for layer, s := range p.sites {
		visible := p.op("Greater", p.maskOf(layer), p.float(-1))
		p.into(s.Softmax, 0, func(string) string {
			return p.op("Add", p.scoresWithoutMask(layer), p.op("Where", visible, p.float(0), p.float(value)))
		})
	}
}

// maskOf and scoresWithoutMask are the operands of the Add in front of a softmax.
func (p *patient) maskOf(layer int) string {
	return p.up(p.sites[layer].SoftmaxInput(), "Add").Inputs[1]
}

func (p *patient) scoresWithoutMask(layer int) string {
	return p.up(p.sites[layer].SoftmaxInput(), "Add").Inputs[0]
}

// ownBias says that the mask is computed by the model still.
func ownBias(causal bool) func(int, rope.Attention) error {
	return func(_ int, a rope.Attention) error {
		if want := (rope.Mask{Causal: causal, Bias: true}); a.Mask != want {
			return errors.New("the mask is " + a.Mask.String() + ", " + want.String() + " was expected")
		}
		return nil
	}
}

func hasSoftcap(c float64) func(int, rope.Attention) error {
	return func(_ int, a rope.Attention) error { return near("the softcap", a.Softcap, c) }
}

// sink puts a column behind the keys of every layer and takes its probability
// away: a logit per head and what shift makes of the first key's score.
func (p *patient) sink(shift func(first string) string) {
	for _, s := range p.sites {
		p.into(s.Softmax, 0, func(old string) string {
			first := p.op("Slice", old, p.ints(0), p.ints(1), p.ints(3))
			logits := p.op("Add", shift(first), p.floats([]int64{1, 4, 1, 1}, 1, 2, -1, 0.5))
			return p.node("Concat", []string{old, logits}, onnx.IntAttr("axis", 3))
		})
		p.after(s.Softmax.Outputs[0], func(old string) string {
			return p.op("Slice", old, p.ints(0), p.ints(-1), p.ints(3))
		})
	}
}

// slope is a bias by distance whose rows cannot be computed one by one.
func (p *patient) slope() string {
	steps := p.op("CumSum", p.op("Mul", p.cast(p.distance(), onnx.Float), p.float(0)), p.int(0))
	return p.op("Add", steps, p.op("Mul", p.cast(p.distance(), onnx.Float), p.float(-0.01)))
}

func hasSinks(want ...float64) func(int, rope.Attention) error {
	return func(_ int, a rope.Attention) error {
		if len(a.Sinks) != len(want) {
			return fmt.Errorf("the sinks are %v, %v were expected", a.Sinks, want)
		}
		for h, x := range want {
			if err := near("the sink", a.Sinks[h], x); err != nil {
				return err
			}
		}
		return nil
	}
}

func noPadding(_ int, a rope.Attention) error {
	if a.Mask.Padding || !a.Mask.Causal {
		return errors.New("the mask is " + a.Mask.String() + ", causal without padding was expected")
	}
	return nil
}

func (p *patient) window(w int64) {
	p.visibleIf(func() string { return p.op("Less", p.distance(), p.int(w)) })
}

// chunked lets tokens see those of their own chunk only.
func (p *patient) chunked(size int64) {
	p.visibleIf(func() string {
		past := p.past()
		total := p.op("Add", past, p.size("input_ids", 1))
		q := p.op("Unsqueeze", p.op("Range", past, total, p.int(1)), p.ints(1))
		k := p.op("Unsqueeze", p.op("Range", p.int(0), total, p.int(1)), p.ints(0))
		return p.op("Equal", p.op("Div", q, p.int(size)), p.op("Div", k, p.int(size)))
	})
}

func masks() []lookalike {
	const unlike = "its mask is not understood"
	return []lookalike{
		{
			name:   "strictly causal",
			change: func(p *patient) { p.first("LessOrEqual").OpType = "Less" },
			is:     ownBias(false),
		},
		{
			name:   "anti-causal",
			change: func(p *patient) { p.first("LessOrEqual").OpType = "GreaterOrEqual" },
			is:     ownBias(false),
		},
		{name: "hidden is -3", change: func(p *patient) { p.fill(-3) }, is: ownBias(false)},
		{name: "hidden is -5000", change: func(p *patient) { p.fill(-5000) }, is: ownBias(false)},
		{name: "hidden is -10000", change: func(p *patient) { p.fill(-10000) }, is: hasScale(1)},
		{name: "hidden is minus infinity", change: func(p *patient) { p.fill(float32(math.Inf(-1))) },
			models: []string{"llama__optimum", "llama__dynamo18", "gpt_neox__dynamo18", "gpt_neox__optimum"}, is: hasScale(1)},
		{
			name: "bias per key",
			change: func(p *patient) {
				p.scores(func(old string) string {
					return p.op("Add", old, p.op("Mul", p.cast(p.distance(), onnx.Float), p.float(-0.01)))
				})
			},
			is: ownBias(true),
		},
		{
			name: "bias on far keys",
			change: func(p *patient) {
				p.scores(func(old string) string {
					return p.op("Add", old, p.op("Where", p.op("Greater", p.distance(), p.int(6000)), p.float(-1), p.float(0)))
				})
			},
			is: ownBias(true),
		},
		{
			name:   "constant bias",
			change: func(p *patient) { p.scores(func(old string) string { return p.op("Add", old, p.float(0.5)) }) },
			is:     hasScale(1),
		},
		{
			name: "bias per head",
			change: func(p *patient) {
				p.product(func(old string) string { return p.op("Add", old, p.floats([]int64{4, 1, 1}, 1, 2, 3, 4)) })
			},
			is: hasScale(1),
		},
		{name: "window of 3", change: func(p *patient) { p.window(3) }, is: hasWindow(3)},
		{name: "window of 40", change: func(p *patient) { p.window(40) }, is: hasWindow(40)},
		{name: "window of 7000", change: func(p *patient) { p.window(7000) }, is: hasWindow(7000)},
		{name: "window of 50000", change: func(p *patient) { p.window(50000) }, is: hasWindow(50000)},
		{name: "chunks of 5", change: func(p *patient) { p.chunked(5) }, is: ownBias(true)},
		{name: "chunks of 64", change: func(p *patient) { p.chunked(64) }, is: ownBias(true)},
		{name: "chunks of 8192", change: func(p *patient) { p.chunked(8192) }, is: ownBias(true)},
		{name: "chunks of 50000", change: func(p *patient) { p.chunked(50000) }, is: ownBias(true)},
		{
			name: "window of 10000 and the first keys",
			change: func(p *patient) {
				p.visibleIf(func() string {
					past := p.size("past_key_values.0.key", 2)
					total := p.op("Add", past, p.size("input_ids", 1))
					first := p.op("Less", p.op("Unsqueeze", p.op("Range", p.int(0), total, p.int(1)), p.ints(0)), p.int(4))
					return p.op("Or", p.op("Less", p.distance(), p.int(10000)), first)
				})
			},
			is: ownBias(true),
		},
		{
			name: "window in every second head",
			change: func(p *patient) {
				near := p.op("Less", p.distance(), p.int(3))
				odd := p.op("Equal", p.op("Mod", p.op("Unsqueeze", p.op("Range", p.int(0), p.int(4), p.int(1)), p.ints(1, 2)), p.int(2)), p.int(0))
				p.scores(func(old string) string { return p.op("Where", p.op("Or", near, odd), old, p.float(-1e30)) })
			},
			is: ownBias(true),
		},
		{
			name:   "softcap before the mask",
			change: func(p *patient) { p.product(func(old string) string { return p.tanh(old, 50) }) },
			is:     hasSoftcap(50),
		},
		{
			name:   "softcap after the mask",
			change: func(p *patient) { p.scores(func(old string) string { return p.tanh(old, 50) }) },
			kept:   both(unlike),
		},
		{
			name:   "very high softcap",
			change: func(p *patient) { p.product(func(old string) string { return p.tanh(old, 30000) }) },
			is:     hasSoftcap(30000),
		},
		{
			name: "clipped scores",
			change: func(p *patient) {
				p.product(func(old string) string { return p.op("Clip", old, p.float(-500), p.float(500)) })
			},
			kept: both(unlike),
		},
		{
			name:   "absolute scores",
			change: func(p *patient) { p.product(func(old string) string { return p.op("Abs", old) }) },
			kept:   both(unlike),
		},
		{
			name:   "negated scores",
			change: func(p *patient) { p.product(func(old string) string { return p.op("Neg", old) }) },
			kept:   both(unlike),
		},
		{
			name: "scaled scores",
			change: func(p *patient) {
				p.product(func(old string) string { return p.op("Mul", old, p.float(1.5)) })
			},
			is: hasScale(1.5),
		},
		{
			name: "scores scaled by the number of keys",
			change: func(p *patient) {
				p.product(func(old string) string {
					return p.op("Mul", old, p.op("Log", p.cast(p.size(old, 3), onnx.Float)))
				})
			},
			kept: both(unlike),
		},
		{
			name: "scores scaled by the number of keys where there are many",
			change: func(p *patient) {
				p.product(func(old string) string {
					keys := p.cast(p.size(old, 3), onnx.Float)
					return p.op("Mul", old, p.op("Max", p.float(1), p.op("Div", keys, p.float(4096))))
				})
			},
			kept: both(unlike),
		},
		{
			name:   "softmax over queries",
			change: func(p *patient) { p.sites[0].Softmax.SetAttribute(onnx.IntAttr("axis", 2)) },
			kept:   []string{"its axis is 2, 3 was expected", ""},
		},
		{
			name: "probabilities halved",
			change: func(p *patient) {
				p.probabilities(func(old string) string { return p.op("Mul", old, p.float(0.5)) })
			},
			kept: both("its probabilities are changed"),
		},
		{
			name: "small probabilities cut",
			change: func(p *patient) {
				p.probabilities(func(old string) string {
					return p.op("Where", p.op("Less", old, p.float(1e-5)), p.float(0), old)
				})
			},
			kept: both("off by"),
		},
		{
			name:   "a sink beside the keys",
			change: func(p *patient) { p.sink(func(first string) string { return p.op("Mul", first, p.float(0)) }) },
			models: []string{"llama__dynamo18", "llama__dynamo18-nocache", "gpt_neox__dynamo18"}, // whose hidden keys are not −∞
			is:     hasSinks(1, 2, -1, 0.5),
		},
		{
			name: "a sink beside the keys, less the largest of a row",
			change: func(p *patient) {
				p.sink(func(first string) string { return p.op("Mul", p.op("Max", first, p.float(-1)), p.float(0)) })
				p.scores(func(old string) string {
					return p.op("Sub", old, p.node("ReduceMax", []string{old}, onnx.IntsAttr("axes", -1), onnx.IntAttr("keepdims", 1)))
				})
			},
			models: []string{"llama__ts17", "gpt_neox__ts17"}, // before opset 18, in which the axes became an input
			is:     hasSinks(1, 2, -1, 0.5),
		},
		{
			name: "a sink that follows the scores",
			change: func(p *patient) {
				p.sink(func(first string) string { return p.op("Max", p.op("Mul", first, p.float(0.01)), p.float(-1)) })
			},
			models: []string{"llama__dynamo18"},
			kept:   both("the logit beside the keys"),
		},
		{
			name: "bias of a kind that has no rows",
			change: func(p *patient) {
				p.scores(func(old string) string { return p.op("Add", old, p.slope()) })
			},
			models: []string{"llama__dynamo18-nocache", "llama__ts17", "gpt_neox__ts17"},
			is:     ownBias(false),
		},
		{
			name: "factor of a kind that has no rows",
			change: func(p *patient) {
				p.scores(func(old string) string { return p.op("Mul", old, p.op("Exp", p.slope())) })
			},
			models: []string{"llama__ts17", "llama__dynamo18-nocache", "gpt_neox__ts17"},
			kept:   both("by what is not constant"),
		},
		{
			name: "scores of the first layer added in the second",
			change: func(p *patient) {
				p.after(p.sites[1].Scores(), func(old string) string { return p.op("Add", old, p.sites[0].Scores()) })
			},
			kept: []string{"", "products of hidden states"},
		},
		{
			name: "no padding in the mask",
			change: func(p *patient) {
				p.after("attention_mask", func(old string) string {
					return p.op("Expand", p.int(1), p.op("Shape", old))
				})
			},
			is: noPadding,
		},
		{
			name: "padding from the token ids",
			change: func(p *patient) {
				p.scores(func(old string) string {
					pad := p.cast(p.op("Equal", p.node("Slice", []string{"input_ids", p.ints(0), p.ints(1), p.ints(1)}), p.int(0)), onnx.Float)
					return p.op("Sub", old, p.op("Mul", p.op("Unsqueeze", pad, p.ints(1, 2)), p.float(1e30)))
				})
			},
			is: ownBias(true),
		},
		{
			name: "mask from the positions",
			change: func(p *patient) {
				p.scores(func(old string) string {
					far := p.cast(p.op("Greater", "position_ids", p.int(100_000)), onnx.Float)
					return p.op("Sub", old, p.op("Mul", p.op("Unsqueeze", far, p.ints(1, 3)), p.float(5)))
				})
			},
			is: ownBias(true),
		},
		{
			name: "padding of the first row for all",
			change: func(p *patient) {
				p.after("attention_mask", func(old string) string {
					first := p.op("Slice", old, p.ints(0), p.ints(1), p.ints(0))
					return p.op("Expand", first, p.op("Shape", old))
				})
			},
			is: ownBias(true),
		},
		{
			name: "padding reversed",
			change: func(p *patient) {
				p.after("attention_mask", func(old string) string {
					return p.op("Slice", old, p.ints(-1), p.ints(math.MinInt64), p.ints(1), p.ints(-1))
				})
			},
			kept: both("hides all keys from some tokens that are not padding"),
		},
		{
			name: "padding as a count of tokens",
			change: func(p *patient) {
				p.after("attention_mask", func(old string) string {
					count := p.node("ReduceSum", []string{old, p.ints(1)}, onnx.IntAttr("keepdims", 1))
					index := p.op("Unsqueeze", p.op("Range", p.int(0), p.size(old, 1), p.int(1)), p.ints(0))
					return p.cast(p.op("Less", index, count), onnx.Int64)
				})
			},
			is: ownBias(true),
		},
	}
}
