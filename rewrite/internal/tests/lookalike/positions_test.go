package lookalike_test

import (
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// computedPositions are models that compute the positions of tokens themselves.
func computedPositions() []lookalike {
	models := []string{"llama__dynamo18", "llama__optimum", "llama__dynamo18-eager"}
	own := func(compute func(p *patient) string) func(p *patient) {
		return func(p *patient) { p.OwnPositions(func() string { return compute(p) }) }
	}
	var cases []lookalike
	for _, c := range kit.ComputedPositions {
		cases = append(cases, lookalike{name: c.Name, models: models, change: own(func(p *patient) string { return c.Compute(p.Patient) }), is: hasScale(1)})
	}
	for _, export := range []string{"llama__dynamo23", "llama__dynamo18-fp16", "gpt_neox__optimum"} {
		cases = append(cases, lookalike{
			name: "counted, in another export", models: []string{export}, is: hasScale(1),
			change: own(func(p *patient) string { return p.New(p.Filled(p.CountedFrom(0), 1)) }),
		})
	}
	without := cacheless[:1]
	indices := func(p *patient, change func(old string) string) { // [1, 1, length]
		p.Into(p.Up(p.Up(p.First("Cos").Inputs[0], "MatMul").Inputs[1], "Cast"), 0, change)
	}
	return append(cases,
		lookalike{
			name: "of all tokens, and the last rows of tables", models: models, is: hasScale(1),
			change: func(p *patient) {
				p.OwnPositions(func() string { return p.Filled(p.CountedFrom(0), 1) })
				cos, sin := p.Tables()
				p.After(cos.Outputs[0], p.New)
				p.After(sin.Outputs[0], p.New)
			},
		},
		lookalike{
			name: "of all tokens, and the first rows of tables", models: models, kept: both("rotat"),
			change: func(p *patient) {
				p.OwnPositions(func() string { return p.Filled(p.CountedFrom(0), 1) })
				cos, sin := p.Tables()
				first := func(v string) string {
					return p.Op("Slice", v, p.Ints(0), p.Op("Unsqueeze", p.Size("input_ids", 1), p.Ints(0)), p.Ints(1))
				}
				p.After(cos.Outputs[0], first)
				p.After(sin.Outputs[0], first)
			},
		},
		lookalike{
			name: "-1 where padded, in tables", models: models, is: hasScale(1),
			change: func(p *patient) {
				p.gathered(3000, func(_, _ []float32, _ int) {})
				p.OwnPositions(func() string { return p.New(p.CountedFrom(0)) })
			},
		},
		lookalike{
			name: "1 where padded, in tables", models: models, is: hasScale(1),
			change: func(p *patient) {
				p.gathered(300, func(_, _ []float32, _ int) {})
				p.OwnPositions(func() string { return p.New(p.Filled(p.CountedFrom(0), 1)) })
			},
		},
		lookalike{
			name: "in tables with one wrong entry", models: models, kept: both("at position 301"),
			change: func(p *patient) {
				p.gathered(600, func(cos, _ []float32, w int) { cos[301*w+2] += 1e-3 })
				p.OwnPositions(func() string { return p.New(p.Filled(p.CountedFrom(0), 1)) })
			},
		},
		lookalike{
			name: "below 0 with a cache", models: models, kept: both("are below 0 for tokens that are not padding, and"),
			change: own(func(p *patient) string { return p.Op("Sub", p.Indices(), p.Int(7)) }),
		},
		lookalike{
			name: "minus the tokens so far", models: models, kept: both("are below 0 for tokens that are not padding, and"),
			change: own(func(p *patient) string {
				return p.Op("Sub", p.Indices(), p.Op("Add", p.Past(), p.Size("input_ids", 1)))
			}),
		},
		lookalike{
			name: "the query one further", models: models, kept: both("which are not the same"),
			change: func(p *patient) {
				p.OwnPositions(func() string { return p.New(p.Filled(p.CountedFrom(0), 1)) })
				p.queryAngles(p.anglesOfRows(p.New(p.Filled(p.CountedFrom(1), 1))))
			},
		},
		lookalike{
			name: "the query by the input", models: models, kept: both("which are not the same"),
			change: func(p *patient) {
				p.queryAngles(p.anglesOfRows(p.New(p.Counted())))
			},
		},
		lookalike{
			name: "the same once more for the query", models: models, is: hasScale(1),
			change: func(p *patient) {
				p.OwnPositions(func() string { return p.New(p.Filled(p.CountedFrom(0), 1)) })
				p.queryAngles(p.anglesOfRows(p.New(p.Filled(p.CountedFrom(0), 1))))
			},
		},
		lookalike{
			name: "no angles where padded", models: models, kept: both("depends on the input"),
			change: func(p *patient) {
				p.OwnPositions(func() string { return p.New(p.Filled(p.CountedFrom(0), 1)) })
				p.Angles(func(old string) string {
					return p.Op("Mul", old, p.Cast(p.Op("Unsqueeze", p.New("attention_mask"), p.Ints(2)), onnx.Float))
				})
			},
		},
		lookalike{
			name: "frequencies that follow the largest one", models: models,
			kept: both("with up to 5000 as the largest position of a call pair 0 rotates by 1 per position, with more by 0.5"),
			change: func(p *patient) {
				own := p.New(p.Filled(p.CountedFrom(0), 1))
				p.OwnPositions(func() string { return own })
				largest := p.Node("ReduceMax", []string{own}, onnx.IntAttr("keepdims", 0))
				p.Angles(func(old string) string {
					return p.Op("Mul", old, p.Op("Where", p.Op("Greater", largest, p.Int(5000)), p.Float(0.5), p.Float(1)))
				})
			},
		},
		lookalike{
			name: "half a position more behind a long past", models: models,
			kept: both("with up to 5000 cached tokens nothing is rotated at position 0, with more pair 0 is rotated by 0.5 there: positions are shifted"),
			change: func(p *patient) {
				p.Angles(func(old string) string {
					return p.Op("Add", old, p.Op("Where", p.Op("Greater", p.Past(), p.Int(5000)), p.Float(0.5), p.Float(0)))
				})
			},
		},
		lookalike{
			name: "half a position less for each token of a call", models: without, kept: both("so the token with position 0 depends on the length of the call"),
			change: func(p *patient) {
				p.Angles(func(old string) string {
					return p.Op("Sub", old, p.Op("Mul", p.Cast(p.Size("input_ids", 1), onnx.Float), p.Float(0.5)))
				})
			},
		},
		lookalike{
			name: "without a cache, minus the length", models: without, is: hasScale(1),
			change: func(p *patient) {
				indices(p, func(old string) string { return p.Op("Sub", old, p.Size("input_ids", 1)) })
			},
		},
		lookalike{
			name: "without a cache, and 9 more", models: without, is: hasScale(1),
			change: func(p *patient) { indices(p, func(old string) string { return p.Op("Add", old, p.Int(9)) }) },
		},
		lookalike{
			name: "without a cache, modulo 7", models: without, is: hasScale(1),
			change: func(p *patient) { indices(p, func(old string) string { return p.Op("Mod", old, p.Int(7)) }) },
		},
		lookalike{
			name: "without a cache, modulo 7 and below 0", models: without, kept: both("are below 0 for tokens that are not padding, and"),
			change: func(p *patient) {
				indices(p, func(old string) string { return p.Op("Sub", p.Op("Mod", old, p.Int(7)), p.Int(2)) })
			},
		},
		lookalike{
			name: "without a cache, no angles where padded", models: without, kept: both("depends on the padding mask \"attention_mask\" not only through positions"),
			change: func(p *patient) {
				p.Angles(func(old string) string {
					return p.Op("Mul", old, p.Cast(p.Op("Unsqueeze", "attention_mask", p.Ints(2)), onnx.Float))
				})
			},
		},
		lookalike{
			name: "without a cache, counted by the mask", models: without, is: hasScale(1),
			change: func(p *patient) {
				indices(p, func(string) string { return p.Op("Unsqueeze", p.Filled(p.CountedFrom(0), 1), p.Ints(1)) })
			},
		},
	)
}

// anglesOfRows are those of all channels at positions [batch, length].
func (p *patient) anglesOfRows(positions string) string {
	return p.anglesAt(p.Op("Unsqueeze", p.Cast(positions, onnx.Float), p.Ints(2)))
}

// queryAngles gives the query of every layer angles of its own.
func (p *patient) queryAngles(angles string) {
	for _, s := range p.Sites {
		p.OtherTables(s.Query.Operand, func(string) string { return angles })
	}
}
