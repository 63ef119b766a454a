package lookalike_test

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/x448/float16"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// halves is a constant of float16 numbers.
func (p *patient) halves(dims []int64, v ...float32) string {
	var raw []byte
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint16(raw, float16.Fromfloat32(x).Bits())
	}
	t := onnx.NewTensor(p.Fresh("halves"), onnx.Float16, dims, raw)
	p.Graph.AddInitializer(t)
	return t.Name
}

func (p *patient) half(v float32) string { return p.halves([]int64{}, v) }

// turning gives the rotation other frequencies, as float16 or float32 numbers.
func (p *patient) turning(frequencies []float64, kind onnx.DataType) {
	cos, _ := p.Tables()
	product := p.Up(cos.Inputs[0], "MatMul")
	values := make([]float32, len(frequencies))
	for i, w := range frequencies {
		values[i] = float32(w)
	}
	dims := []int64{1, int64(len(values)), 1}
	if kind == onnx.Float16 {
		product.Inputs[0] = p.Cast(p.halves(dims, values...), onnx.Float)
	} else {
		product.Inputs[0] = p.Floats(dims, values...)
	}
}

// series returns base^(−i/pairs).
func series(base float64, pairs int) []float64 {
	out := make([]float64, pairs)
	for i := range out {
		out[i] = math.Pow(base, -float64(i)/float64(pairs))
	}
	return out
}

// shortTables puts float16 tables in the place of computed cosines and sines.
func (p *patient) shortTables(rows int, frequencies []float64, change func(cos, sin []float32)) {
	var cos, sin []float32
	for r := range rows {
		for range 2 {
			for _, w := range frequencies {
				s, c := math.Sincos(float64(float32(r) * float32(w)))
				cos, sin = append(cos, float32(c)), append(sin, float32(s))
			}
		}
	}
	change(cos, sin)
	dims := []int64{int64(rows), int64(2 * len(frequencies))}
	c, s := p.halves(dims, cos...), p.halves(dims, sin...)
	cosine, sine := p.Tables()
	for _, x := range []struct {
		node  *onnx.Node
		table string
	}{{cosine, c}, {sine, s}} {
		p.After(p.reader(x.node.Outputs[0], "Cast").Outputs[0], func(string) string { return p.Op("Gather", x.table, "position_ids") })
	}
}

// coarseAngles multiplies positions and frequencies in float16.
func (p *patient) coarseAngles() {
	cos, _ := p.Tables()
	product := p.Up(cos.Inputs[0], "MatMul")
	for i, v := range product.Inputs {
		product.Inputs[i] = p.Cast(v, onnx.Float16)
	}
	p.After(product.Outputs[0], func(old string) string { return p.Cast(old, onnx.Float) })
}

// reader returns the one node of an op that reads a value.
func (p *patient) reader(value, op string) *onnx.Node {
	for _, n := range p.All(op) {
		if n.Inputs[0] == value {
			return n
		}
	}
	p.TB.Fatalf("no %s reads %q", op, value)
	return nil
}

func hasBase(want float64, kept rope.Precision) func(int, rope.Attention) error {
	return func(_ int, a rope.Attention) error {
		base, ok := a.Encoding.Base()
		switch {
		case a.Encoding.Precision != kept:
			return fmt.Errorf("the frequencies %v are said to be of type %d, %d was expected", a.Encoding.Frequencies, a.Encoding.Precision, kept)
		case want == 0 && !ok:
			return nil
		case want == 0:
			return fmt.Errorf("the base is %g, none was expected", base)
		case !ok:
			return fmt.Errorf("the frequencies %v are no geometric series", a.Encoding.Frequencies)
		}
		return near("the base", base, want)
	}
}

func isNotBase(unwanted float64) func(int, rope.Attention) error {
	return func(_ int, a rope.Attention) error {
		if base, ok := a.Encoding.Base(); ok && base == unwanted {
			return fmt.Errorf("the base is %g", base)
		}
		return nil
	}
}

func halfPrecision() []lookalike {
	const mask, turn = "its mask is not understood", "is not rotated by position"
	uneven := series(10000, 8)
	for i := 4; i < 8; i++ {
		uneven[i] /= 3.7
	}
	same := func(_, _ []float32) {}
	cases := []lookalike{
		{name: "nothing changed", change: func(p *patient) {}, is: hasBase(10000, rope.Float16)},
		{name: "base 10007", change: func(p *patient) { p.turning(series(10007, 8), onnx.Float16) }, is: isNotBase(10000)},
		{name: "base 500000", change: func(p *patient) { p.turning(series(500000, 8), onnx.Float16) }, is: hasBase(500000, rope.Float16)},
		{name: "frequencies in float32", change: func(p *patient) { p.turning(series(10000, 8), onnx.Float) }, is: hasBase(10000, rope.Float32)},
		{name: "base 10007 in float32", change: func(p *patient) { p.turning(series(10007, 8), onnx.Float) }, is: hasBase(10007, rope.Float32)},
		{name: "scaled frequencies", change: func(p *patient) { p.turning(uneven, onnx.Float16) }, is: hasBase(0, rope.Float16)},
		{
			name: "tables", change: func(p *patient) { p.shortTables(2048, series(10000, 8), same) },
			is: hasBase(10000, rope.Float32), farthest: 2000,
		},
		{
			name: "tables of base 10007", change: func(p *patient) { p.shortTables(2048, series(10007, 8), same) },
			is: isNotBase(10000), farthest: 2000,
		},
		{
			name: "tables of scaled frequencies", change: func(p *patient) { p.shortTables(2048, uneven, same) },
			is: hasBase(0, rope.Float32), farthest: 2000,
		},
		{
			name: "tables with one other entry",
			change: func(p *patient) {
				p.shortTables(2048, series(10000, 8), func(cos, _ []float32) { cos[1503*16+3] += 0.01 })
			},
			kept: both(turn), farthest: 2000,
		},
		{
			name: "other angles from position 5000 on",
			change: func(p *patient) {
				p.Angles(func(old string) string {
					far := p.Op("Greater", p.Op("Unsqueeze", "position_ids", p.Ints(2)), p.Int(5000))
					return p.Op("Mul", old, p.Op("Where", far, p.Float(1.0001), p.Float(1)))
				})
			},
			kept: both(turn),
		},
		{
			name: "sine of one hardly other frequency",
			change: func(p *patient) {
				_, sin := p.Tables()
				p.angleFactors(sin, func(f []float32) { f[1] = 1 + 1e-6 })
			},
			kept: both(turn),
		},
		{name: "angles in float16", change: func(p *patient) { p.coarseAngles() }, is: hasBase(10000, rope.Float16), farthest: 40},
		{
			name: "angles in float16, the query by no power of two",
			change: func(p *patient) {
				p.coarseAngles()
				p.Query(func(old string) string { return p.Op("Mul", old, p.half(0.38)) })
			},
			is: hasBase(10000, rope.Float16), farthest: 40,
		},
		{
			name: "angles in float16, one frequency other in the sine",
			change: func(p *patient) {
				p.coarseAngles()
				_, sin := p.Tables()
				p.angleFactors(sin, func(f []float32) { f[2] = 1.02 })
			},
			kept: both(turn),
		},
		{name: "window of 5000", change: func(p *patient) { p.window(5000) }, is: hasWindow(5000)},
		{name: "chunks of 8192", change: func(p *patient) { p.Chunked(8192) }, is: ownBias(true)},
		{
			name: "bias per key",
			change: func(p *patient) {
				p.Scores(func(old string) string {
					return p.Op("Add", old, p.Op("Mul", p.Cast(p.distance(), onnx.Float16), p.half(-0.01)))
				})
			},
			is: hasSlopes(0.010002136), // −0.01 as float16
		},
		{
			name: "softcap before the mask",
			change: func(p *patient) {
				p.Product(func(old string) string { return p.Op("Mul", p.Op("Tanh", p.Op("Div", old, p.half(50))), p.half(50)) })
			},
			is: hasSoftcap(50),
		},
		{
			name:   "query one and a half times as large",
			change: func(p *patient) { p.Query(func(old string) string { return p.Op("Mul", old, p.half(1.5)) }) },
			is:     hasScale(1.5),
		},
	}
	for i := range cases {
		cases[i].models = []string{"llama__dynamo18-fp16"}
	}
	return cases
}
