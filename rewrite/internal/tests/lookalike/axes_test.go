package lookalike_test

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// severalPositions gives each token as many positions, and returns them in float32, from
// the innermost dimension on axes, tokens and rows of the batch: [batch, length, axes].
func (p *patient) severalPositions(axes int64) string {
	p.positions(func(v string) string {
		return p.Node("Gather", []string{v, p.Int(0)}, onnx.IntAttr("axis", 0)) // for the mask
	})
	for _, v := range p.Graph.Inputs {
		if v.Name == "position_ids" {
			v.Shape = append([]onnx.Dim{{Value: axes}}, v.Shape...)
		}
	}
	return p.Node("Transpose", []string{p.Cast("position_ids", onnx.Float)}, onnx.IntsAttr("perm", 1, 2, 0))
}

// anglesOf are those of all channels where each pair turns by its axis.
func (p *patient) anglesOf(positions string, axes ...int64) string {
	return p.anglesAt(p.Node("Gather", []string{positions, p.Ints(axes...)}, onnx.IntAttr("axis", 2)))
}

// anglesAt are those of all channels where each pair stands at a place [batch, length, pairs].
func (p *patient) anglesAt(places string) string {
	var inv []float32
	for _, w := range p.inverseFrequencies() {
		inv = append(inv, float32(w))
	}
	half := p.Op("Mul", places, p.Floats([]int64{int64(len(inv))}, inv...))
	return p.Node("Concat", []string{half, half}, onnx.IntAttr("axis", 2))
}

// turnedBy makes cosines and sines of other angles.
func (p *patient) turnedBy(cosines, sines string) {
	cos, sin := p.Tables()
	cos.Inputs[0], sin.Inputs[0] = cosines, sines
}

func hasAxes(axes ...int) func(int, rope.Attention) error {
	return func(_ int, a rope.Attention) error {
		if !slices.Equal(a.Encoding.Axes, axes) {
			return fmt.Errorf("pairs turn by the axes %v, %v were expected", a.Encoding.Axes, axes)
		}
		return nil
	}
}

// axesOfPositions are models whose tokens have several positions, and what looks like them.
func axesOfPositions() []lookalike {
	by := func(axes ...int64) func(*patient) {
		return func(p *patient) {
			angles := p.anglesOf(p.severalPositions(slices.Max(axes)+1), axes...)
			p.turnedBy(angles, angles)
		}
	}
	made := func(change func(p *patient, axis func(int64) string) string) func(*patient) {
		return func(p *patient) {
			all := p.severalPositions(3)
			angles := p.anglesAt(change(p, func(i int64) string { return p.Node("Gather", []string{all, p.Ints(i)}, onnx.IntAttr("axis", 2)) }))
			p.turnedBy(angles, angles)
		}
	}
	sections, woven := []int64{0, 0, 1, 1, 1, 2, 2, 2}, []int64{0, 1, 2, 0, 1, 2, 0, 0}
	return []lookalike{
		{name: "in sections, as Qwen2-VL has them", models: llamas, change: by(sections...), is: hasAxes(0, 0, 1, 1, 1, 2, 2, 2)},
		{name: "interleaved, as Qwen3-VL has them", models: llamas, change: by(woven...), is: hasAxes(0, 1, 2, 0, 1, 2, 0, 0)},
		{name: "one of them twice, another never", models: llamas, change: by(0, 0, 0, 0, 0, 2, 2, 2), is: hasAxes(0, 0, 0, 0, 0, 2, 2, 2)},
		{name: "the first of four for the mask alone", models: llamas, change: by(1, 1, 2, 2, 2, 3, 3, 3), is: hasAxes(1, 1, 2, 2, 2, 3, 3, 3)},
		{name: "only the first", models: llamas, change: func(p *patient) { p.severalPositions(3) }, is: hasAxes(0, 0, 0, 0, 0, 0, 0, 0)},
		{
			name: "other sections in the query than in the key", models: llamas,
			change: func(p *patient) {
				all := p.severalPositions(3)
				angles := p.anglesOf(all, sections...)
				for _, s := range p.Sites {
					p.OtherTables(s.Query.Operand, func(string) string { return p.anglesOf(all, 2, 2, 1, 1, 1, 0, 0, 0) })
				}
				p.turnedBy(angles, angles)
			},
			kept: both("pair 0 rotates by position 3 of a token's in the query and by position 1 in the key"),
		},
		{
			name: "in the key, and the index in the query", models: llamas,
			change: func(p *patient) {
				angles := p.anglesOf(p.severalPositions(3), sections...)
				total := p.Size("attention_mask", 1)
				places := p.Op("Range", p.Op("Sub", total, p.Size("input_ids", 1)), total, p.Int(1))
				own := p.anglesAt(p.Op("Unsqueeze", p.Cast(places, onnx.Float), p.Ints(0, 2)))
				for _, s := range p.Sites {
					p.OtherTables(s.Query.Operand, func(string) string { return own })
				}
				p.turnedBy(angles, angles)
			},
			kept: both("one of query and key is rotated by several positions of each token, the other by one"),
		},
		{
			name: "cosines of one and sines of another", models: llamas,
			change: func(p *patient) {
				all := p.severalPositions(3)
				p.turnedBy(p.anglesOf(all, sections...), p.anglesOf(all, woven...))
			},
			kept: both("does not rotate as expected"),
		},
		{
			name: "their mean", models: llamas,
			change: made(func(p *patient, axis func(int64) string) string {
				sum := p.Op("Add", p.Op("Add", axis(0), axis(1)), axis(2))
				return p.Op("Div", sum, p.Float(3))
			}),
			kept: both("does not rotate as expected"),
		},
		{
			name: "the smallest", models: llamas,
			change: made(func(p *patient, axis func(int64) string) string { return p.Op("Min", axis(0), axis(1), axis(2)) }),
			kept:   both("rotates by 0 of a token's 3 positions"),
		},
		{
			name: "the first, moved where all differ", models: llamas,
			change: made(func(p *patient, axis func(int64) string) string {
				apart := p.Op("Mul", p.Op("Sub", axis(0), axis(1)), p.Op("Mul", p.Op("Sub", axis(1), axis(2)), p.Op("Min", axis(1), axis(2))))
				return p.Op("Add", axis(0), p.Op("Min", p.Op("Abs", apart), p.Float(1)))
			}),
			kept: both("with positions of a token that differ"),
		},
	}
}

// factorsBehind are models that multiply each channel behind the rotation, and what looks
// like them.
func factorsBehind() []lookalike {
	weights := func(change func(c int, w *float32)) []float32 {
		v := make([]float32, 16)
		for c := range v {
			v[c] = 1 + float32(c)/8
			change(c, &v[c])
		}
		return v
	}
	behind := func(change func(c int, w *float32), normed bool) func(*patient) {
		return func(p *patient) {
			weighted := func(times float32) func(string) string {
				v := weights(change)
				for c := range v {
					v[c] *= times
				}
				return func(old string) string {
					if normed {
						old = p.Normed(old)
					}
					return p.Op("Mul", old, p.Floats([]int64{16}, v...))
				}
			}
			p.Query(weighted(1))
			for _, s := range p.Sites {
				p.Into(s.Key.Cache.Concat, 1, weighted(0.5))
			}
		}
	}
	has := func(query, key float64) func(int, rope.Attention) error {
		return func(_ int, a rope.Attention) error {
			if len(a.QueryFactors) != 16 || len(a.KeyFactors) != 16 {
				return fmt.Errorf("the factors are %v and %v", a.QueryFactors, a.KeyFactors)
			}
			if err := near("a query's factor", a.QueryFactors[8], query); err != nil {
				return err
			}
			return near("a key's factor", a.KeyFactors[8], key)
		}
	}
	without := func(_ int, a rope.Attention) error {
		if a.QueryFactors != nil || a.KeyFactors != nil {
			return fmt.Errorf("the factors are %v and %v, none were expected", a.QueryFactors, a.KeyFactors)
		}
		return nil
	}
	same := func(int, *float32) {}
	fusedNorm := func(attributes ...*onnx.Attribute) func(*patient) {
		return func(p *patient) {
			norm := func(old string) string {
				return p.Node("SimplifiedLayerNormalization", []string{old, p.Floats([]int64{16}, weights(same)...)}, attributes...)
			}
			p.Query(norm)
			for _, s := range p.Sites {
				p.Into(s.Key.Cache.Concat, 1, norm)
			}
		}
	}
	cached := []string{"llama__dynamo18", "llama__optimum", "gpt_neox__dynamo18", "llama__dynamo18-eager"}
	return []lookalike{
		{name: "of query and key", models: cached, change: behind(same, false), is: has(2, 1)},
		{name: "of a norm, as HunYuan has them", models: cached, change: behind(same, true), is: has(2, 1)},
		{name: "of a norm that is one node", models: cached, change: fusedNorm(), is: has(2, 2)},
		{name: "of a norm of all heads' rows, as ONNX Runtime's builder has them", models: llamas[:2], change: func(p *patient) {
			norm := func(heads int64) func(string) string {
				return func(old string) string {
					rows := p.Op("Reshape", p.Node("Transpose", []string{old}, onnx.IntsAttr("perm", 0, 2, 1, 3)), p.Ints(0, -1, 16))
					rows = p.Op("SimplifiedLayerNormalization", rows, p.Floats([]int64{16}, weights(same)...))
					return p.Node("Transpose", []string{p.Op("Reshape", rows, p.Ints(0, -1, heads, 16))}, onnx.IntsAttr("perm", 0, 2, 1, 3))
				}
			}
			p.Query(norm(4))
			for _, s := range p.Sites {
				p.Into(s.Key.Cache.Concat, 1, norm(2))
			}
		}, is: has(2, 2)},
		{
			name: "of a norm that is one node, over all tokens", models: cached,
			change: fusedNorm(onnx.IntAttr("axis", 2)),
			kept:   both("a later step is not linear"),
		},
		{name: "some of them negative", models: cached, change: behind(func(c int, w *float32) {
			if c%3 == 2 {
				*w = -*w
			}
		}, true), is: has(-2, -1)},
		{name: "one of them 0", models: llamas, change: behind(func(c int, w *float32) {
			if c == 3 {
				*w = 0
			}
		}, true), kept: both("not a rotation of pairs")},
		{
			name: "before the rotation", models: llamas,
			change: func(p *patient) {
				for _, s := range p.Sites {
					for _, v := range []string{s.Query.Operand, s.Key.Cached()} {
						r := p.Rotation(v)
						p.After(r.Cos.Inputs[0], func(old string) string { return p.Op("Mul", old, p.Floats([]int64{16}, weights(same)...)) })
					}
				}
			},
			is: without,
		},
		{
			name: "of one head", models: llamas,
			change: func(p *patient) {
				v := make([]float32, 4*16)
				for i := range v {
					v[i] = 1
				}
				copy(v[16:], weights(same))
				p.Query(func(old string) string { return p.Op("Mul", old, p.Floats([]int64{4, 1, 16}, v...)) })
			},
			kept: both("heads 0 and 1 are rotated differently"),
		},
		{
			name: "of cached keys", models: llamas,
			change: func(p *patient) {
				p.Key(func(old string) string { return p.Op("Mul", old, p.Floats([]int64{16, 1}, weights(same)...)) })
			},
			kept: both("its key"),
		},
		{
			name: "of what is multiplied by cosines", models: llamas,
			change: func(p *patient) {
				for _, s := range p.Sites {
					r := p.Rotation(s.Query.Operand)
					p.After(r.Cos.Outputs[0], func(old string) string { return p.Op("Mul", old, p.Floats([]int64{16}, weights(same)...)) })
				}
			},
			kept: both("its query is not rotated by position"),
		},
	}
}
