package lookalike_test

import (
	"errors"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

var opset23 = []string{"llama__dynamo23", "gpt_neox__dynamo23"}

// cacheInside makes the Attention of every layer append to the cache itself.
func (p *patient) cacheInside() {
	for _, s := range p.Sites {
		n := s.Replaced[0]
		for len(n.Inputs) < 4 {
			n.Inputs = append(n.Inputs, "")
		}
		n.Inputs = append(n.Inputs[:4], s.Key.Cache.Past, s.Value.Cache.Past)
		n.Inputs[1], n.Inputs[2] = s.Key.Cache.NewRows, s.Value.Cache.NewRows
		n.Outputs = []string{n.Outputs[0], s.Key.Cache.Concat.Outputs[0], s.Value.Cache.Concat.Outputs[0]}
		p.Graph.RemoveNodes(func(n *onnx.Node) bool { return n == s.Key.Cache.Concat || n == s.Value.Cache.Concat })
	}
}

// fromTables makes every RotaryEmbedding gather from tables by position_ids.
func (p *patient) fromTables(rows, pairs int, theta float64) {
	var cos, sin []float32
	for position := range rows {
		for i := range pairs {
			s, c := math.Sincos(float64(float32(position) * float32(math.Pow(theta, -float64(i)/float64(pairs)))))
			cos, sin = append(cos, float32(c)), append(sin, float32(s))
		}
	}
	dims := []int64{int64(rows), int64(pairs)}
	c, s := p.Floats(dims, cos...), p.Floats(dims, sin...)
	for _, n := range p.All("RotaryEmbedding") {
		n.Inputs = []string{n.Inputs[0], c, s, "position_ids"}
	}
}

// fusedAttribute sets an attribute of every layer's Attention.
func fusedAttribute(a *onnx.Attribute) func(p *patient) {
	return func(p *patient) { p.FusedEach(func(n *onnx.Node) { n.SetAttribute(a) }) }
}

// rotaries sets an attribute of every RotaryEmbedding.
func rotaries(a *onnx.Attribute) func(p *patient) {
	return func(p *patient) {
		for _, n := range p.All("RotaryEmbedding") {
			n.SetAttribute(a)
		}
	}
}

func isInterleaved(_ int, a rope.Attention) error {
	if a.Encoding.Layout != rope.Interleaved {
		return errors.New("the layout is half")
	}
	return nil
}

func hasRotaryDim(want int) func(int, rope.Attention) error {
	return func(_ int, a rope.Attention) error {
		if got := a.Encoding.RotaryDim(); got != want {
			return fmt.Errorf("%d channels are rotated, %d were expected", got, want)
		}
		return nil
	}
}

func fusedAttentions() []lookalike {
	return []lookalike{
		{name: "nothing", change: func(*patient) {}, models: opset23, is: hasScale(1)},
		{name: "scale 1 % larger", change: fusedAttribute(onnx.FloatAttr("scale", 0.2525)), models: opset23, is: hasScale(1.01)},
		{
			name:   "no scale given",
			change: func(p *patient) { p.FusedEach(func(n *onnx.Node) { n.Attributes = nil }) },
			models: opset23, is: hasScale(1),
		},
		{name: "softcap", change: fusedAttribute(onnx.FloatAttr("softcap", 5)), models: opset23, is: hasSoftcap(5)},
		{
			name: "causal from the first key on", change: fusedAttribute(onnx.IntAttr("is_causal", 1)),
			models: opset23, is: ownBias(true),
		},
		{
			name: "no mask", models: opset23, is: seesAll,
			change: func(p *patient) { p.FusedEach(func(n *onnx.Node) { n.Inputs = n.Inputs[:3] }) },
		},
		{
			name: "cache inside", models: []string{"gpt_neox__dynamo23", "llama__dynamo23"},
			change: (*patient).cacheInside, is: hasScale(1),
		},
		{
			name: "cache inside, grouped heads", models: []string{"llama__dynamo23"},
			change: (*patient).cacheInside, is: hasScale(1),
		},
		{
			name: "cache inside, causal, no mask", models: opset23, is: noPadding,
			change: func(p *patient) {
				p.cacheInside()
				p.FusedEach(func(n *onnx.Node) { n.Inputs[3] = ""; n.SetAttribute(onnx.IntAttr("is_causal", 1)) })
			},
		},
		{
			name: "cache inside, causal and mask", models: opset23, is: hasWindow(0),
			change: func(p *patient) {
				p.cacheInside()
				p.FusedEach(func(n *onnx.Node) { n.SetAttribute(onnx.IntAttr("is_causal", 1)) })
			},
		},
		{name: "3 dimensions", models: opset23, change: func(p *patient) { p.Flatten(4) }, is: hasScale(1)},
		{
			name: "3 dimensions, cache inside, grouped heads", models: []string{"llama__dynamo23"}, is: hasScale(1),
			change: func(p *patient) { p.cacheInside(); p.Flatten(2) },
		},
		{
			name: "3 dimensions that make other heads", models: []string{"llama__dynamo23"}, kept: both("the query has 4 heads, the scores have 2"),
			change: func(p *patient) {
				p.Flatten(4)
				p.FusedEach(func(n *onnx.Node) {
					n.SetAttribute(onnx.IntAttr("q_num_heads", 2))
					n.SetAttribute(onnx.IntAttr("kv_num_heads", 2))
					n.SetAttribute(onnx.FloatAttr("scale", 0.25))
				})
			},
		},
		{
			name: "mask of numbers", models: opset23, is: hasScale(1),
			change: func(p *patient) {
				p.FusedEach(func(n *onnx.Node) {
					p.Into(n, 3, func(v string) string { return p.Op("Where", v, p.Float(0), p.Float(-math.MaxFloat32)) })
				})
			},
		},
		{
			name: "mask of numbers that are small", models: opset23, is: ownBias(false),
			change: func(p *patient) {
				p.FusedEach(func(n *onnx.Node) {
					p.Into(n, 3, func(v string) string { return p.Op("Where", v, p.Float(0), p.Float(-3)) })
				})
			},
		},
		{name: "window", models: opset23, is: hasWindow(9), change: func(p *patient) { p.window(9) }},
		{
			name: "mask with a hole", models: opset23, is: ownBias(true),
			change: func(p *patient) {
				p.VisibleIf(func() string { return p.Op("Not", p.Op("Equal", p.distance(), p.Int(2))) })
			},
		},
		{
			name: "product of query and key wanted", models: opset23, kept: []string{"qk_matmul_output", "cannot be measured"},
			change: func(p *patient) {
				n := p.Fused(0)
				n.Outputs = append(n.Outputs, "", "", p.Fresh("qk"))
				p.Output(n.Outputs[3])
			},
		},
		{
			name: "outside cache length", models: opset23,
			change: func(p *patient) {
				p.RequireOpset("", 24)
				p.FusedEach(func(n *onnx.Node) {
					visible := p.Op("Min", p.Size(n.Inputs[1], 2), p.Ints(5)) // of each row the same
					n.Inputs = append(n.Inputs, "", "", p.Op("Expand", visible, p.Op("Unsqueeze", p.Size(n.Inputs[0], 0), p.Ints(0))))
				})
			},
		},
		{
			name: "keys of a call as an output", models: opset23, kept: []string{"is also used, which the op does not have", ""},
			change: func(p *patient) {
				n := p.Fused(0)
				n.Outputs = append(n.Outputs, p.Fresh("keys"))
				p.Output(n.Outputs[1])
			},
		},
		{
			name: "two attentions over one cache", models: []string{"gpt_neox__dynamo23"}, kept: both("shares the cache"),
			change: func(p *patient) {
				a, b := p.Fused(0), p.Fused(1)
				b.Inputs[1], b.Inputs[2] = a.Inputs[1], a.Inputs[2]
			},
		},
		{
			name: "two attentions over one inner cache", models: []string{"gpt_neox__dynamo23"}, kept: both("shares the cache"),
			change: func(p *patient) {
				p.cacheInside()
				a, b := p.Fused(0), p.Fused(1)
				b.Inputs = []string{b.Inputs[0], a.Outputs[1], a.Outputs[2], b.Inputs[3]}
				b.Outputs = b.Outputs[:1]
				for _, v := range []string{"present.1.key", "present.1.value"} {
					p.Graph.RemoveOutput(v)
				}
			},
		},
		{
			name: "an op of another domain", models: opset23, kept: []string{"cannot be evaluated"},
			change: func(p *patient) { p.Fused(0).Domain = "com.example"; p.RequireOpset("com.example", 1) },
		},
		{
			name: "the standard domain by its long name", models: opset23, is: hasScale(1),
			change: func(p *patient) { p.FusedEach(func(n *onnx.Node) { n.Domain = "ai.onnx" }) },
		},
	}
}

func fusedRotations() []lookalike {
	return []lookalike{
		{name: "interleaved", models: opset23, change: rotaries(onnx.IntAttr("interleaved", 1)), is: isInterleaved},
		{
			name: "query interleaved alone", models: opset23, kept: []string{"rotated differently", ""},
			change: func(p *patient) {
				p.Up(p.Sites[0].Query.Operand, "RotaryEmbedding").SetAttribute(onnx.IntAttr("interleaved", 1))
			},
		},
		{
			name: "half of the channels", models: []string{"llama__dynamo23"}, is: hasRotaryDim(8),
			change: func(p *patient) {
				for _, n := range p.All("RotaryEmbedding") {
					n.SetAttribute(onnx.IntAttr("rotary_embedding_dim", 8))
					for i := 1; i < 3; i++ {
						p.Into(n, i, func(v string) string { return p.Op("Slice", v, p.Ints(0), p.Ints(4), p.Ints(2)) })
					}
				}
			},
		},
		{
			name: "3 dimensions", models: opset23, is: hasScale(1),
			change: func(p *patient) {
				for _, n := range p.All("RotaryEmbedding") {
					heads := n.Int("num_heads", 0)
					p.After(n.Outputs[0], func(v string) string { return p.Deep(v, heads) })
					p.Into(n, 0, p.Flat)
				}
			},
		},
		{
			name: "gathered from tables", models: []string{"llama__dynamo23"}, farthest: 599, is: hasRotaryDim(16),
			change: func(p *patient) { p.fromTables(600, 8, 10000) },
		},
		{
			name: "cosine 1 % larger", models: opset23, kept: both("is not rotated by position"),
			change: func(p *patient) {
				for _, n := range p.All("RotaryEmbedding") {
					p.Into(n, 1, func(v string) string { return p.Op("Mul", v, p.Float(1.01)) })
				}
			},
		},
		{
			name: "sine and cosine exchanged", models: opset23, // halves that change places, and one turns its sign
			change: func(p *patient) {
				for _, n := range p.All("RotaryEmbedding") {
					n.Inputs[1], n.Inputs[2] = n.Inputs[2], n.Inputs[1]
				}
			},
		},
		{
			name: "value rotated", models: []string{"llama__dynamo23"}, kept: []string{"off by", ""},
			change: func(p *patient) {
				n := p.Up(p.Sites[0].Key.Cached(), "RotaryEmbedding")
				p.Into(p.Sites[0].Value.Cache.Concat, 1, func(v string) string {
					return p.Node("RotaryEmbedding", []string{v, n.Inputs[1], n.Inputs[2]})
				})
			},
		},
	}
}
