package kit

import "github.com/rope-rewrite/rope-rewrite/onnx"

// Positions that a graph computes itself, from what an export has as inputs.

// OwnPositions puts positions that the graph computes in the place of its input position_ids.
func (p *Patient) OwnPositions(compute func() string) {
	p.After("position_ids", func(string) string { return compute() })
}

// Counted counts the tokens up to each that the padding mask shows, [batch, past + length].
func (p *Patient) Counted() string { return p.Op("CumSum", "attention_mask", p.Int(1)) }

// CountedFrom is that, with the first one at start.
func (p *Patient) CountedFrom(start int64) string {
	return p.Op("Add", p.Counted(), p.Int(start-1))
}

// New takes the call's own tokens from a value of all tokens.
func (p *Patient) New(v string) string {
	from := p.Op("Neg", p.Op("Unsqueeze", p.Size("input_ids", 1), p.Ints(0)))
	return p.Op("Slice", v, from, p.Ints(1<<62), p.Ints(1))
}

// Filled puts a number at padded tokens of a value of all tokens.
func (p *Patient) Filled(v string, fill int64) string {
	return p.Op("Where", p.Op("Equal", "attention_mask", p.Int(0)), p.Int(fill), v)
}

// Indices are those of the call's own tokens, [1, length].
func (p *Patient) Indices() string {
	past := p.Past()
	total := p.Op("Add", past, p.Size("input_ids", 1))
	return p.Op("Unsqueeze", p.Op("Range", past, total, p.Int(1)), p.Ints(0))
}

// Scaled multiplies the angles of every Cos and Sin.
func (p *Patient) Scaled(factor float32) {
	for _, op := range []string{"Cos", "Sin"} {
		for _, n := range p.All(op) {
			p.Into(n, 0, func(angles string) string { return p.Op("Mul", angles, p.Float(factor)) })
		}
	}
}

// PositionCase is positions that a graph computes itself.
type PositionCase struct {
	Name    string
	Compute func(p *Patient) string
	Unlike  bool // those of real tokens are not the index plus one number for each row
}

// ComputedPositions are kinds of them that reports show or that are like these. All fit exports with a cache
// and the inputs input_ids, attention_mask and position_ids.
var ComputedPositions = []PositionCase{
	{Name: "1 where padded", Compute: func(p *Patient) string { return p.New(p.Filled(p.CountedFrom(0), 1)) }},
	{Name: "0 where padded", Compute: func(p *Patient) string { return p.New(p.Filled(p.CountedFrom(0), 0)) }},
	{Name: "-1 where padded", Compute: func(p *Patient) string { return p.New(p.CountedFrom(0)) }},
	{Name: "times the mask", Compute: func(p *Patient) string { return p.New(p.Op("Mul", p.CountedFrom(0), "attention_mask")) }},
	{Name: "clamped", Compute: func(p *Patient) string { return p.New(p.Op("Max", p.CountedFrom(0), p.Int(0))) }},
	{Name: "assigned where padded", Compute: func(p *Patient) string {
		at := p.Node("Transpose", []string{p.Op("NonZero", p.Op("Equal", "attention_mask", p.Int(0)))}, onnx.IntsAttr("perm", 1, 0))
		ones := p.Op("Expand", p.Int(1), p.Op("Slice", p.Op("Shape", at), p.Ints(0), p.Ints(1)))
		return p.New(p.Op("ScatterND", p.CountedFrom(0), at, ones))
	}},
	{Name: "of the last tokens, by the sum of the mask", Compute: func(p *Patient) string {
		length := p.Size("input_ids", 1)
		tokens := p.Op("ReduceSum", "attention_mask", p.Ints(1)) // [batch, 1]
		places := p.Op("Unsqueeze", p.Op("Range", p.Int(0), length, p.Int(1)), p.Ints(0))
		return p.Op("Max", p.Op("Add", p.Op("Sub", tokens, length), places), p.Int(0))
	}},
	{Name: "from 1 on", Compute: func(p *Patient) string { return p.New(p.Counted()) }},
	{Name: "from 5 on", Compute: func(p *Patient) string { return p.New(p.Filled(p.CountedFrom(5), 1)) }},
	{Name: "in float", Compute: func(p *Patient) string {
		counted := p.Op("CumSum", p.Cast("attention_mask", onnx.Float), p.Int(1))
		return p.New(p.Op("Sub", counted, p.Float(1)))
	}},
	{Name: "in int32", Compute: func(p *Patient) string {
		return p.New(p.Op("CumSum", p.Cast("attention_mask", onnx.Int32), p.Int(1)))
	}},
	{Name: "from the first real token", Compute: func(p *Patient) string {
		first := p.Node("ArgMax", []string{"attention_mask"}, onnx.IntAttr("axis", 1))
		return p.Op("Max", p.Op("Sub", p.Indices(), first), p.Int(0))
	}},
	{Name: "indices and 3 more", Compute: func(p *Patient) string { return p.Op("Add", p.Indices(), p.Int(3)) }},
	{Name: "an input and 2 more", Compute: func(p *Patient) string { return p.Op("Add", "position_ids", p.Int(2)) }},
	{Name: "an input, filled by the mask", Compute: func(p *Patient) string {
		shown := p.New("attention_mask")
		return p.Op("Where", p.Op("Equal", shown, p.Int(0)), p.Int(1), "position_ids")
	}},
	{Name: "doubled", Unlike: true, Compute: func(p *Patient) string {
		return p.New(p.Op("Mul", p.Filled(p.CountedFrom(0), 1), p.Int(2)))
	}},
	{Name: "by halves, rounded down", Unlike: true, Compute: func(p *Patient) string {
		return p.New(p.Op("Div", p.Op("Max", p.CountedFrom(0), p.Int(0)), p.Int(2)))
	}},
	{Name: "one less behind 1000", Unlike: true, Compute: func(p *Patient) string {
		counted := p.Op("Max", p.CountedFrom(0), p.Int(0))
		return p.New(p.Op("Where", p.Op("Greater", counted, p.Int(1000)), p.Op("Sub", counted, p.Int(1)), counted))
	}},
	{Name: "modulo 4096", Unlike: true, Compute: func(p *Patient) string {
		return p.New(p.Op("Mod", p.Op("Max", p.CountedFrom(0), p.Int(0)), p.Int(4096)))
	}},
	{Name: "with the past twice", Unlike: true, Compute: func(p *Patient) string { return p.Op("Add", "position_ids", p.Past()) }},
	{Name: "anew at token 7", Unlike: true, Compute: func(p *Patient) string {
		length := p.Size("input_ids", 1)
		places := p.Op("Unsqueeze", p.Op("Range", p.Int(0), length, p.Int(1)), p.Ints(0))
		begins := p.Op("Where", p.Op("Equal", "input_ids", p.Int(7)), places, p.Int(0))
		// The largest place of a beginning up to each token, by all pairs of places.
		from := p.Op("Unsqueeze", begins, p.Ints(1)) // [batch, 1, length]
		column := p.Op("Unsqueeze", p.Op("Unsqueeze", p.Op("Range", p.Int(0), length, p.Int(1)), p.Ints(1)), p.Ints(0))
		reached := p.Op("Where", p.Op("LessOrEqual", from, column), from, p.Int(0)) // [batch, length, length]
		last := p.Node("ReduceMax", []string{reached, p.Ints(2)}, onnx.IntAttr("keepdims", 0))
		return p.Op("Sub", places, last)
	}},
}
