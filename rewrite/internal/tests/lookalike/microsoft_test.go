package lookalike_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

var (
	fusions   = []string{"gpt_neox__dynamo18-fusions"}
	optimised = []string{"llama__optimum-ort"}
)

func seesAll(_ int, a rope.Attention) error {
	if a.Mask != (rope.Mask{}) {
		return fmt.Errorf("the mask is %s", a.Mask.String())
	}
	return nil
}

func multiHeadAttentions() []lookalike {
	return []lookalike{
		{name: "nothing", models: fusions, change: func(*patient) {}, is: hasScale(1)},
		{name: "scale 1 % larger", models: fusions, change: fusedAttribute(onnx.FloatAttr("scale", 0.2525)), is: hasScale(1.01)},
		{
			name: "no mask", models: fusions, is: seesAll,
			change: func(p *patient) { p.FusedEach(func(n *onnx.Node) { n.Inputs = n.Inputs[:3] }) },
		},
		{
			// Without a past of its own the op counts queries from the first key on.
			name: "unidirectional over a cache outside", models: fusions, kept: both("hides all keys from some tokens that are not padding"),
			change: fusedAttribute(onnx.IntAttr("unidirectional", 1)),
		},
		{
			name: "a bias that grows with the distance", models: fusions, is: hasSlopes(-1),
			change: func(p *patient) {
				p.FusedEach(func(n *onnx.Node) {
					p.Into(n, 5, func(v string) string { return p.Op("Add", v, p.Cast(p.distance(), onnx.Float)) })
				})
			},
		},
		{
			name: "heads of half the size", models: fusions, kept: both("the scores have 8"),
			change: fusedAttribute(onnx.IntAttr("num_heads", 8)),
		},
		{name: "an attribute of a later version", models: fusions, kept: both("attribute kv_num_heads"), change: fusedAttribute(onnx.IntAttr("kv_num_heads", 2))},
		{
			name: "scores wanted", models: fusions, kept: []string{"outputs the product", "cannot be measured"},
			change: func(p *patient) {
				n := p.Fused(0)
				n.Outputs = append(n.Outputs, "", "", p.Fresh("qk"))
				p.Output(n.Outputs[3])
			},
		},
		{
			name: "keys of a call as an output", models: fusions, kept: []string{"is also used, which the op does not have", ""},
			change: func(p *patient) {
				n := p.Fused(0)
				n.Outputs = append(n.Outputs, p.Fresh("keys"))
				p.Output(n.Outputs[1])
			},
		},
		{
			name: "sine and cosine exchanged", models: fusions, // halves that change places, and one turns its sign
			change: func(p *patient) {
				for _, n := range p.All("RotaryEmbedding") {
					n.Inputs[2], n.Inputs[3] = n.Inputs[3], n.Inputs[2]
				}
			},
		},
	}
}

func fusedMatMuls() []lookalike {
	each := func(change func(p *patient, n *onnx.Node)) func(p *patient) {
		return func(p *patient) {
			for _, n := range p.All("FusedMatMul") {
				change(p, n)
			}
		}
	}
	return []lookalike{
		{name: "nothing", models: optimised, change: func(*patient) {}, is: hasScale(1)},
		{name: "alpha 1 % larger", models: optimised, change: each(func(_ *patient, n *onnx.Node) { n.SetAttribute(onnx.FloatAttr("alpha", 0.2525)) }), is: hasScale(1.01)},
		{name: "alpha negative", models: optimised, change: each(func(_ *patient, n *onnx.Node) { n.SetAttribute(onnx.FloatAttr("alpha", -0.25)) }), kept: both("scores are multiplied by -0.25")},
		{
			name: "an attribute of a later version", models: optimised, kept: both("attribute activation"),
			change: each(func(_ *patient, n *onnx.Node) { n.SetAttribute(onnx.StringAttr("activation", "Relu")) }),
		},
		{
			name: "heads and rows of the query exchanged on the way", models: optimised, is: hasScale(1),
			change: each(func(p *patient, n *onnx.Node) {
				p.Into(n, 0, func(v string) string { return p.Node("Transpose", []string{v}, onnx.IntsAttr("perm", 2, 0, 1, 3)) })
				n.SetAttribute(onnx.IntAttr("transBatchA", 1))
			}),
		},
	}
}
