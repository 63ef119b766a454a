package lookalike_test

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// distance returns [length, past + length] of query index − key index.
func (p *patient) distance() string {
	past := p.Past()
	length := p.Size("input_ids", 1)
	total := p.Op("Add", past, length)
	queries := p.Op("Unsqueeze", p.Op("Range", past, total, p.Int(1)), p.Ints(1))
	keys := p.Op("Unsqueeze", p.Op("Range", p.Int(0), total, p.Int(1)), p.Ints(0))
	return p.Op("Sub", queries, keys)
}

// fill changes the value of hidden keys' scores.
func (p *patient) fill(value float32) {
	for layer, s := range p.Sites {
		visible := p.Op("Greater", p.maskOf(layer), p.Float(-1))
		p.Into(s.Softmax, 0, func(string) string {
			return p.Op("Add", p.scoresWithoutMask(layer), p.Op("Where", visible, p.Float(0), p.Float(value)))
		})
	}
}

// maskOf and scoresWithoutMask are the operands of the Add in front of a softmax.
func (p *patient) maskOf(layer int) string {
	return p.Up(p.Sites[layer].SoftmaxInput(), "Add").Inputs[1]
}

func (p *patient) scoresWithoutMask(layer int) string {
	return p.Up(p.Sites[layer].SoftmaxInput(), "Add").Inputs[0]
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

// hasSlopes says that each head has a slope by distance, hasBuckets that distances have biases from some on.
func hasSlopes(slope float64) func(int, rope.Attention) error {
	return func(_ int, a rope.Attention) error {
		if len(a.Distance.Slopes) != a.Heads || a.Mask.Bias {
			return fmt.Errorf("there are %d slopes for %d heads, the mask is %s", len(a.Distance.Slopes), a.Heads, a.Mask.String())
		}
		for _, s := range a.Distance.Slopes {
			if err := near("a slope", s, slope); err != nil {
				return err
			}
		}
		return nil
	}
}

func hasBuckets(starts ...int64) func(int, rope.Attention) error {
	return func(_ int, a rope.Attention) error {
		if !slices.Equal(a.Distance.Starts, starts) || a.Mask.Bias {
			return fmt.Errorf("buckets begin at %v, %v was expected; the mask is %s", a.Distance.Starts, starts, a.Mask.String())
		}
		return nil
	}
}

func hasSoftcap(c float64) func(int, rope.Attention) error {
	return func(_ int, a rope.Attention) error { return near("the softcap", a.Softcap, c) }
}

// slope is a bias by distance whose rows cannot be computed one by one.
func (p *patient) slope() string {
	steps := p.Op("CumSum", p.Op("Mul", p.Cast(p.distance(), onnx.Float), p.Float(0)), p.Int(0))
	return p.Op("Add", steps, p.Op("Mul", p.Cast(p.distance(), onnx.Float), p.Float(-0.01)))
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
		return errors.New("the mask is " + a.Mask.String() + ", expected causal without padding")
	}
	return nil
}

func (p *patient) window(w int64) {
	p.VisibleIf(func() string { return p.Op("Less", p.distance(), p.Int(w)) })
}

func masks() []lookalike {
	const unlike = "its mask is not understood"
	return []lookalike{
		{
			name:   "strictly causal",
			change: func(p *patient) { p.First("LessOrEqual").OpType = "Less" },
			is:     ownBias(false),
		},
		{
			name:   "anti-causal",
			change: func(p *patient) { p.First("LessOrEqual").OpType = "GreaterOrEqual" },
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
				p.Scores(func(old string) string {
					return p.Op("Add", old, p.Op("Mul", p.Cast(p.distance(), onnx.Float), p.Float(-0.01)))
				})
			},
			is: hasSlopes(0.01),
		},
		{
			name: "bias on far keys",
			change: func(p *patient) {
				p.Scores(func(old string) string {
					return p.Op("Add", old, p.Op("Where", p.Op("Greater", p.distance(), p.Int(6000)), p.Float(-1), p.Float(0)))
				})
			},
			is: hasBuckets(0, 6001),
		},
		{
			name:   "constant bias",
			change: func(p *patient) { p.Scores(func(old string) string { return p.Op("Add", old, p.Float(0.5)) }) },
			is:     hasScale(1),
		},
		{
			name: "bias per head",
			change: func(p *patient) {
				p.Product(func(old string) string { return p.Op("Add", old, p.Floats([]int64{4, 1, 1}, 1, 2, 3, 4)) })
			},
			is: hasScale(1),
		},
		{name: "window of 3", change: func(p *patient) { p.window(3) }, is: hasWindow(3)},
		{name: "window of 40", change: func(p *patient) { p.window(40) }, is: hasWindow(40)},
		{name: "window of 7000", change: func(p *patient) { p.window(7000) }, is: hasWindow(7000)},
		{name: "window of 50000", change: func(p *patient) { p.window(50000) }, is: hasWindow(50000)},
		{name: "chunks of 5", change: func(p *patient) { p.Chunked(5) }, is: ownBias(true)},
		{name: "chunks of 64", change: func(p *patient) { p.Chunked(64) }, is: ownBias(true)},
		{name: "chunks of 8192", change: func(p *patient) { p.Chunked(8192) }, is: ownBias(true)},
		{name: "chunks of 50000", change: func(p *patient) { p.Chunked(50000) }, is: ownBias(true)},
		{
			name: "window of 10000 and the first keys",
			change: func(p *patient) {
				p.VisibleIf(func() string {
					past := p.Size("past_key_values.0.key", 2)
					total := p.Op("Add", past, p.Size("input_ids", 1))
					first := p.Op("Less", p.Op("Unsqueeze", p.Op("Range", p.Int(0), total, p.Int(1)), p.Ints(0)), p.Int(4))
					return p.Op("Or", p.Op("Less", p.distance(), p.Int(10000)), first)
				})
			},
			is: ownBias(true),
		},
		{
			name: "window in every second head",
			change: func(p *patient) {
				near := p.Op("Less", p.distance(), p.Int(3))
				odd := p.Op("Equal", p.Op("Mod", p.Op("Unsqueeze", p.Op("Range", p.Int(0), p.Int(4), p.Int(1)), p.Ints(1, 2)), p.Int(2)), p.Int(0))
				p.Scores(func(old string) string { return p.Op("Where", p.Op("Or", near, odd), old, p.Float(-1e30)) })
			},
			is: ownBias(true),
		},
		{
			name:   "softcap before the mask",
			change: func(p *patient) { p.Product(func(old string) string { return p.Tanh(old, 50) }) },
			is:     hasSoftcap(50),
		},
		{
			name:   "softcap after the mask",
			change: func(p *patient) { p.Scores(func(old string) string { return p.Tanh(old, 50) }) },
			kept:   both(unlike),
		},
		{
			name:   "very high softcap",
			change: func(p *patient) { p.Product(func(old string) string { return p.Tanh(old, 30000) }) },
			is:     hasSoftcap(30000),
		},
		{
			name: "clipped scores",
			change: func(p *patient) {
				p.Product(func(old string) string { return p.Op("Clip", old, p.Float(-500), p.Float(500)) })
			},
			kept: both(unlike),
		},
		{
			name:   "absolute scores",
			change: func(p *patient) { p.Product(func(old string) string { return p.Op("Abs", old) }) },
			kept:   both(unlike),
		},
		{
			name:   "negated scores",
			change: func(p *patient) { p.Product(func(old string) string { return p.Op("Neg", old) }) },
			kept:   both(unlike),
		},
		{
			name: "scaled scores",
			change: func(p *patient) {
				p.Product(func(old string) string { return p.Op("Mul", old, p.Float(1.5)) })
			},
			is: hasScale(1.5),
		},
		{
			name: "scores scaled by the number of keys",
			change: func(p *patient) {
				p.Product(func(old string) string {
					return p.Op("Mul", old, p.Op("Log", p.Cast(p.Size(old, 3), onnx.Float)))
				})
			},
			kept: both(unlike),
		},
		{
			name: "scores scaled by the number of keys where there are many",
			change: func(p *patient) {
				p.Product(func(old string) string {
					keys := p.Cast(p.Size(old, 3), onnx.Float)
					return p.Op("Mul", old, p.Op("Max", p.Float(1), p.Op("Div", keys, p.Float(4096))))
				})
			},
			kept: both(unlike),
		},
		{
			name:   "softmax over queries",
			change: func(p *patient) { p.Sites[0].Softmax.SetAttribute(onnx.IntAttr("axis", 2)) },
			kept:   []string{"its axis is 2, expected 3", ""},
		},
		{
			name: "probabilities halved",
			change: func(p *patient) {
				p.Probabilities(func(old string) string { return p.Op("Mul", old, p.Float(0.5)) })
			},
			kept: both("its probabilities are changed"),
		},
		{
			name: "small probabilities cut",
			change: func(p *patient) {
				p.Probabilities(func(old string) string {
					return p.Op("Where", p.Op("Less", old, p.Float(1e-5)), p.Float(0), old)
				})
			},
			kept: both("off by"),
		},
		{
			name:   "a sink beside the keys",
			change: func(p *patient) { p.Sink(func(first string) string { return p.Op("Mul", first, p.Float(0)) }) },
			models: []string{"llama__dynamo18", "llama__dynamo18-nocache", "gpt_neox__dynamo18"}, // whose hidden keys are not −∞
			is:     hasSinks(1, 2, -1, 0.5),
		},
		{
			name: "a sink beside the keys, less the largest of a row",
			change: func(p *patient) {
				p.Sink(func(first string) string { return p.Op("Mul", p.Op("Max", first, p.Float(-1)), p.Float(0)) })
				p.Scores(func(old string) string {
					return p.Op("Sub", old, p.Node("ReduceMax", []string{old}, onnx.IntsAttr("axes", -1), onnx.IntAttr("keepdims", 1)))
				})
			},
			models: []string{"llama__ts17", "gpt_neox__ts17"}, // before opset 18, in which the axes became an input
			is:     hasSinks(1, 2, -1, 0.5),
		},
		{
			name: "a sink that follows the scores",
			change: func(p *patient) {
				p.Sink(func(first string) string { return p.Op("Max", p.Op("Mul", first, p.Float(0.01)), p.Float(-1)) })
			},
			models: []string{"llama__dynamo18"},
			kept:   both("the logit beside the keys"),
		},
		{
			name: "bias of a kind that has no rows",
			change: func(p *patient) {
				p.Scores(func(old string) string { return p.Op("Add", old, p.slope()) })
			},
			models: []string{"llama__dynamo18-nocache", "llama__ts17", "gpt_neox__ts17"},
			is:     ownBias(false),
		},
		{
			name: "factor of a kind that has no rows",
			change: func(p *patient) {
				p.Scores(func(old string) string { return p.Op("Mul", old, p.Op("Exp", p.slope())) })
			},
			models: []string{"llama__ts17", "llama__dynamo18-nocache", "gpt_neox__ts17"},
			kept:   both("by a value that is not constant"),
		},
		{
			name: "scores of the first layer added in the second",
			change: func(p *patient) {
				p.After(p.Sites[1].Scores(), func(old string) string { return p.Op("Add", old, p.Sites[0].Scores()) })
			},
			kept: []string{"", "products of hidden states"},
		},
		{
			name: "no padding in the mask",
			change: func(p *patient) {
				p.After("attention_mask", func(old string) string {
					return p.Op("Expand", p.Int(1), p.Op("Shape", old))
				})
			},
			is: noPadding,
		},
		{
			name: "padding from the token ids",
			change: func(p *patient) {
				p.Scores(func(old string) string {
					pad := p.Cast(p.Op("Equal", p.Node("Slice", []string{"input_ids", p.Ints(0), p.Ints(1), p.Ints(1)}), p.Int(0)), onnx.Float)
					return p.Op("Sub", old, p.Op("Mul", p.Op("Unsqueeze", pad, p.Ints(1, 2)), p.Float(1e30)))
				})
			},
			is: ownBias(true),
		},
		{
			name: "mask from the positions",
			change: func(p *patient) {
				p.Scores(func(old string) string {
					far := p.Cast(p.Op("Greater", "position_ids", p.Int(100_000)), onnx.Float)
					return p.Op("Sub", old, p.Op("Mul", p.Op("Unsqueeze", far, p.Ints(1, 3)), p.Float(5)))
				})
			},
			is: ownBias(true),
		},
		{
			name: "padding of the first row for all",
			change: func(p *patient) {
				p.After("attention_mask", func(old string) string {
					first := p.Op("Slice", old, p.Ints(0), p.Ints(1), p.Ints(0))
					return p.Op("Expand", first, p.Op("Shape", old))
				})
			},
			is: ownBias(true),
		},
		{
			name: "padding reversed",
			change: func(p *patient) {
				p.After("attention_mask", func(old string) string {
					return p.Op("Slice", old, p.Ints(-1), p.Ints(math.MinInt64), p.Ints(1), p.Ints(-1))
				})
			},
			kept: both("hides all keys from some tokens that are not padding"),
		},
		{
			name: "padding as a count of tokens",
			change: func(p *patient) {
				p.After("attention_mask", func(old string) string {
					count := p.Node("ReduceSum", []string{old, p.Ints(1)}, onnx.IntAttr("keepdims", 1))
					index := p.Op("Unsqueeze", p.Op("Range", p.Int(0), p.Size(old, 1), p.Int(1)), p.Ints(0))
					return p.Cast(p.Op("Less", index, count), onnx.Int64)
				})
			},
			is: ownBias(true),
		},
	}
}
