package lookalike_test

import (
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// logFactor returns a factor by the logarithm of a token's index, [length, 1]: 1 up to the 16th token.
func (p *patient) logFactor() string {
	log := p.Op("Log", p.Cast(p.Op("Add", p.places(), p.Int(1)), onnx.Float))
	return p.Op("Max", p.Float(1), p.Op("Div", log, p.Float(2.7725887)))
}

// unrotated changes the query of each layer before its rotation.
func (p *patient) unrotated(change func(old string) string) {
	for _, s := range p.Sites {
		p.After(s.Query.Boundary, change)
	}
}

// factorsOfTokens are numbers for each token, which commute with its rotation, and numbers that do not.
func factorsOfTokens() []lookalike {
	first := cacheless[:2]
	return []lookalike{
		{name: "log-n before the rotation", models: first, change: func(p *patient) {
			p.unrotated(func(old string) string { return p.Op("Mul", old, p.logFactor()) })
		}, is: hasScale(1)},
		{name: "divided before the rotation", models: first, change: func(p *patient) {
			p.unrotated(func(old string) string { return p.Op("Div", old, p.logFactor()) })
		}, is: hasScale(1)},
		{name: "log-n of half of the channels", models: first, change: func(p *patient) {
			p.unrotated(func(old string) string {
				half := make([]float32, 16)
				for i := range half {
					half[i] = float32(i % 2)
				}
				return p.Op("Mul", old, p.Op("Pow", p.logFactor(), p.Floats([]int64{1, 16}, half...)))
			})
		}, kept: both("rotation")},
		{name: "log-n in place of the cosines", models: first, change: func(p *patient) {
			cos, _ := p.Tables()
			p.After(cos.Outputs[0], func(old string) string { return p.Op("Mul", old, p.logFactor()) })
		}, kept: both("rotat")},
		{name: "frequencies that follow every length", models: []string{"llama__dynamo18", "llama__optimum"}, change: func(p *patient) {
			p.Angles(func(old string) string {
				tokens := p.Cast(p.Op("Add", p.Past(), p.Int(3)), onnx.Float)
				return p.Op("Div", old, p.Op("Log", tokens))
			})
		}, kept: both("so frequencies depend on the length, which looks like LongRoPE or dynamic NTK")},
	}
}
