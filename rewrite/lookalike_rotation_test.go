package rewrite_test

import (
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// angleFactors multiplies the angles that a Cos or Sin reads, one factor per pair.
func (p *patient) angleFactors(n *onnx.Node, change func(f []float32)) {
	p.into(n, 0, func(angles string) string { return p.op("Mul", angles, p.perPair(change)) })
}

// perPair is a vector of ones over the rotated channels, both halves changed alike.
func (p *patient) perPair(change func(f []float32)) string {
	half := 8
	if p.sites[0].ScoresMatMul != nil && len(p.all("LayerNormalization")) > 0 || len(p.all("Erf")) > 0 {
		half = 4 // gpt_neox turns half of its 16 channels
	}
	f := make([]float32, half)
	for i := range f {
		f[i] = 1
	}
	change(f)
	return p.floats([]int64{int64(2 * half)}, append(f, f...)...)
}

// otherTables makes cosines and sines of other angles for one branch's products.
func (p *patient) otherTables(value string, angles func(old string) string) {
	cos, sin := p.tables()
	r := p.rotation(value)
	for _, x := range []struct {
		product *onnx.Node
		maker   *onnx.Node
	}{{r.cos, cos}, {r.sin, sin}} {
		table := p.op("Unsqueeze", p.op(x.maker.OpType, angles(x.maker.Inputs[0])), p.ints(1))
		x.product.Inputs[1] = table
	}
}

// gathered puts tables of cosines and sines, looked up by position, in the
// place of computed ones; change may spoil them.
func (p *patient) gathered(rows int, change func(cos, sin []float32, width int)) {
	var inv []float64
	f := p.inverseFrequencies()
	inv = append(append(inv, f...), f...)
	cos, sin := make([]float32, 0, rows*len(inv)), make([]float32, 0, rows*len(inv))
	for r := range rows {
		for _, w := range inv {
			angle := float64(float32(r) * float32(w))
			cos, sin = append(cos, float32(math.Cos(angle))), append(sin, float32(math.Sin(angle)))
		}
	}
	change(cos, sin, len(inv))
	dims := []int64{int64(rows), int64(len(inv))}
	c, s := p.floats(dims, cos...), p.floats(dims, sin...)
	cn, sn := p.tables()
	for _, x := range []struct {
		node  *onnx.Node
		table string
	}{{cn, c}, {sn, s}} {
		p.after(x.node.Outputs[0], func(string) string { return p.op("Gather", x.table, "position_ids") })
	}
}

// inverseFrequencies are those of the export.
func (p *patient) inverseFrequencies() []float64 {
	cos, _ := p.tables()
	product := p.up(cos.Inputs[0], "MatMul")
	v := product.Inputs[0]
	for {
		for _, t := range p.Graph.Initializers {
			if t.Name == v {
				f, err := t.Float64s()
				if err != nil {
					p.t.Fatal(err)
				}
				return f
			}
		}
		for _, n := range p.Graph.Nodes {
			if n.Outputs[0] != v {
				continue
			}
			if t := ir.ConstantValue(n); t != nil {
				f, err := t.Float64s()
				if err != nil {
					p.t.Fatal(err)
				}
				return f
			}
			v = n.Inputs[0]
			break
		}
	}
}

// normed divides by the root of the mean square over a head's channels.
func (p *patient) normed(v string) string {
	mean := p.op("ReduceMean", p.op("Mul", v, v), p.ints(3))
	return p.op("Div", v, p.op("Sqrt", p.op("Add", mean, p.float(1e-6))))
}

// normedBoth norms query and key behind their rotation.
func (p *patient) normedBoth() {
	p.query(p.normed)
	for _, s := range p.sites {
		p.into(s.Key.Cache.Concat, 1, p.normed)
	}
}

func (p *patient) positions(change func(old string) string) { p.after("position_ids", change) }

// decaying multiplies the rotated query of position p by γ^(p/base) and the key by its
// inverse, as xPos does, γ of each pair (channel + gamma·width)/((1 + gamma)·width).
func (p *patient) decaying(gamma, base float64, change func(f []float32)) {
	for _, s := range p.sites {
		for operand, sign := range map[string]float64{s.Query.Operand: 1, s.Key.Cached(): -1} {
			factor := func() string {
				position := p.op("Div", p.op("Unsqueeze", p.cast("position_ids", onnx.Float), p.ints(2)), p.float(float32(sign*base)))
				pairs := p.perPair(func(f []float32) {
					for i := range f {
						f[i] = float32((float64(i)/float64(len(f)) + gamma) / (1 + gamma))
					}
					change(f)
				})
				return p.op("Unsqueeze", p.op("Pow", pairs, position), p.ints(1))
			}
			r := p.rotation(operand)
			for _, product := range []*onnx.Node{r.cos, r.sin} {
				p.into(product, 1, func(old string) string { return p.op("Mul", old, factor()) })
			}
		}
	}
}

func hasFrequencies(times float64) func(int, rope.Attention) error {
	return func(_ int, a rope.Attention) error {
		base := 1.0
		return near("the first frequency", a.Encoding.Frequencies[0], base*times)
	}
}

func rotations() []lookalike {
	return []lookalike{
		{name: "nothing changed", change: func(p *patient) {}, is: hasScale(1)},
		{
			name: "sine of one other frequency",
			change: func(p *patient) {
				_, sin := p.tables()
				p.angleFactors(sin, func(f []float32) { f[2] = 1.01 })
			},
			kept: both("is not rotated by position"),
		},
		{
			name: "sine of one hardly other frequency",
			change: func(p *patient) {
				_, sin := p.tables()
				p.angleFactors(sin, func(f []float32) { f[len(f)-1] = 1 + 1e-6 })
			},
			kept: both("is not rotated by position"),
		},
		{
			name: "query with one other frequency",
			change: func(p *patient) {
				for _, s := range p.sites {
					p.otherTables(s.Query.Operand, func(old string) string {
						return p.op("Mul", old, p.perPair(func(f []float32) { f[1] = 1.001 }))
					})
				}
			},
			kept: both("turns by"),
		},
		{
			name:     "gathered tables",
			change:   func(p *patient) { p.gathered(3000, func(_, _ []float32, _ int) {}) },
			farthest: 2999,
		},
		{
			name:   "gathered tables with one wrong entry",
			change: func(p *patient) { p.gathered(600, func(cos, _ []float32, w int) { cos[301*w+2] += 1e-3 }) },
			kept:   both("at position 301"), farthest: 599,
		},
		{
			name:   "long gathered tables with one wrong entry",
			change: func(p *patient) { p.gathered(6000, func(_, sin []float32, w int) { sin[5777*w+3] += 1e-3 }) },
			kept:   both("at position 5777"), farthest: 5999,
		},
		{
			name:   "positions clamped",
			change: func(p *patient) { p.positions(func(v string) string { return p.op("Min", v, p.int(1000)) }) },
			kept:   both("is not rotated by position"),
		},
		{
			name:   "positions clamped far away",
			change: func(p *patient) { p.positions(func(v string) string { return p.op("Min", v, p.int(100_000)) }) },
			kept:   both("is not rotated by position"),
		},
		{
			name:   "positions modulo",
			change: func(p *patient) { p.positions(func(v string) string { return p.op("Mod", v, p.int(4096)) }) },
			kept:   both("is not rotated by position"),
		},
		{
			name:   "positions scaled by two",
			change: func(p *patient) { p.positions(func(v string) string { return p.op("Mul", v, p.int(2)) }) },
			is:     hasFrequencies(2),
		},
		{
			name:   "positions scaled by four",
			change: func(p *patient) { p.positions(func(v string) string { return p.op("Mul", v, p.int(4)) }) },
			kept:   both("off by"),
		},
		{
			name:   "positions plus one",
			change: func(p *patient) { p.positions(func(v string) string { return p.op("Add", v, p.int(1)) }) },
			kept:   both("is not rotated by position"),
		},
		{
			name:   "positions by halves, rounded down",
			change: func(p *patient) { p.positions(func(v string) string { return p.op("Div", v, p.int(2)) }) },
			kept:   both("is not rotated by position"),
		},
		{
			name: "positions of the first row for all",
			change: func(p *patient) {
				p.positions(func(v string) string { return p.op("Slice", v, p.ints(0), p.ints(1), p.ints(0)) })
			},
			models: []string{"llama__dynamo18", "llama__dynamo18-eager"},
			kept:   both("off by"),
		},
		{
			name: "positions plus past",
			change: func(p *patient) {
				p.positions(func(v string) string { return p.op("Add", v, p.size("past_key_values.0.key", 2)) })
			},
			kept: both("with 1 cached tokens"),
		},
		{
			name:   "the other sense",
			change: func(p *patient) { p.positions(func(v string) string { return p.op("Neg", v) }) },
			is:     hasFrequencies(-1),
		},
		{
			name: "the query in the other sense",
			change: func(p *patient) {
				for _, s := range p.sites {
					p.otherTables(s.Query.Operand, func(old string) string { return p.op("Neg", old) })
				}
			},
			kept: both("turns by"),
		},
		{
			name:   "no minus in the turned half",
			change: func(p *patient) { p.rotation(p.sites[0].Query.Operand).neg.OpType = "Identity" },
			kept:   []string{"is not rotated by position", ""},
		},
		{
			name: "no minus in the turned half of the key",
			change: func(p *patient) {
				for _, s := range p.sites {
					p.rotation(s.Key.Cached()).neg.OpType = "Identity"
				}
			},
			kept: both("is not rotated by position"),
		},
		{
			name: "frequencies that follow the number of tokens",
			change: func(p *patient) {
				cos, sin := p.tables()
				total := p.op("Add", p.size("past_key_values.0.key", 2), p.size("input_ids", 1))
				factor := p.op("Where", p.op("Greater", total, p.int(5000)), p.float(0.5), p.float(1))
				for _, n := range []*onnx.Node{cos, sin} {
					p.into(n, 0, func(angles string) string { return p.op("Mul", angles, factor) })
				}
			},
			kept: both("with up to 4999 cached tokens pair 0 turns by 1 per position, with more by 0.5"),
		},
		{
			name: "frequencies that follow the largest position",
			change: func(p *patient) {
				cos, sin := p.tables()
				largest := p.node("ReduceMax", []string{"position_ids"}, onnx.IntAttr("keepdims", 0))
				factor := p.op("Where", p.op("Greater", largest, p.int(5000)), p.float(0.5), p.float(1))
				for _, n := range []*onnx.Node{cos, sin} {
					p.into(n, 0, func(angles string) string { return p.op("Mul", angles, factor) })
				}
			},
			is: func(_ int, a rope.Attention) error {
				if l := a.Encoding.LengthDependent; l.Trained != 5001 || len(l.Long) != 8 {
					return fmt.Errorf("the frequencies depend on the length by %+v; two lists around 5001 tokens were expected", l)
				}
				return nil
			},
		},
		{
			name: "frequencies that fall with the largest position",
			change: func(p *patient) {
				cos, sin := p.tables()
				largest := p.cast(p.node("ReduceMax", []string{"position_ids"}, onnx.IntAttr("keepdims", 0)), onnx.Float)
				factor := p.op("Div", p.float(5000), p.op("Max", largest, p.float(5000)))
				for _, n := range []*onnx.Node{cos, sin} {
					p.into(n, 0, func(angles string) string { return p.op("Mul", angles, factor) })
				}
			},
			kept: both("as the largest position of a call pair 0 turns by 1 per position, with more by 0.99"),
		},
		{
			name: "a gain on the second layer's tables",
			change: func(p *patient) {
				for _, v := range []string{p.sites[1].Query.Operand, p.sites[1].Key.Cached()} {
					r := p.rotation(v)
					for _, n := range []*onnx.Node{r.cos, r.sin} {
						p.into(n, 1, func(old string) string { return p.op("Mul", old, p.float(1.25)) })
					}
				}
			},
			is: func(layer int, a rope.Attention) error {
				want := []float64{1, 1.25}[layer]
				return near("the gain", a.Encoding.EffectiveGain(), want)
			},
		},
		{
			name: "other frequencies in the second layer",
			change: func(p *patient) {
				for _, v := range []string{p.sites[1].Query.Operand, p.sites[1].Key.Cached()} {
					p.otherTables(v, func(old string) string { return p.op("Mul", old, p.float(0.5)) })
				}
			},
			is: func(layer int, a rope.Attention) error {
				return near("the first frequency", a.Encoding.Frequencies[0], []float64{1, 0.5}[layer])
			},
		},
		{
			name: "channels of the query scaled before the rotation",
			change: func(p *patient) {
				v := make([]float32, 16)
				for i := range v {
					v[i] = 1 + float32(i)/8
				}
				p.after(p.sites[0].Query.Boundary, func(old string) string { return p.op("Mul", old, p.floats([]int64{16}, v...)) })
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
				p.query(func(old string) string { return p.op("Mul", old, p.floats([]int64{16}, v...)) })
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
				p.query(func(old string) string {
					return p.op("Mul", old, p.floats([]int64{1, 4, 1, 1}, 1, 1.5, 1, 1))
				})
			},
			is: hasScale(1),
		},
		{
			name: "bias on the rotated query",
			change: func(p *patient) {
				v := make([]float32, 16)
				v[3] = 0.5
				p.query(func(old string) string { return p.op("Add", old, p.floats([]int64{16}, v...)) })
			},
			kept: both("its query is turned by positions at"),
		},
		{
			name: "tokens of the query scaled by their position",
			change: func(p *patient) {
				f := p.op("Add", p.op("Div", p.cast("position_ids", onnx.Float), p.float(1e4)), p.float(1))
				f = p.op("Unsqueeze", f, p.ints(1, 3))
				p.query(func(old string) string { return p.op("Mul", old, f) })
			},
			is: hasScale(1),
		},
		{
			name: "half of the query's channels scaled by their position",
			change: func(p *patient) {
				f := p.op("Add", p.op("Div", p.cast("position_ids", onnx.Float), p.float(1e4)), p.float(1))
				f = p.op("Unsqueeze", f, p.ints(1, 3))
				p.query(func(old string) string {
					half := func(from, to int64) string { return p.op("Slice", old, p.ints(from), p.ints(to), p.ints(3)) }
					return p.node("Concat", []string{p.op("Mul", half(0, 8), f), half(8, 16)}, onnx.IntAttr("axis", 3))
				})
			},
			kept: both("its query is not rotated by position"),
		},
		{name: "the query normed after the rotation", change: func(p *patient) { p.query(p.normed) }, is: hasScale(1)},
		{name: "query and key normed after the rotation", change: (*patient).normedBoth, is: hasScale(1)},
		{
			name: "the query normed after the rotation, with a weight for each channel",
			change: func(p *patient) {
				v := make([]float32, 16)
				for i := range v {
					v[i] = 1 + float32(i)/8
				}
				p.query(func(old string) string { return p.op("Mul", p.normed(old), p.floats([]int64{16}, v...)) })
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
				p.query(func(old string) string {
					mean := p.op("ReduceMean", p.op("Mul", old, old), p.ints(1))
					return p.op("Div", old, p.op("Sqrt", p.op("Add", mean, p.float(1e-6))))
				})
			},
			kept: both("its query is turned by positions at"),
		},
		{
			name: "the query divided by its largest channel after the rotation",
			change: func(p *patient) {
				p.query(func(old string) string {
					return p.op("Div", old, p.op("ReduceMax", p.op("Abs", old), p.ints(3)))
				})
			},
			kept: both("is made of what is turned, and no norm"),
		},
		{
			name: "the query divided by the length of its first channels after the rotation",
			change: func(p *patient) {
				p.query(func(old string) string {
					first := p.op("Slice", old, p.ints(0), p.ints(4), p.ints(3))
					return p.op("Div", old, p.op("ReduceL2", first, p.ints(3)))
				})
			},
			kept: both("is made of what is turned, and no norm"),
		},
		{
			name: "scaled rotated query",
			change: func(p *patient) {
				p.query(func(old string) string { return p.op("Mul", old, p.float(1.5)) })
			},
			is: hasScale(1.5),
		},
		{
			name: "halves put side by side after they are turned",
			change: func(p *patient) {
				order := p.ints(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15)
				side := func(old string) string { return p.node("Gather", []string{old, order}, onnx.IntAttr("axis", 3)) }
				p.query(side)
				for _, s := range p.sites {
					p.into(s.Key.Cache.Concat, 1, side)
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
				order := p.ints(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15)
				p.query(func(old string) string { return p.node("Gather", []string{old, order}, onnx.IntAttr("axis", 3)) })
			},
			models: llamas,
			kept:   both("query and key are rotated differently"),
		},
		{
			name: "no rotation in the second layer",
			change: func(p *patient) {
				for _, v := range []string{p.sites[1].Query.Operand, p.sites[1].Key.Cached()} {
					r := p.rotation(v)
					p.after(r.sum.Outputs[0], func(string) string { return r.cos.Inputs[0] })
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
			kept:   both("xPos: with the position p each pair is also multiplied by γ^(p/512), γ from 0.286 to 0.911 (gamma 0.4)"), farthest: 1000, // beyond, float32 overflows
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
			kept:   both("with the position p each pair is also multiplied by a power of it, between 0.99755"), farthest: 1000, // beyond, float32 overflows
		},
	}
}
