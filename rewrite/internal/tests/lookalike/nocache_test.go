package lookalike_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

var cacheless = []string{"llama__dynamo18-nocache", "llama__ts17", "gpt_neox__ts17"}

// places returns [length, 1] of the tokens' indices.
func (p *patient) places() string {
	return p.Op("Unsqueeze", p.Op("Range", p.Int(0), p.Size("input_ids", 1), p.Int(1)), p.Ints(1))
}

// triangle puts a table of size by size in the place of the comparison that
// makes the export causal.
func (p *patient) triangle(size int, change func(table []byte)) {
	table := make([]byte, size*size)
	for i := range size {
		for j := range i + 1 {
			table[i*size+j] = 1
		}
	}
	change(table)
	t := onnx.NewTensor(p.Fresh("triangle"), onnx.Bool, []int64{int64(size), int64(size)}, table)
	p.Graph.AddInitializer(t)
	le := p.First("LessOrEqual")
	p.After(le.Outputs[0], func(string) string {
		length := p.Op("Unsqueeze", p.Size("input_ids", 1), p.Ints(0))
		rows := p.Op("Slice", t.Name, p.Ints(0), length, p.Ints(0))
		return p.Op("Unsqueeze", p.Op("Slice", rows, p.Ints(0), length, p.Ints(1)), p.Ints(0, 1))
	})
}

func withoutCache() []lookalike {
	const mask, turn = "its mask is not understood", "rotation"
	cases := []lookalike{
		{name: "nothing changed", change: func(p *patient) {}, is: hasScale(1)},
		{name: "window of 8", change: func(p *patient) { p.window(8) }, is: hasWindow(8)},
		{name: "window of 5000", change: func(p *patient) { p.window(5000) }, is: hasWindow(5000)},
		{name: "window of 131000", change: func(p *patient) { p.window(131000) }, is: hasWindow(131000)},
		{name: "chunks of 8", change: func(p *patient) { p.Chunked(8) }, is: ownBias(true)},
		{name: "chunks of 8192", change: func(p *patient) { p.Chunked(8192) }, is: ownBias(true)},
		{name: "chunks of 50000", change: func(p *patient) { p.Chunked(50000) }, is: ownBias(true)},
		{
			name: "window of 10000 and the first keys",
			change: func(p *patient) {
				p.VisibleIf(func() string {
					first := p.Op("Less", p.Op("Unsqueeze", p.Op("Range", p.Int(0), p.Size("input_ids", 1), p.Int(1)), p.Ints(0)), p.Int(4))
					return p.Op("Or", p.Op("Less", p.distance(), p.Int(10000)), first)
				})
			},
			is: ownBias(true),
		},
		{
			name: "bias on far keys",
			change: func(p *patient) {
				p.Scores(func(old string) string {
					return p.Op("Add", old, p.Op("Where", p.Op("Greater", p.distance(), p.Int(90_000)), p.Float(-1), p.Float(0)))
				})
			},
			is: hasBuckets(0, 90_001),
		},
		{
			name: "scores scaled where there are many tokens",
			change: func(p *patient) {
				p.Product(func(old string) string {
					keys := p.Cast(p.Size("input_ids", 1), onnx.Float)
					return p.Op("Mul", old, p.Op("Max", p.Float(1), p.Op("Div", keys, p.Float(4096))))
				})
			},
			kept: both(mask),
		},
		{name: "mask as a table", change: func(p *patient) { p.triangle(600, func([]byte) {}) }, is: hasScale(1)},
		{
			name:   "mask as a table with one other entry",
			change: func(p *patient) { p.triangle(600, func(table []byte) { table[431*600+17] = 0 }) },
			is:     ownBias(true),
		},
		{
			name:   "mask that is read the other way round",
			change: func(p *patient) { p.First("LessOrEqual").OpType = "GreaterOrEqual" },
			is:     ownBias(false),
		},
		{
			name: "other angles from position 5000 on",
			change: func(p *patient) {
				p.Angles(func(old string) string {
					far := p.Op("Greater", p.places(), p.Int(5000))
					return p.Op("Mul", old, p.Op("Where", far, p.Float(1.0001), p.Float(1)))
				})
			},
			kept: both(turn),
		},
		{
			name: "other angles at position 3001",
			change: func(p *patient) {
				p.Angles(func(old string) string {
					there := p.Op("Equal", p.places(), p.Int(3001))
					return p.Op("Mul", old, p.Op("Where", there, p.Float(1.0001), p.Float(1)))
				})
			},
			kept: both(turn),
		},
		{
			name: "other angles with many tokens",
			change: func(p *patient) {
				p.Angles(func(old string) string {
					many := p.Op("Greater", p.Size("input_ids", 1), p.Int(4096))
					return p.Op("Mul", old, p.Op("Where", many, p.Float(0.5), p.Float(1)))
				})
			},
			kept: both("its frequencies change beyond 4096 tokens, which is too long to verify"),
		},
		{
			name:   "angles that the row of the batch changes",
			change: func(p *patient) { p.Angles(p.byBatch) },
			kept:   both("is not the same with"),
		},
		{
			name: "key doubled",
			change: func(p *patient) {
				p.Key(func(old string) string { return p.Op("Mul", old, p.Float(2)) })
			},
			is: hasScale(2),
		},
		{
			name: "value doubled with many tokens",
			change: func(p *patient) {
				p.Value(func(old string) string {
					many := p.Op("Greater", p.Size("input_ids", 1), p.Int(4096))
					return p.Op("Mul", old, p.Op("Where", many, p.Float(2), p.Float(1)))
				})
			},
			kept: both("is changed by"),
		},
		{
			name: "angles that end",
			change: func(p *patient) {
				p.Angles(func(old string) string {
					table := make([]float32, 700)
					for i := range table {
						table[i] = 1
					}
					last := p.Op("Sub", p.Op("Unsqueeze", p.Size("input_ids", 1), p.Ints(0)), p.Int(0))
					return p.Op("Mul", old, p.Op("Slice", p.Floats([]int64{700, 1}, table...), p.Ints(0), last, p.Ints(0)))
				})
			},
			is: rotatesSlowly,
		},
	}
	for i := range cases {
		cases[i].models = append(cacheless[i%len(cacheless):], cacheless[:i%len(cacheless)]...)
	}
	return cases
}

// Keys that a first call gives away may have a norm behind their rotation, and no
// other number that is made of them.
func givingKeys() []lookalike {
	first := cacheless[:1]
	return []lookalike{
		{name: "as they are", models: first, change: func(p *patient) {
			p.GivenKeys(func(old string) string { return p.Op("Identity", old) })
		}, is: hasScale(1)},
		{name: "normed", models: first, change: func(p *patient) {
			p.Query(p.Normed)
			p.GivenKeys(p.Normed)
		}, is: hasScale(1)},
		{name: "times their mean", models: first, change: func(p *patient) {
			p.GivenKeys(func(old string) string { return p.Op("Mul", old, p.Op("ReduceMean", old, p.Ints(3))) })
		}, kept: both("computed from its input, which is not a norm")},
	}
}

// byBatch makes angles one per row of the batch, those of the second row wrong.
func (p *patient) byBatch(old string) string {
	rows := p.Op("Range", p.Int(0), p.Size("input_ids", 0), p.Int(1))
	second := p.Op("Unsqueeze", p.Op("Equal", rows, p.Int(1)), p.Ints(1, 2))
	return p.Op("Mul", old, p.Op("Where", second, p.Float(1.1), p.Float(1)))
}

func rotatesSlowly(_ int, a rope.Attention) error {
	base, ok := a.Encoding.Base()
	if !ok {
		return fmt.Errorf("the frequencies %v are no geometric series", a.Encoding.Frequencies)
	}
	return near("the base", base, 10000)
}
