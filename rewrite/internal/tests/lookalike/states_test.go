package lookalike_test

import (
	"errors"
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// gate returns a number for each head and key, [batch, 4, 1, past + length], that the model
// computes from hidden states [batch, heads, past + length, 16].
func (p *patient) gate(states string) string {
	weights := make([]float32, 64)
	for i := range weights {
		weights[i] = float32(math.Sin(float64(i * i)))
	}
	x := p.Op("MatMul", states, p.Floats([]int64{16, 4}, weights...))
	x = p.Op("Slice", x, p.Ints(0), p.Ints(1), p.Ints(1))
	return p.Node("Transpose", []string{x}, onnx.IntsAttr("perm", 0, 3, 1, 2))
}

// stateOf returns such a number that is computed from a layer's values.
func (p *patient) stateOf(s *site.Site) string {
	if s.Value.Cache != nil {
		return p.gate(s.Value.Cache.Present)
	}
	return p.gate(s.Value.Operand)
}

// states changes what enters every softmax, by a number that is computed from values.
func (p *patient) states(change func(old, state string) string) {
	for _, s := range p.Sites {
		p.Into(s.Softmax, 0, func(old string) string { return change(old, p.stateOf(s)) })
	}
}

// stateProducts does the same with the scores before their mask.
func (p *patient) stateProducts(change func(old, state string) string) {
	for _, s := range p.Sites {
		p.After(s.Scores(), func(old string) string { return change(old, p.stateOf(s)) })
	}
}

// stateBias says that the model adds hidden states to its scores; whether the op knows what
// the mask beside them hides.
func stateBias(masked bool) func(int, rope.Attention) error {
	return func(_ int, a rope.Attention) error {
		if want := (rope.Mask{Causal: masked, Padding: masked, Bias: true}); a.Mask != want {
			return errors.New("the mask is " + a.Mask.String() + ", " + want.String() + " was expected")
		}
		return nil
	}
}

// hiddenStateBiases are biases on the scores that are computed from hidden states.
func hiddenStateBiases() []lookalike {
	cached := []string{"llama__optimum", "llama__dynamo18", "llama__dynamo18-eager", "gpt_neox__optimum", "gpt_neox__dynamo18"}
	const notAdded = "which is not added to the product of query and key"
	const turned = "its own query or key after the rotation"
	return []lookalike{
		{
			name: "a weight of each key, without a cache",
			change: func(p *patient) {
				p.states(func(old, x string) string { return p.Op("Add", old, p.Op("Sigmoid", x)) })
			},
			models: []string{"llama__ts17", "gpt_neox__ts17"},
			is:     stateBias(true),
		},
		{
			name: "a weight of each key",
			change: func(p *patient) {
				p.states(func(old, x string) string { return p.Op("Add", old, p.Op("Sigmoid", x)) })
			},
			models: cached,
			is:     stateBias(true),
		},
		{
			name: "a weight of each key in the bias of a fused op",
			change: func(p *patient) {
				layer := 0
				p.FusedEach(func(n *onnx.Node) {
					p.Into(n, 5, func(v string) string { return p.Op("Add", v, p.Op("Sigmoid", p.stateOf(p.Sites[layer]))) })
					layer++
				})
			},
			models: fusions,
			is:     stateBias(true),
		},
		{
			name: "a weight of each key before the mask",
			change: func(p *patient) {
				p.stateProducts(func(old, x string) string { return p.Op("Mul", p.Op("Add", p.Op("Exp", x), old), p.Float(2)) })
			},
			models: cached,
			is:     hasScale(2),
		},
		{
			name: "a weight beside a mask that it may outweigh",
			change: func(p *patient) {
				p.fill(-10000)
				p.states(func(old, x string) string { return p.Op("Add", old, p.Op("Relu", x)) })
			},
			models: cached,
			is:     stateBias(false),
		},
		{
			name: "a logarithm of a gate",
			change: func(p *patient) {
				p.states(func(old, x string) string { return p.Op("Add", old, p.Op("Log", p.Op("Sigmoid", x))) })
			},
			models: cached,
			is:     stateBias(false),
		},
		{
			name: "a logarithm of a gate that later keys have not", // of a row that it hides the original gives no number
			change: func(p *patient) {
				later := p.Op("Less", p.distance(), p.Int(0))
				p.states(func(old, x string) string {
					return p.Op("Add", old, p.Op("Where", later, p.Float(float32(math.Inf(-1))), p.Op("Log", p.Op("Sigmoid", x))))
				})
			},
			models: []string{"llama__dynamo18-eager"}, // which does not look for NaN among its probabilities
			is:     stateBias(false),
		},
		{
			name: "a weight that is taken away",
			change: func(p *patient) {
				p.states(func(old, x string) string { return p.Op("Sub", old, p.Op("Exp", x)) })
			},
			models: cached,
			is:     stateBias(false),
		},
		{
			name: "a gate that hides keys, all of a row too",
			change: func(p *patient) {
				p.states(func(old, x string) string {
					return p.Op("Add", old, p.Op("Where", p.Op("Less", x, p.Float(0)), p.Float(-math.MaxFloat32), p.Float(0)))
				})
			},
			models: cached,
			is:     stateBias(false),
		},
		{
			name: "a gate that hides other tokens' keys by minus infinity",
			change: func(p *patient) {
				self := p.Op("Equal", p.distance(), p.Int(0))
				p.states(func(old, x string) string {
					shown := p.Op("Or", p.Op("Greater", x, p.Float(0)), self)
					return p.Op("Add", old, p.Op("Where", shown, p.Float(0), p.Float(float32(math.Inf(-1)))))
				})
			},
			models: cached[:2],
			is:     stateBias(false),
		},
		{
			name: "a weight that is another one in later calls",
			change: func(p *patient) {
				later := p.Op("Greater", p.Past(), p.Int(0))
				p.states(func(old, x string) string {
					return p.Op("Add", old, p.Op("Mul", p.Op("Sigmoid", x), p.Op("Where", later, p.Float(3), p.Float(-1))))
				})
			},
			models: cached,
			is:     stateBias(false),
		},
		{
			name: "a bias by the query before its rotation",
			change: func(p *patient) {
				for _, s := range p.Sites {
					p.Into(s.Softmax, 0, func(old string) string {
						each := p.Op("MatMul", s.Query.Boundary, p.Floats([]int64{16, 1}, 1, -1, 2, 0, 0, 0, 1, 1, -1, 0, 0, 0, 0, 1, 0, -2))
						return p.Op("Add", old, p.Op("Mul", each, p.Op("Mul", p.Cast(p.distance(), onnx.Float), p.Float(0.01))))
					})
				}
			},
			models: cached[:1],
			is:     stateBias(false),
		},
		{
			name: "a bias by the query after its rotation",
			change: func(p *patient) {
				for _, s := range p.Sites {
					p.Into(s.Softmax, 0, func(old string) string {
						each := p.Node("ReduceMax", []string{s.Query.Operand}, onnx.IntsAttr("axes", 3), onnx.IntAttr("keepdims", 1))
						return p.Op("Add", old, p.Op("Mul", each, p.Cast(p.distance(), onnx.Float)))
					})
				}
			},
			models: []string{"llama__optimum", "gpt_neox__optimum"},
			kept:   both(turned),
		},
		{
			name: "a bias by the cached keys",
			change: func(p *patient) {
				for _, s := range p.Sites {
					p.Into(s.Softmax, 0, func(old string) string { return p.Op("Add", old, p.gate(s.Key.Cache.Present)) })
				}
			},
			models: cached,
			kept:   both(turned),
		},
		{
			name: "what other heads' scores weigh", // a product with weights lies between
			change: func(p *patient) {
				mix := p.Floats([]int64{4, 4}, 0, .5, 0, 0, 0, 0, .5, 0, 0, 0, 0, .5, .5, 0, 0, 0)
				for _, s := range p.Sites {
					p.After(s.Scores(), func(old string) string {
						others := p.Op("MatMul", p.Node("Transpose", []string{old}, onnx.IntsAttr("perm", 0, 2, 3, 1)), mix)
						return p.Op("Add", old, p.Node("Transpose", []string{others}, onnx.IntsAttr("perm", 0, 3, 1, 2)))
					})
				}
			},
			models: cached,
			kept:   both(turned),
		},
		{
			name: "a factor of each key",
			change: func(p *patient) {
				p.stateProducts(func(old, x string) string { return p.Op("Mul", old, p.Op("Exp", x)) })
			},
			models: cached,
			kept:   both(notAdded),
		},
		{
			name: "a factor on scores to which the same is added",
			change: func(p *patient) {
				p.stateProducts(func(old, x string) string { return p.Op("Add", p.Op("Mul", old, p.Op("Tanh", x)), x) })
			},
			models: cached,
			kept:   both(notAdded),
		},
		{
			name: "hidden states in place of some scores",
			change: func(p *patient) {
				near := p.Op("Less", p.distance(), p.Int(3))
				p.stateProducts(func(old, x string) string { return p.Op("Where", near, old, x) })
			},
			models: cached,
			kept:   both(notAdded),
		},
		{
			name: "the larger one of score and hidden state",
			change: func(p *patient) {
				p.stateProducts(func(old, x string) string { return p.Op("Max", old, x) })
			},
			models: cached,
			kept:   both(notAdded),
		},
		{
			name: "a weight under the softcap",
			change: func(p *patient) {
				p.stateProducts(func(old, x string) string { return p.Tanh(p.Op("Add", old, p.Op("Sigmoid", x)), 50) })
			},
			models: cached,
			kept:   both("scores are not those of a product to which"),
		},
		{
			name: "a weight behind the softmax",
			change: func(p *patient) {
				for _, s := range p.Sites {
					p.Into(s.ValueMatMul, 0, func(old string) string { return p.Op("Add", old, p.Op("Sigmoid", p.stateOf(s))) })
				}
			},
			models: cached,
			kept:   both("the output also depends on"),
		},
		{
			name: "a bias by the scores themselves",
			change: func(p *patient) {
				p.stateProducts(func(old, x string) string {
					return p.Op("Add", old, p.Op("Mul", p.Op("Tanh", old), p.Op("Sigmoid", x)))
				})
			},
			models: cached,
			kept:   both(notAdded),
		},
	}
}
