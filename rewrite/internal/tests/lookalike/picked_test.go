package lookalike_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// castLike casts an input of a node like the query of a layer.
func (p *patient) castLike(n *onnx.Node, i, layer int) {
	p.Into(n, i, func(old string) string { return p.Op("CastLike", old, p.Sites[layer].Query.Operand) })
}

// castsLike are values that are cast like hidden states.
func castsLike() []lookalike {
	models := []string{"llama__dynamo18", "gpt_neox__dynamo18", "llama__dynamo18-nocache"}
	return []lookalike{
		{
			name: "a factor cast like the query", models: append(models, "llama__dynamo18-fp16"), is: hasScale(1.5),
			change: func(p *patient) {
				for _, s := range p.Sites {
					p.After(s.Scores(), func(old string) string {
						return p.Op("Mul", old, p.Op("CastLike", p.Float(1.5), s.Query.Operand))
					})
				}
			},
		},
		{
			name: "keys and values cast like the query", models: models, is: hasScale(1),
			change: func(p *patient) {
				for layer, s := range p.Sites {
					p.castLike(s.ScoresMatMul, 1, layer)
					p.castLike(s.ValueMatMul, 1, layer)
				}
			},
		},
		{
			name: "keys cast like another layer's query", models: models[:1], kept: []string{"", "the original cannot be evaluated by itself"},
			change: func(p *patient) { p.castLike(p.Sites[1].ScoresMatMul, 1, 0) },
		},
		{
			name: "a factor out of the query", models: models, kept: both("its scores also depend on"),
			change: func(p *patient) {
				for _, s := range p.Sites {
					p.After(s.Scores(), func(old string) string {
						return p.Op("Mul", old, p.Op("Slice", s.Query.Operand, p.Ints(0, 0, 0), p.Ints(1, 1, 1), p.Ints(1, 2, 3)))
					})
				}
			},
		},
		{
			name: "keys cast like token ids", models: models, kept: both("the heads of its key are not those expected"),
			change: func(p *patient) {
				p.Key(func(old string) string { return p.Cast(p.Op("CastLike", old, "input_ids"), onnx.Float) })
			},
		},
	}
}

// picked gives every layer keys that GatherND takes out of a value that holds them and
// twice themselves.
func (p *patient) picked(part int64) {
	for _, s := range p.Sites {
		p.After(s.Key.Boundary, func(v string) string {
			twice := p.Op("Unsqueeze", p.Op("Mul", v, p.Float(2)), p.Ints(0))
			both := p.Node("Concat", []string{p.Op("Unsqueeze", v, p.Ints(0)), twice}, onnx.IntAttr("axis", 0))
			return p.Op("GatherND", both, p.Ints(part))
		})
	}
}

// headsPicked takes heads of the key of every layer by GatherND.
func (p *patient) headsPicked(heads ...int64) {
	for _, s := range p.Sites {
		list := p.Op("Unsqueeze", p.Ints(heads...), p.Ints(1))
		p.After(s.Key.Boundary, func(v string) string {
			first := p.Node("Transpose", []string{v}, onnx.IntsAttr("perm", 1, 0, 2, 3))
			return p.Node("Transpose", []string{p.Op("GatherND", first, list)}, onnx.IntsAttr("perm", 1, 0, 2, 3))
		})
	}
}

func hasKeyHeads(want int) func(int, rope.Attention) error {
	return func(_ int, a rope.Attention) error {
		if a.KVHeads != want {
			return fmt.Errorf("%d heads of the key, %d were expected", a.KVHeads, want)
		}
		return nil
	}
}

// pickedParts are keys that GatherND takes out of a larger value.
func pickedParts() []lookalike {
	cached, without := []string{"llama__dynamo18"}, []string{"llama__dynamo18-nocache"}
	return []lookalike{
		{name: "keys", models: append(without, cached...), is: hasKeyHeads(2), change: func(p *patient) { p.picked(0) }},
		{name: "twice the keys", models: append(without, cached...), is: hasKeyHeads(2), change: func(p *patient) { p.picked(1) }},
		{name: "heads exchanged before they are cached", models: cached, is: hasKeyHeads(2), change: func(p *patient) { p.headsPicked(1, 0) }},
		{name: "one head twice before it is cached", models: cached, is: hasKeyHeads(2), change: func(p *patient) { p.headsPicked(0, 0) }},
		{
			name: "heads exchanged", models: without, kept: both("query head 0 reads kv head 1, expected 0"),
			change: func(p *patient) { p.headsPicked(1, 0) },
		},
		{
			name: "one head twice", models: without, kept: both("query head 2 reads kv head 0, expected 1"),
			change: func(p *patient) { p.headsPicked(0, 0) },
		},
	}
}
