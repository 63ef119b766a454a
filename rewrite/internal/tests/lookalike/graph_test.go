package lookalike_test

import (
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// tile repeats a group's heads as h mod kv, not as h / group.
func (p *patient) tile(operand *onnx.Node, i int, cached string) {
	p.Into(operand, i, func(string) string {
		t := p.Op("Tile", cached, p.Ints(1, 2, 1, 1))
		if i == 1 && operand == p.Sites[0].ScoresMatMul {
			t = p.Node("Transpose", []string{t}, onnx.IntsAttr("perm", 0, 1, 3, 2))
		}
		return t
	})
}

func second(scale float64) func(int, rope.Attention) error {
	return func(layer int, a rope.Attention) error { return hasScale([]float64{1, scale}[layer])(layer, a) }
}

func otherGraphs() []lookalike {
	perHead := func(p *patient) string { return p.Floats([]int64{16}, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1) }
	return []lookalike{
		{
			name: "value turned as well",
			change: func(p *patient) {
				s := p.Sites[0]
				r := p.Rotation(s.Key.Cached())
				p.Into(s.Value.Cache.Concat, 1, func(v string) string {
					half := p.Node("Split", []string{v}, onnx.IntAttr("axis", 3))
					n := p.Graph.Nodes[len(p.Graph.Nodes)-1]
					n.Outputs = []string{half, half + "/2"}
					n.Inputs = append(n.Inputs, p.Ints(8, 8))
					turned := p.Node("Concat", []string{p.Op("Neg", half+"/2"), half}, onnx.IntAttr("axis", 3))
					return p.Op("Add", p.Op("Mul", v, r.Cos.Inputs[1]), p.Op("Mul", turned, r.Sin.Inputs[1]))
				})
			},
			models: llamas,
			kept:   []string{"off by", ""},
		},
		{
			name: "value doubled before the cache",
			change: func(p *patient) {
				p.Into(p.Sites[1].Value.Cache.Concat, 1, func(v string) string { return p.Op("Mul", v, p.Float(2)) })
			},
			is: hasScale(1),
		},
		{
			name: "value doubled after the cache",
			change: func(p *patient) {
				p.Value(func(v string) string { return p.Op("Mul", v, p.Float(2)) })
			},
			kept: both("its value is multiplied by 2"),
		},
		{
			name: "value halved where there are many keys",
			change: func(p *patient) {
				p.Value(func(v string) string {
					many := p.Op("Greater", p.Size("attention_mask", 1), p.Int(5000))
					return p.Op("Mul", v, p.Op("Where", many, p.Float(0.5), p.Float(1)))
				})
			},
			kept: both("expected one value"),
		},
		{
			name: "key halved where there are many keys",
			change: func(p *patient) {
				p.Key(func(v string) string {
					many := p.Op("Greater", p.Size("attention_mask", 1), p.Int(5000))
					return p.Op("Mul", v, p.Op("Where", many, p.Float(0.5), p.Float(1)))
				})
			},
			kept: both("changed before it is cached and again when it is read"),
		},
		{
			name: "query halved where there are many keys",
			change: func(p *patient) {
				p.Query(func(v string) string {
					many := p.Op("Greater", p.Size("attention_mask", 1), p.Int(5000))
					return p.Op("Mul", v, p.Op("Where", many, p.Float(0.5), p.Float(1)))
				})
			},
			kept: both("is not rotated by position"),
		},
		{
			name: "probabilities halved where there are many keys",
			change: func(p *patient) {
				p.Probabilities(func(v string) string {
					many := p.Op("Greater", p.Size("attention_mask", 1), p.Int(5000))
					return p.Op("Mul", v, p.Op("Where", many, p.Float(0.5), p.Float(1)))
				})
			},
			kept: both("expected one value"),
		},
		{
			name: "channel of the value scaled after the cache",
			change: func(p *patient) {
				p.Value(func(v string) string { return p.Op("Mul", v, perHead(p)) })
			},
			kept: both("its value operand differs"),
		},
		{
			name: "key scaled after the cache",
			change: func(p *patient) {
				p.Into(p.Sites[1].ScoresMatMul, 1, func(v string) string { return p.Op("Mul", v, p.Float(1.25)) })
			},
			is: second(1.25),
		},
		{
			name: "key scaled before the cache",
			change: func(p *patient) {
				p.Into(p.Sites[0].Key.Cache.Concat, 1, func(v string) string { return p.Op("Mul", v, p.Float(1.25)) })
			},
			models: llamas,
		},
		{
			name: "channel of the key scaled after the cache",
			change: func(p *patient) {
				p.Key(func(v string) string {
					return p.Op("Mul", v, p.Op("Unsqueeze", perHead(p), p.Ints(1)))
				})
			},
			kept: both("its key operand differs"),
		},
		{
			name: "query and key exchanged",
			change: func(p *patient) {
				n := p.Sites[0].ScoresMatMul
				turn := func(v string) string { return p.Node("Transpose", []string{v}, onnx.IntsAttr("perm", 0, 1, 3, 2)) }
				n.Inputs[0], n.Inputs[1] = turn(n.Inputs[1]), turn(n.Inputs[0])
				p.After(n.Outputs[0], turn)
			},
			kept: []string{"expected the query", ""},
		},
		{
			name: "two query heads exchanged",
			change: func(p *patient) {
				p.Query(func(v string) string {
					return p.Node("Gather", []string{v, p.Ints(1, 0, 2, 3)}, onnx.IntAttr("axis", 1))
				})
			},
			kept: both("off by"),
		},
		{
			name: "two key heads exchanged",
			change: func(p *patient) {
				p.Key(func(v string) string {
					return p.Node("Gather", []string{v, p.Ints(1, 0, 3, 2)}, onnx.IntAttr("axis", 1))
				})
			},
			kept:   both("kv head"),
			models: []string{"gpt_neox__dynamo18", "gpt_neox__optimum"},
		},
		{
			name:   "key heads tiled, not repeated",
			change: func(p *patient) { p.tile(p.Sites[0].ScoresMatMul, 1, p.Sites[0].Key.Cache.Concat.Outputs[0]) },
			models: []string{"llama__dynamo18-eager"},
			kept:   []string{"reads kv head", ""},
		},
		{
			name:   "value heads tiled, not repeated",
			change: func(p *patient) { p.tile(p.Sites[0].ValueMatMul, 1, p.Sites[0].Value.Cache.Concat.Outputs[0]) },
			models: llamas,
			kept:   []string{"reads kv head", ""},
		},
		{
			name: "scores and attention by Einsum",
			change: func(p *patient) {
				einsum := func(n *onnx.Node, equation string) {
					n.OpType, n.Attributes = "Einsum", []*onnx.Attribute{onnx.StringAttr("equation", equation)}
				}
				for _, s := range p.Sites {
					p.Into(s.ScoresMatMul, 1, func(old string) string { return p.Node("Transpose", []string{old}, onnx.IntsAttr("perm", 0, 3, 1, 2)) })
					einsum(s.ScoresMatMul, "bhid,bjhd->bhij")
					einsum(s.ValueMatMul, "bhij, bhjd -> bhid")
				}
			},
			is: hasScale(1),
		},
		{
			name: "scores by an Einsum that is not read",
			change: func(p *patient) {
				for _, s := range p.Sites {
					s.ScoresMatMul.OpType, s.ScoresMatMul.Attributes = "Einsum", []*onnx.Attribute{onnx.StringAttr("equation", "...id,...dj->...ij")}
				}
			},
			kept: both("its equation is ...id,...dj->...ij"),
		},
		{
			name: "probabilities, scores and rotated keys as outputs",
			change: func(p *patient) {
				s := p.Sites[0]
				for _, v := range []string{s.Softmax.Outputs[0], s.Query.Operand, s.Key.Cached()} {
					p.Output(v)
				}
			},
			is: hasScale(1),
		},
		{
			name: "rotated key used by another node",
			change: func(p *patient) {
				p.Output(p.Op("Mul", p.Sites[0].Key.Cached(), p.Float(3)))
				p.Output(p.Op("Mul", p.Sites[1].Key.Cache.Concat.Outputs[0], p.Float(3)))
			},
			is: hasScale(1),
		},
		{
			name:   "attention output as an output",
			change: func(p *patient) { p.Output(p.Sites[0].Output()) },
			is:     hasScale(1),
		},
		{
			name: "past behind the new keys",
			change: func(p *patient) {
				for _, n := range []*onnx.Node{p.Sites[0].Key.Cache.Concat, p.Sites[0].Value.Cache.Concat} {
					n.Inputs[0], n.Inputs[1] = n.Inputs[1], n.Inputs[0]
				}
			},
			kept: []string{"is assembled from several values", ""},
		},
		{
			name: "cache with its keys transposed",
			change: func(p *patient) {
				s := p.Sites[1] // the sizes are read from the first layer's cache
				c := s.Key.Cache.Concat
				turn := func(v string) string { return p.Node("Transpose", []string{v}, onnx.IntsAttr("perm", 0, 1, 3, 2)) }
				p.After(c.Outputs[0], turn)
				c.Inputs[1] = turn(c.Inputs[1])
				c.SetAttribute(onnx.IntAttr("axis", 3))
				p.transposeCache(s.Key.Cache.Past, c.Outputs[0])
			},
			models: []string{"gpt_neox__dynamo18"},
			kept:   []string{"", "the key cache has the shape"},
		},
		{
			name: "the second layer reads the first one's cache",
			change: func(p *patient) {
				a, b := p.Sites[0], p.Sites[1]
				p.After(b.Key.Cache.Concat.Outputs[0], func(string) string { return a.Key.Cache.Concat.Outputs[0] })
				p.After(b.Value.Cache.Concat.Outputs[0], func(string) string { return a.Value.Cache.Concat.Outputs[0] })
			},
			kept: both("shares the cache"),
		},
		{
			name: "two softmaxes over one product",
			change: func(p *patient) {
				s := p.Sites[0]
				again := p.Node("Softmax", []string{s.SoftmaxInput()}, onnx.IntAttr("axis", -1))
				p.After(s.Output(), func(old string) string {
					return p.Op("Add", old, p.Op("MatMul", again, s.Value.Operand))
				})
			},
			models: []string{"llama__dynamo18-eager"}, // whose rows without keys are no NaN
			kept:   []string{"shares the cache", "shares the cache", ""},
		},
	}
}

// transposeCache says that a cache input and its output have their last two
// axes exchanged.
func (p *patient) transposeCache(past, present string) {
	for _, list := range [][]*onnx.ValueInfo{p.Graph.Inputs, p.Graph.Outputs} {
		for _, v := range list {
			if v.Name == past || v.Name == present {
				v.Shape[2], v.Shape[3] = v.Shape[3], v.Shape[2]
			}
		}
	}
}
