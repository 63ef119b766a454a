package rewrite_test

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
	x := p.op("MatMul", states, p.floats([]int64{16, 4}, weights...))
	x = p.op("Slice", x, p.ints(0), p.ints(1), p.ints(1))
	return p.node("Transpose", []string{x}, onnx.IntsAttr("perm", 0, 3, 1, 2))
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
	for _, s := range p.sites {
		p.into(s.Softmax, 0, func(old string) string { return change(old, p.stateOf(s)) })
	}
}

// stateProducts does the same with the scores before their mask.
func (p *patient) stateProducts(change func(old, state string) string) {
	for _, s := range p.sites {
		p.after(s.Scores(), func(old string) string { return change(old, p.stateOf(s)) })
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
	const notAdded = "which is not added to them"
	const turned = "its own query or key after the rotation"
	return []lookalike{
		{
			name: "a weight of each key, without a cache",
			change: func(p *patient) {
				p.states(func(old, x string) string { return p.op("Add", old, p.op("Sigmoid", x)) })
			},
			models: []string{"llama__ts17", "gpt_neox__ts17"},
			is:     stateBias(true),
		},
		{
			name: "a weight of each key",
			change: func(p *patient) {
				p.states(func(old, x string) string { return p.op("Add", old, p.op("Sigmoid", x)) })
			},
			models: cached,
			is:     stateBias(true),
		},
		{
			name: "a weight of each key in the bias of a fused op",
			change: func(p *patient) {
				layer := 0
				p.fusedEach(func(n *onnx.Node) {
					p.into(n, 5, func(v string) string { return p.op("Add", v, p.op("Sigmoid", p.stateOf(p.sites[layer]))) })
					layer++
				})
			},
			models: fusions,
			is:     stateBias(true),
		},
		{
			name: "a weight of each key before the mask",
			change: func(p *patient) {
				p.stateProducts(func(old, x string) string { return p.op("Mul", p.op("Add", p.op("Exp", x), old), p.float(2)) })
			},
			models: cached,
			is:     hasScale(2),
		},
		{
			name: "a weight beside a mask that it may outweigh",
			change: func(p *patient) {
				p.fill(-10000)
				p.states(func(old, x string) string { return p.op("Add", old, p.op("Relu", x)) })
			},
			models: cached,
			is:     stateBias(false),
		},
		{
			name: "a logarithm of a gate",
			change: func(p *patient) {
				p.states(func(old, x string) string { return p.op("Add", old, p.op("Log", p.op("Sigmoid", x))) })
			},
			models: cached,
			is:     stateBias(false),
		},
		{
			name: "a logarithm of a gate that later keys have not", // of a row that it hides the original gives no number
			change: func(p *patient) {
				later := p.op("Less", p.distance(), p.int(0))
				p.states(func(old, x string) string {
					return p.op("Add", old, p.op("Where", later, p.float(float32(math.Inf(-1))), p.op("Log", p.op("Sigmoid", x))))
				})
			},
			models: []string{"llama__dynamo18-eager"}, // which does not look for NaN among its probabilities
			is:     stateBias(false),
		},
		{
			name: "a weight that is taken away",
			change: func(p *patient) {
				p.states(func(old, x string) string { return p.op("Sub", old, p.op("Exp", x)) })
			},
			models: cached,
			is:     stateBias(false),
		},
		{
			name: "a gate that hides keys, all of a row too",
			change: func(p *patient) {
				p.states(func(old, x string) string {
					return p.op("Add", old, p.op("Where", p.op("Less", x, p.float(0)), p.float(-math.MaxFloat32), p.float(0)))
				})
			},
			models: cached,
			is:     stateBias(false),
		},
		{
			name: "a gate that hides other tokens' keys by minus infinity",
			change: func(p *patient) {
				self := p.op("Equal", p.distance(), p.int(0))
				p.states(func(old, x string) string {
					shown := p.op("Or", p.op("Greater", x, p.float(0)), self)
					return p.op("Add", old, p.op("Where", shown, p.float(0), p.float(float32(math.Inf(-1)))))
				})
			},
			models: cached[:2],
			is:     stateBias(false),
		},
		{
			name: "a weight that is another one in later calls",
			change: func(p *patient) {
				later := p.op("Greater", p.past(), p.int(0))
				p.states(func(old, x string) string {
					return p.op("Add", old, p.op("Mul", p.op("Sigmoid", x), p.op("Where", later, p.float(3), p.float(-1))))
				})
			},
			models: cached,
			is:     stateBias(false),
		},
		{
			name: "a bias by the query before its rotation",
			change: func(p *patient) {
				for _, s := range p.sites {
					p.into(s.Softmax, 0, func(old string) string {
						each := p.op("MatMul", s.Query.Boundary, p.floats([]int64{16, 1}, 1, -1, 2, 0, 0, 0, 1, 1, -1, 0, 0, 0, 0, 1, 0, -2))
						return p.op("Add", old, p.op("Mul", each, p.op("Mul", p.cast(p.distance(), onnx.Float), p.float(0.01))))
					})
				}
			},
			models: cached[:1],
			is:     stateBias(false),
		},
		{
			name: "a bias by the query after its rotation",
			change: func(p *patient) {
				for _, s := range p.sites {
					p.into(s.Softmax, 0, func(old string) string {
						each := p.node("ReduceMax", []string{s.Query.Operand}, onnx.IntsAttr("axes", 3), onnx.IntAttr("keepdims", 1))
						return p.op("Add", old, p.op("Mul", each, p.cast(p.distance(), onnx.Float)))
					})
				}
			},
			models: []string{"llama__optimum", "gpt_neox__optimum"},
			kept:   both(turned),
		},
		{
			name: "a bias by the cached keys",
			change: func(p *patient) {
				for _, s := range p.sites {
					p.into(s.Softmax, 0, func(old string) string { return p.op("Add", old, p.gate(s.Key.Cache.Present)) })
				}
			},
			models: cached,
			kept:   both(turned),
		},
		{
			name: "what other heads' scores weigh", // a product with weights lies between
			change: func(p *patient) {
				mix := p.floats([]int64{4, 4}, 0, .5, 0, 0, 0, 0, .5, 0, 0, 0, 0, .5, .5, 0, 0, 0)
				for _, s := range p.sites {
					p.after(s.Scores(), func(old string) string {
						others := p.op("MatMul", p.node("Transpose", []string{old}, onnx.IntsAttr("perm", 0, 2, 3, 1)), mix)
						return p.op("Add", old, p.node("Transpose", []string{others}, onnx.IntsAttr("perm", 0, 3, 1, 2)))
					})
				}
			},
			models: cached,
			kept:   both(turned),
		},
		{
			name: "a factor of each key",
			change: func(p *patient) {
				p.stateProducts(func(old, x string) string { return p.op("Mul", old, p.op("Exp", x)) })
			},
			models: cached,
			kept:   both(notAdded),
		},
		{
			name: "a factor on scores to which the same is added",
			change: func(p *patient) {
				p.stateProducts(func(old, x string) string { return p.op("Add", p.op("Mul", old, p.op("Tanh", x)), x) })
			},
			models: cached,
			kept:   both(notAdded),
		},
		{
			name: "hidden states in place of some scores",
			change: func(p *patient) {
				near := p.op("Less", p.distance(), p.int(3))
				p.stateProducts(func(old, x string) string { return p.op("Where", near, old, x) })
			},
			models: cached,
			kept:   both(notAdded),
		},
		{
			name: "the larger one of score and hidden state",
			change: func(p *patient) {
				p.stateProducts(func(old, x string) string { return p.op("Max", old, x) })
			},
			models: cached,
			kept:   both(notAdded),
		},
		{
			name: "a weight under the softcap",
			change: func(p *patient) {
				p.stateProducts(func(old, x string) string { return p.tanh(p.op("Add", old, p.op("Sigmoid", x)), 50) })
			},
			models: cached,
			kept:   both("scores are not those of a product to which"),
		},
		{
			name: "a weight behind the softmax",
			change: func(p *patient) {
				for _, s := range p.sites {
					p.into(s.ValueMatMul, 0, func(old string) string { return p.op("Add", old, p.op("Sigmoid", p.stateOf(s))) })
				}
			},
			models: cached,
			kept:   both("the output also depends on"),
		},
		{
			name: "a bias by the scores themselves",
			change: func(p *patient) {
				p.stateProducts(func(old, x string) string {
					return p.op("Add", old, p.op("Mul", p.op("Tanh", old), p.op("Sigmoid", x)))
				})
			},
			models: cached,
			kept:   both(notAdded),
		},
	}
}
