package rewrite_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

var cacheless = []string{"llama__dynamo18-nocache", "llama__ts17", "gpt_neox__ts17"}

// places returns [length, 1] of the tokens' indices.
func (p *patient) places() string {
	return p.op("Unsqueeze", p.op("Range", p.int(0), p.size("input_ids", 1), p.int(1)), p.ints(1))
}

// angles changes what the cosines and sines are of, [1, length, width].
func (p *patient) angles(change func(old string) string) {
	cos, _ := p.tables()
	p.after(cos.Inputs[0], change)
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
	t := onnx.NewTensor(p.fresh("triangle"), onnx.Bool, []int64{int64(size), int64(size)}, table)
	p.Graph.AddInitializer(t)
	le := p.first("LessOrEqual")
	p.after(le.Outputs[0], func(string) string {
		length := p.op("Unsqueeze", p.size("input_ids", 1), p.ints(0))
		rows := p.op("Slice", t.Name, p.ints(0), length, p.ints(0))
		return p.op("Unsqueeze", p.op("Slice", rows, p.ints(0), length, p.ints(1)), p.ints(0, 1))
	})
}

func withoutCache() []lookalike {
	const mask, turn = "its mask is not understood", "rotation"
	cases := []lookalike{
		{name: "nothing changed", change: func(p *patient) {}, is: hasScale(1)},
		{name: "window of 8", change: func(p *patient) { p.window(8) }, is: hasWindow(8)},
		{name: "window of 5000", change: func(p *patient) { p.window(5000) }, is: hasWindow(5000)},
		{name: "window of 131000", change: func(p *patient) { p.window(131000) }, is: hasWindow(131000)},
		{name: "chunks of 8", change: func(p *patient) { p.chunked(8) }, is: ownBias(true)},
		{name: "chunks of 8192", change: func(p *patient) { p.chunked(8192) }, is: ownBias(true)},
		{name: "chunks of 50000", change: func(p *patient) { p.chunked(50000) }, is: ownBias(true)},
		{
			name: "window of 10000 and the first keys",
			change: func(p *patient) {
				p.visibleIf(func() string {
					first := p.op("Less", p.op("Unsqueeze", p.op("Range", p.int(0), p.size("input_ids", 1), p.int(1)), p.ints(0)), p.int(4))
					return p.op("Or", p.op("Less", p.distance(), p.int(10000)), first)
				})
			},
			is: ownBias(true),
		},
		{
			name: "bias on far keys",
			change: func(p *patient) {
				p.scores(func(old string) string {
					return p.op("Add", old, p.op("Where", p.op("Greater", p.distance(), p.int(90_000)), p.float(-1), p.float(0)))
				})
			},
			is: ownBias(true),
		},
		{
			name: "scores scaled where there are many tokens",
			change: func(p *patient) {
				p.product(func(old string) string {
					keys := p.cast(p.size("input_ids", 1), onnx.Float)
					return p.op("Mul", old, p.op("Max", p.float(1), p.op("Div", keys, p.float(4096))))
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
			change: func(p *patient) { p.first("LessOrEqual").OpType = "GreaterOrEqual" },
			is:     ownBias(false),
		},
		{
			name: "other angles from position 5000 on",
			change: func(p *patient) {
				p.angles(func(old string) string {
					far := p.op("Greater", p.places(), p.int(5000))
					return p.op("Mul", old, p.op("Where", far, p.float(1.0001), p.float(1)))
				})
			},
			kept: both(turn),
		},
		{
			name: "other angles at position 3001",
			change: func(p *patient) {
				p.angles(func(old string) string {
					there := p.op("Equal", p.places(), p.int(3001))
					return p.op("Mul", old, p.op("Where", there, p.float(1.0001), p.float(1)))
				})
			},
			kept: both(turn),
		},
		{
			name: "other angles with many tokens",
			change: func(p *patient) {
				p.angles(func(old string) string {
					many := p.op("Greater", p.size("input_ids", 1), p.int(4096))
					return p.op("Mul", old, p.op("Where", many, p.float(0.5), p.float(1)))
				})
			},
			kept: both("its frequencies change with more than 4096 tokens, which is more than a proof can hold"),
		},
		{
			name:   "angles that the row of the batch changes",
			change: func(p *patient) { p.angles(p.byBatch) },
			kept:   both("is not the same with"),
		},
		{
			name: "key doubled",
			change: func(p *patient) {
				p.key(func(old string) string { return p.op("Mul", old, p.float(2)) })
			},
			is: hasScale(2),
		},
		{
			name: "value doubled with many tokens",
			change: func(p *patient) {
				p.value(func(old string) string {
					many := p.op("Greater", p.size("input_ids", 1), p.int(4096))
					return p.op("Mul", old, p.op("Where", many, p.float(2), p.float(1)))
				})
			},
			kept: both("is changed by"),
		},
		{
			name: "angles that end",
			change: func(p *patient) {
				p.angles(func(old string) string {
					table := make([]float32, 700)
					for i := range table {
						table[i] = 1
					}
					last := p.op("Sub", p.op("Unsqueeze", p.size("input_ids", 1), p.ints(0)), p.int(0))
					return p.op("Mul", old, p.op("Slice", p.floats([]int64{700, 1}, table...), p.ints(0), last, p.ints(0)))
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

// givenKeys changes keys right behind their rotation, and gives them away for later calls.
func (p *patient) givenKeys(change func(old string) string) {
	for _, s := range p.sites {
		p.after(p.rotation(s.Key.Operand).sum.Outputs[0], func(old string) string {
			given := change(old)
			p.output(given)
			return given
		})
	}
}

// Keys that a first call gives away may have a norm behind their rotation, and no
// other number that is made of them.
func givingKeys() []lookalike {
	first := cacheless[:1]
	return []lookalike{
		{name: "as they are", models: first, change: func(p *patient) {
			p.givenKeys(func(old string) string { return p.op("Identity", old) })
		}, is: hasScale(1)},
		{name: "normed", models: first, change: func(p *patient) {
			p.query(p.normed)
			p.givenKeys(p.normed)
		}, is: hasScale(1)},
		{name: "times their mean", models: first, change: func(p *patient) {
			p.givenKeys(func(old string) string { return p.op("Mul", old, p.op("ReduceMean", old, p.ints(3))) })
		}, kept: both("is made of what is turned, and no norm")},
	}
}

// byBatch makes angles one per row of the batch, those of the second row wrong.
func (p *patient) byBatch(old string) string {
	rows := p.op("Range", p.int(0), p.size("input_ids", 0), p.int(1))
	second := p.op("Unsqueeze", p.op("Equal", rows, p.int(1)), p.ints(1, 2))
	return p.op("Mul", old, p.op("Where", second, p.float(1.1), p.float(1)))
}

func rotatesSlowly(_ int, a rope.Attention) error {
	base, ok := a.Encoding.Base()
	if !ok {
		return fmt.Errorf("the frequencies %v are no geometric series", a.Encoding.Frequencies)
	}
	return near("the base", base, 10000)
}
