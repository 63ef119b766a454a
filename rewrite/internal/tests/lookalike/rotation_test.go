package lookalike_test

import (
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// angleFactors multiplies the angles that a Cos or Sin reads, one factor per pair.
func (p *patient) angleFactors(n *onnx.Node, change func(f []float32)) {
	p.Into(n, 0, func(angles string) string { return p.Op("Mul", angles, p.PerPair(change)) })
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
	c, s := p.Floats(dims, cos...), p.Floats(dims, sin...)
	cn, sn := p.Tables()
	for _, x := range []struct {
		node  *onnx.Node
		table string
	}{{cn, c}, {sn, s}} {
		p.After(x.node.Outputs[0], func(string) string { return p.Op("Gather", x.table, "position_ids") })
	}
}

// inverseFrequencies are those of the export.
func (p *patient) inverseFrequencies() []float64 {
	cos, _ := p.Tables()
	product := p.Up(cos.Inputs[0], "MatMul")
	v := product.Inputs[0]
	for {
		for _, t := range p.Graph.Initializers {
			if t.Name == v {
				f, err := t.Float64s()
				if err != nil {
					p.TB.Fatal(err)
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
					p.TB.Fatal(err)
				}
				return f
			}
			v = n.Inputs[0]
			break
		}
	}
}

func (p *patient) positions(change func(old string) string) { p.After("position_ids", change) }

func hasFrequencies(times float64) func(int, rope.Attention) error {
	return func(_ int, a rope.Attention) error {
		base := 1.0
		return near("the first frequency", a.Encoding.Frequencies[0], base*times)
	}
}

func rotations() []lookalike {
	return append([]lookalike{
		{name: "nothing changed", change: func(p *patient) {}, is: hasScale(1)},
		{
			name: "sine of one other frequency",
			change: func(p *patient) {
				_, sin := p.Tables()
				p.angleFactors(sin, func(f []float32) { f[2] = 1.01 })
			},
			kept: both("is not rotated by position"),
		},
		{
			name: "sine of one hardly other frequency",
			change: func(p *patient) {
				_, sin := p.Tables()
				p.angleFactors(sin, func(f []float32) { f[len(f)-1] = 1 + 1e-6 })
			},
			kept: both("is not rotated by position"),
		},
		{
			name: "query with one other frequency",
			change: func(p *patient) {
				for _, s := range p.Sites {
					p.OtherTables(s.Query.Operand, func(old string) string {
						return p.Op("Mul", old, p.PerPair(func(f []float32) { f[1] = 1.001 }))
					})
				}
			},
			kept: both("rotates by"),
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
			change: func(p *patient) { p.positions(func(v string) string { return p.Op("Min", v, p.Int(1000)) }) },
			is:     hasFrequencies(1),
		},
		{
			name:   "positions clamped far away",
			change: func(p *patient) { p.positions(func(v string) string { return p.Op("Min", v, p.Int(100_000)) }) },
			is:     hasFrequencies(1),
		},
		{
			name:   "positions modulo",
			change: func(p *patient) { p.positions(func(v string) string { return p.Op("Mod", v, p.Int(4096)) }) },
			is:     hasFrequencies(1),
		},
		{
			name:   "positions scaled by two",
			change: func(p *patient) { p.positions(func(v string) string { return p.Op("Mul", v, p.Int(2)) }) },
			is:     hasFrequencies(2),
		},
		{
			name:   "positions scaled by four",
			change: func(p *patient) { p.positions(func(v string) string { return p.Op("Mul", v, p.Int(4)) }) },
			kept:   both("off by"),
		},
		{
			name:   "positions plus one",
			change: func(p *patient) { p.positions(func(v string) string { return p.Op("Add", v, p.Int(1)) }) },
			is:     hasFrequencies(1),
		},
		{
			name:   "positions by halves, rounded down",
			change: func(p *patient) { p.positions(func(v string) string { return p.Op("Div", v, p.Int(2)) }) },
			is:     hasFrequencies(1),
		},
		{
			name: "positions of the first row for all",
			change: func(p *patient) {
				p.positions(func(v string) string { return p.Op("Slice", v, p.Ints(0), p.Ints(1), p.Ints(0)) })
			},
			models: []string{"llama__dynamo18", "llama__dynamo18-eager"},
			is:     hasFrequencies(1),
		},
		{
			name: "positions plus past",
			change: func(p *patient) {
				p.positions(func(v string) string { return p.Op("Add", v, p.Size("past_key_values.0.key", 2)) })
			},
			is: hasFrequencies(1),
		},
		{
			name:   "the other sense",
			change: func(p *patient) { p.positions(func(v string) string { return p.Op("Neg", v) }) },
			is:     hasFrequencies(-1),
		},
		{
			name: "the query in the other sense",
			change: func(p *patient) {
				for _, s := range p.Sites {
					p.OtherTables(s.Query.Operand, func(old string) string { return p.Op("Neg", old) })
				}
			},
			kept: both("rotates by"),
		},
		{
			name:   "no minus in the turned half",
			change: func(p *patient) { p.Rotation(p.Sites[0].Query.Operand).Neg.OpType = "Identity" },
			kept:   []string{"is not rotated by position", ""},
		},
		{
			name: "no minus in the turned half of the key",
			change: func(p *patient) {
				for _, s := range p.Sites {
					p.Rotation(s.Key.Cached()).Neg.OpType = "Identity"
				}
			},
			kept: both("is not rotated by position"),
		},
		{
			name: "frequencies that follow the number of tokens",
			change: func(p *patient) {
				cos, sin := p.Tables()
				total := p.Op("Add", p.Size("past_key_values.0.key", 2), p.Size("input_ids", 1))
				factor := p.Op("Where", p.Op("Greater", total, p.Int(5000)), p.Float(0.5), p.Float(1))
				for _, n := range []*onnx.Node{cos, sin} {
					p.Into(n, 0, func(angles string) string { return p.Op("Mul", angles, factor) })
				}
			},
			kept: both("with up to 4999 cached tokens pair 0 rotates by 1 per position, with more by 0.5"),
		},
		{
			name: "frequencies that follow the largest position",
			change: func(p *patient) {
				cos, sin := p.Tables()
				largest := p.Node("ReduceMax", []string{"position_ids"}, onnx.IntAttr("keepdims", 0))
				factor := p.Op("Where", p.Op("Greater", largest, p.Int(5000)), p.Float(0.5), p.Float(1))
				for _, n := range []*onnx.Node{cos, sin} {
					p.Into(n, 0, func(angles string) string { return p.Op("Mul", angles, factor) })
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
				cos, sin := p.Tables()
				largest := p.Cast(p.Node("ReduceMax", []string{"position_ids"}, onnx.IntAttr("keepdims", 0)), onnx.Float)
				factor := p.Op("Div", p.Float(5000), p.Op("Max", largest, p.Float(5000)))
				for _, n := range []*onnx.Node{cos, sin} {
					p.Into(n, 0, func(angles string) string { return p.Op("Mul", angles, factor) })
				}
			},
			kept: both("as the largest position of a call pair 0 rotates by 1 per position, with more by 0.99"),
		},
		{
			name: "a gain on the second layer's tables",
			change: func(p *patient) {
				for _, v := range []string{p.Sites[1].Query.Operand, p.Sites[1].Key.Cached()} {
					r := p.Rotation(v)
					for _, n := range []*onnx.Node{r.Cos, r.Sin} {
						p.Into(n, 1, func(old string) string { return p.Op("Mul", old, p.Float(1.25)) })
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
				for _, v := range []string{p.Sites[1].Query.Operand, p.Sites[1].Key.Cached()} {
					p.OtherTables(v, func(old string) string { return p.Op("Mul", old, p.Float(0.5)) })
				}
			},
			is: func(layer int, a rope.Attention) error {
				return near("the first frequency", a.Encoding.Frequencies[0], []float64{1, 0.5}[layer])
			},
		},
	}, turnedChannels()...)
}
