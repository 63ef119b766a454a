package rewrite_test

import (
	"errors"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// comparison puts who sees whom, [length, past + length], in the place of the
// comparison that makes the export causal.
func (p *patient) comparison(sees func() string) {
	p.after(p.first("LessOrEqual").Outputs[0], func(string) string { return p.op("Unsqueeze", sees(), p.ints(0, 1)) })
}

// alsoVisibleIf shows keys that the export hides, where condition is true.
func (p *patient) alsoVisibleIf(condition func() string) {
	le := p.first("LessOrEqual")
	p.after(le.Outputs[0], func(old string) string { return p.op("Or", old, condition()) })
}

// total returns how many keys a call has.
func (p *patient) total() string { return p.op("Add", p.past(), p.size("input_ids", 1)) }

// keyPlaces returns the places of all keys in float32, [past + length].
func (p *patient) keyPlaces() string {
	return p.cast(p.op("Range", p.int(0), p.total(), p.int(1)), onnx.Float)
}

// queryPlaces returns those of the queries, [length, 1]; in a model without a
// cache they are those of the keys.
func (p *patient) queryPlaces(keys string) string {
	if p.sites[0].Key.Cache != nil {
		keys = p.op("Slice", keys, p.op("Unsqueeze", p.past(), p.ints(0)), p.op("Unsqueeze", p.total(), p.ints(0)), p.ints(0))
	}
	return p.op("Unsqueeze", keys, p.ints(1))
}

// square returns the shape [length, length] of a model without a cache.
func (p *patient) square() string {
	length := p.op("Unsqueeze", p.size("input_ids", 1), p.ints(0))
	return p.node("Concat", []string{length, length}, onnx.IntAttr("axis", 0))
}

func causalPadding(_ int, a rope.Attention) error {
	if want := (rope.Mask{Causal: true, Padding: true}); a.Mask != want {
		return errors.New("the mask is " + a.Mask.String() + ", causal + padding was expected")
	}
	return nil
}

// Masks that hide all later keys are causal however they are computed; those
// that show one of them somewhere are not.
func causalMasks() []lookalike {
	gptj := []string{"gptj__ts17"}
	cases := []lookalike{
		{
			name: "places as floats, compared",
			change: func(p *patient) {
				p.comparison(func() string {
					keys := p.keyPlaces()
					return p.op("GreaterOrEqual", p.queryPlaces(keys), p.op("Unsqueeze", keys, p.ints(0)))
				})
			},
			is: causalPadding,
		},
		{
			name: "places as floats, a bias",
			change: func(p *patient) {
				p.scores(func(old string) string {
					keys := p.keyPlaces()
					sees := p.op("GreaterOrEqual", p.queryPlaces(keys), keys)
					return p.op("Add", old, p.op("Where", sees, p.float(0), p.float(-1e9)))
				})
			},
			is: causalPadding,
		},
		{
			name: "a bias by floats beside it",
			change: func(p *patient) {
				p.scores(func(old string) string {
					keys := p.keyPlaces()
					far := p.op("Sub", p.queryPlaces(keys), keys)
					return p.op("Add", old, p.op("Where", p.op("Less", far, p.float(0)), p.float(-1e9), p.op("Mul", far, p.float(-0.01))))
				})
			},
			is: ownBias(true),
		},
		{
			name: "later keys with more than 600 tokens",
			change: func(p *patient) {
				p.alsoVisibleIf(func() string { return p.op("Greater", p.total(), p.int(600)) })
			},
			is: ownBias(false),
		},
		{
			name: "later keys with more than 100000 tokens",
			change: func(p *patient) {
				p.alsoVisibleIf(func() string { return p.op("Greater", p.total(), p.int(100_000)) })
			},
			is: ownBias(false),
		},
		{
			name: "later keys in one row",
			change: func(p *patient) {
				p.alsoVisibleIf(func() string { return p.op("Equal", p.queryPlaces(p.keyPlaces()), p.float(431)) })
			},
			is: ownBias(false),
		},
		{
			name: "one later key",
			change: func(p *patient) {
				p.alsoVisibleIf(func() string {
					keys := p.keyPlaces()
					return p.op("And", p.op("Equal", p.queryPlaces(keys), p.float(431)), p.op("Equal", keys, p.float(433)))
				})
			},
			is: ownBias(false),
		},
	}
	var list []lookalike
	for _, models := range [][]string{cacheless, exports} {
		for i, c := range cases {
			c.models = append(models[i%len(models):], models[:i%len(models)]...)
			list = append(list, c)
		}
	}
	index := func(change func(p *patient, rows string) string) func(p *patient) {
		return func(p *patient) { // the place in the row that each element of the mask is written to
			list := p.up(p.first("ScatterND").Inputs[1], "Concat")
			p.into(list, len(list.Inputs)-2, func(old string) string { return change(p, old) })
		}
	}
	return append(list, []lookalike{
		{name: "places repeated", models: cacheless[1:2], change: func(p *patient) {
			p.comparison(func() string {
				keys := p.keyPlaces()
				length := p.op("Unsqueeze", p.size("input_ids", 1), p.ints(0))
				all := p.op("Tile", p.op("Unsqueeze", keys, p.ints(0)), p.node("Concat", []string{length, p.ints(1)}, onnx.IntAttr("axis", 0)))
				return p.op("GreaterOrEqual", p.queryPlaces(keys), all)
			})
		}, is: causalPadding},
		{name: "places counted", models: cacheless[:1], change: func(p *patient) {
			p.comparison(func() string {
				ones := p.node("ConstantOfShape", []string{p.square()}, onnx.TensorAttr("value", ir.Float32Tensor("", []int64{1}, 1)))
				return p.op("GreaterOrEqual", p.queryPlaces(p.keyPlaces()), p.op("Sub", p.op("CumSum", ones, p.int(1)), p.float(1)))
			})
		}, is: causalPadding},
		{name: "triangle of flags", models: cacheless[2:], change: func(p *patient) {
			p.comparison(func() string {
				all := onnx.NewTensor("", onnx.Bool, []int64{1}, []byte{1})
				return p.node("Trilu", []string{p.node("ConstantOfShape", []string{p.square()}, onnx.TensorAttr("value", all))}, onnx.IntAttr("upper", 0))
			})
		}, is: causalPadding},
		{name: "assigned as a whole", models: gptj, change: func(*patient) {}, is: causalPadding},
		{name: "assigned, the last rows to one place", models: gptj, change: index(func(p *patient, rows string) string {
			return p.op("Min", rows, p.int(40))
		}), is: ownBias(false)},
		{name: "assigned upside down", models: gptj, change: index(func(p *patient, rows string) string {
			return p.op("Sub", p.op("Sub", p.size("input_ids", 1), p.int(1)), rows)
		}), is: ownBias(false)},
	}...)
}
