package lookalike_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// decaying multiplies the rotated query of position p by γ^(p/base) and the key by its
// inverse, as xPos does, γ of each pair (channel + gamma·width)/((1 + gamma)·width).
func (p *patient) decaying(gamma, base float64, change func(f []float32)) {
	for _, s := range p.Sites {
		for operand, sign := range map[string]float64{s.Query.Operand: 1, s.Key.Cached(): -1} {
			factor := func() string {
				position := p.Op("Div", p.Op("Unsqueeze", p.Cast("position_ids", onnx.Float), p.Ints(2)), p.Float(float32(sign*base)))
				pairs := p.PerPair(func(f []float32) {
					for i := range f {
						f[i] = float32((float64(i)/float64(len(f)) + gamma) / (1 + gamma))
					}
					change(f)
				})
				return p.Op("Unsqueeze", p.Op("Pow", pairs, position), p.Ints(1))
			}
			r := p.Rotation(operand)
			for _, product := range []*onnx.Node{r.Cos, r.Sin} {
				p.Into(product, 1, func(old string) string { return p.Op("Mul", old, factor()) })
			}
		}
	}
}

// turnedChannels are those of rotations that change single channels, or what is turned.
func turnedChannels() []lookalike {
	return []lookalike{
		{
			name: "channels of the query scaled before the rotation",
			change: func(p *patient) {
				v := make([]float32, 16)
				for i := range v {
					v[i] = 1 + float32(i)/8
				}
				p.After(p.Sites[0].Query.Boundary, func(old string) string { return p.Op("Mul", old, p.Floats([]int64{16}, v...)) })
			},
			is: hasScale(1),
		},
		{
			name: "channels of the query scaled after the rotation",
			change: func(p *patient) {
				v := make([]float32, 16)
				for i := range v {
					v[i] = 1 + float32(i)/8
				}
				p.Query(func(old string) string { return p.Op("Mul", old, p.Floats([]int64{16}, v...)) })
			},
			is: func(_ int, a rope.Attention) error {
				if len(a.QueryFactors) != 16 || a.KeyFactors != nil {
					return fmt.Errorf("the factors are %v and %v; 16 on the query were expected", a.QueryFactors, a.KeyFactors)
				}
				return nil
			},
		},
		{
			name: "heads of the query scaled after the rotation",
			change: func(p *patient) {
				p.Query(func(old string) string {
					return p.Op("Mul", old, p.Floats([]int64{1, 4, 1, 1}, 1, 1.5, 1, 1))
				})
			},
			is: hasScale(1),
		},
		{
			name: "bias on the rotated query",
			change: func(p *patient) {
				v := make([]float32, 16)
				v[3] = 0.5
				p.Query(func(old string) string { return p.Op("Add", old, p.Floats([]int64{16}, v...)) })
			},
			kept: both("its query is rotated by position at"),
		},
		{
			name: "tokens of the query scaled by their position",
			change: func(p *patient) {
				f := p.Op("Add", p.Op("Div", p.Cast("position_ids", onnx.Float), p.Float(1e4)), p.Float(1))
				f = p.Op("Unsqueeze", f, p.Ints(1, 3))
				p.Query(func(old string) string { return p.Op("Mul", old, f) })
			},
			is: hasScale(1),
		},
		{
			name: "half of the query's channels scaled by their position",
			change: func(p *patient) {
				f := p.Op("Add", p.Op("Div", p.Cast("position_ids", onnx.Float), p.Float(1e4)), p.Float(1))
				f = p.Op("Unsqueeze", f, p.Ints(1, 3))
				p.Query(func(old string) string {
					half := func(from, to int64) string { return p.Op("Slice", old, p.Ints(from), p.Ints(to), p.Ints(3)) }
					return p.Node("Concat", []string{p.Op("Mul", half(0, 8), f), half(8, 16)}, onnx.IntAttr("axis", 3))
				})
			},
			kept: both("its query is not rotated by position"),
		},
		{name: "the query normed after the rotation", change: func(p *patient) { p.Query(p.Normed) }, is: hasScale(1)},
		{name: "query and key normed after the rotation", change: (*patient).NormedBoth, is: hasScale(1)},
		{
			name: "the query normed after the rotation, with a weight for each channel",
			change: func(p *patient) {
				v := make([]float32, 16)
				for i := range v {
					v[i] = 1 + float32(i)/8
				}
				p.Query(func(old string) string { return p.Op("Mul", p.Normed(old), p.Floats([]int64{16}, v...)) })
			},
			is: func(_ int, a rope.Attention) error {
				if len(a.QueryFactors) != 16 || a.QueryFactors[8] != 2 || a.KeyFactors != nil {
					return fmt.Errorf("the factors behind the rotation are %v and %v", a.QueryFactors, a.KeyFactors)
				}
				return nil
			},
		},
		{
			name: "the query normed over all its heads after the rotation",
			change: func(p *patient) {
				p.Query(func(old string) string {
					mean := p.Op("ReduceMean", p.Op("Mul", old, old), p.Ints(1))
					return p.Op("Div", old, p.Op("Sqrt", p.Op("Add", mean, p.Float(1e-6))))
				})
			},
			kept: both("its query is rotated by position at"),
		},
		{
			name: "the query divided by its largest channel after the rotation",
			change: func(p *patient) {
				p.Query(func(old string) string {
					return p.Op("Div", old, p.Op("ReduceMax", p.Op("Abs", old), p.Ints(3)))
				})
			},
			kept: both("computed from its input, which is not a norm"),
		},
		{
			name: "the query divided by the length of its first channels after the rotation",
			change: func(p *patient) {
				p.Query(func(old string) string {
					first := p.Op("Slice", old, p.Ints(0), p.Ints(4), p.Ints(3))
					return p.Op("Div", old, p.Op("ReduceL2", first, p.Ints(3)))
				})
			},
			kept: both("computed from its input, which is not a norm"),
		},
		{
			name: "scaled rotated query",
			change: func(p *patient) {
				p.Query(func(old string) string { return p.Op("Mul", old, p.Float(1.5)) })
			},
			is: hasScale(1.5),
		},
		{
			name: "halves put side by side after they are turned",
			change: func(p *patient) {
				order := p.Ints(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15)
				side := func(old string) string { return p.Node("Gather", []string{old, order}, onnx.IntAttr("axis", 3)) }
				p.Query(side)
				for _, s := range p.Sites {
					p.Into(s.Key.Cache.Concat, 1, side)
				}
			},
			models: llamas,
			is: func(_ int, a rope.Attention) error {
				if a.Encoding.Layout != rope.Interleaved || a.Encoding.RotaryDim() != 16 {
					return fmt.Errorf("%d channels of layout %d are rotated, 16 side by side were expected", a.Encoding.RotaryDim(), a.Encoding.Layout)
				}
				return nil
			},
		},
		{
			name: "halves of the query put side by side after they are turned",
			change: func(p *patient) {
				order := p.Ints(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15)
				p.Query(func(old string) string { return p.Node("Gather", []string{old, order}, onnx.IntAttr("axis", 3)) })
			},
			models: llamas,
			kept:   both("query and key are rotated differently"),
		},
		{
			name: "no rotation in the second layer",
			change: func(p *patient) {
				for _, v := range []string{p.Sites[1].Query.Operand, p.Sites[1].Key.Cached()} {
					r := p.Rotation(v)
					p.After(r.Sum.Outputs[0], func(string) string { return r.Cos.Inputs[0] })
				}
			},
			models: llamas,
			is: func(layer int, a rope.Attention) error {
				if want := []int{16, 0}[layer]; a.Encoding.RotaryDim() != want {
					return fmt.Errorf("%d channels are rotated, %d were expected", a.Encoding.RotaryDim(), want)
				}
				return nil
			},
		},
		{
			name:   "xPos",
			models: []string{"llama__optimum"},
			change: func(p *patient) { p.decaying(0.4, 512, func([]float32) {}) },
			kept:   both("xPos: at position p each pair is also multiplied by γ^(p/512), γ from 0.286 to 0.911 (gamma 0.4)"), farthest: 1000, // beyond, float32 overflows
		},
		{
			name:   "xPos of other numbers",
			models: []string{"gpt_neox__dynamo18"},
			change: func(p *patient) { p.decaying(0.7, 300, func([]float32) {}) },
			kept:   both("γ^(p/300), γ from 0.412 to 0.853 (gamma 0.7)"), farthest: 1000, // beyond, float32 overflows
		},
		{
			name:   "xPos but for one pair",
			models: []string{"llama__dynamo18-eager"},
			change: func(p *patient) { p.decaying(0.4, 512, func(f []float32) { f[2] *= 1.001 }) },
			kept:   both("at position p each pair is also multiplied by a power, between 0.99755"), farthest: 1000, // beyond, float32 overflows
		},
	}
}
