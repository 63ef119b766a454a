package lookalike_test

import (
	"errors"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// comparison puts who sees whom, [length, past + length], in the place of the
// comparison that makes the export causal.
func (p *patient) comparison(sees func() string) {
	p.After(p.First("LessOrEqual").Outputs[0], func(string) string { return p.Op("Unsqueeze", sees(), p.Ints(0, 1)) })
}

// alsoVisibleIf shows keys that the export hides, where condition is true.
func (p *patient) alsoVisibleIf(condition func() string) {
	le := p.First("LessOrEqual")
	p.After(le.Outputs[0], func(old string) string { return p.Op("Or", old, condition()) })
}

// total returns how many keys a call has.
func (p *patient) total() string { return p.Op("Add", p.Past(), p.Size("input_ids", 1)) }

// keyPlaces returns the places of all keys in float32, [past + length].
func (p *patient) keyPlaces() string {
	return p.Cast(p.Op("Range", p.Int(0), p.total(), p.Int(1)), onnx.Float)
}

// queryPlaces returns those of the queries, [length, 1]; in a model without a
// cache they are those of the keys.
func (p *patient) queryPlaces(keys string) string {
	if p.Sites[0].Key.Cache != nil {
		keys = p.Op("Slice", keys, p.Op("Unsqueeze", p.Past(), p.Ints(0)), p.Op("Unsqueeze", p.total(), p.Ints(0)), p.Ints(0))
	}
	return p.Op("Unsqueeze", keys, p.Ints(1))
}

// square returns the shape [length, length] of a model without a cache.
func (p *patient) square() string {
	length := p.Op("Unsqueeze", p.Size("input_ids", 1), p.Ints(0))
	return p.Node("Concat", []string{length, length}, onnx.IntAttr("axis", 0))
}

func causalPadding(_ int, a rope.Attention) error {
	if want := (rope.Mask{Causal: true, Padding: true}); a.Mask != want {
		return errors.New("the mask is " + a.Mask.String() + ", expected causal + padding")
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
					return p.Op("GreaterOrEqual", p.queryPlaces(keys), p.Op("Unsqueeze", keys, p.Ints(0)))
				})
			},
			is: causalPadding,
		},
		{
			name: "places as floats, a bias",
			change: func(p *patient) {
				p.Scores(func(old string) string {
					keys := p.keyPlaces()
					sees := p.Op("GreaterOrEqual", p.queryPlaces(keys), keys)
					return p.Op("Add", old, p.Op("Where", sees, p.Float(0), p.Float(-1e9)))
				})
			},
			is: causalPadding,
		},
		{
			name: "a bias by floats beside it",
			change: func(p *patient) {
				p.Scores(func(old string) string {
					keys := p.keyPlaces()
					far := p.Op("Sub", p.queryPlaces(keys), keys)
					return p.Op("Add", old, p.Op("Where", p.Op("Less", far, p.Float(0)), p.Float(-1e9), p.Op("Mul", far, p.Float(-0.01))))
				})
			},
			is: hasSlopes(0.01),
		},
		{
			name: "later keys with more than 600 tokens",
			change: func(p *patient) {
				p.alsoVisibleIf(func() string { return p.Op("Greater", p.total(), p.Int(600)) })
			},
			is: ownBias(false),
		},
		{
			name: "later keys with more than 100000 tokens",
			change: func(p *patient) {
				p.alsoVisibleIf(func() string { return p.Op("Greater", p.total(), p.Int(100_000)) })
			},
			is: ownBias(false),
		},
		{
			name: "later keys in one row",
			change: func(p *patient) {
				p.alsoVisibleIf(func() string { return p.Op("Equal", p.queryPlaces(p.keyPlaces()), p.Float(431)) })
			},
			is: ownBias(false),
		},
		{
			name: "one later key",
			change: func(p *patient) {
				p.alsoVisibleIf(func() string {
					keys := p.keyPlaces()
					return p.Op("And", p.Op("Equal", p.queryPlaces(keys), p.Float(431)), p.Op("Equal", keys, p.Float(433)))
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
			list := p.Up(p.First("ScatterND").Inputs[1], "Concat")
			p.Into(list, len(list.Inputs)-2, func(old string) string { return change(p, old) })
		}
	}
	return append(list, []lookalike{
		{name: "places repeated", models: cacheless[1:2], change: func(p *patient) {
			p.comparison(func() string {
				keys := p.keyPlaces()
				length := p.Op("Unsqueeze", p.Size("input_ids", 1), p.Ints(0))
				all := p.Op("Tile", p.Op("Unsqueeze", keys, p.Ints(0)), p.Node("Concat", []string{length, p.Ints(1)}, onnx.IntAttr("axis", 0)))
				return p.Op("GreaterOrEqual", p.queryPlaces(keys), all)
			})
		}, is: causalPadding},
		{name: "places counted", models: cacheless[:1], change: func(p *patient) {
			p.comparison(func() string {
				ones := p.Node("ConstantOfShape", []string{p.square()}, onnx.TensorAttr("value", ir.Float32Tensor("", []int64{1}, 1)))
				return p.Op("GreaterOrEqual", p.queryPlaces(p.keyPlaces()), p.Op("Sub", p.Op("CumSum", ones, p.Int(1)), p.Float(1)))
			})
		}, is: causalPadding},
		{name: "triangle of flags", models: cacheless[2:], change: func(p *patient) {
			p.comparison(func() string {
				all := onnx.NewTensor("", onnx.Bool, []int64{1}, []byte{1})
				return p.Node("Trilu", []string{p.Node("ConstantOfShape", []string{p.square()}, onnx.TensorAttr("value", all))}, onnx.IntAttr("upper", 0))
			})
		}, is: causalPadding},
		{name: "assigned as a whole", models: gptj, change: func(*patient) {}, is: causalPadding},
		{name: "assigned, the last rows to one place", models: gptj, change: index(func(p *patient, rows string) string {
			return p.Op("Min", rows, p.Int(40))
		}), is: ownBias(false)},
		{name: "assigned upside down", models: gptj, change: index(func(p *patient, rows string) string {
			return p.Op("Sub", p.Op("Sub", p.Size("input_ids", 1), p.Int(1)), rows)
		}), is: ownBias(false)},
	}...)
}
