package lookalike_test

import (
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// fold makes one dimension of the first two, batch · heads.
func (p *patient) fold(v string) string {
	rest := p.Op("Slice", p.Op("Shape", v), p.Ints(2), p.Ints(4), p.Ints(0))
	return p.Op("Reshape", v, p.Node("Concat", []string{p.Ints(-1), rest}, onnx.IntAttr("axis", 0)))
}

// unfold is the way back.
func (p *patient) unfold(v string) string {
	rest := p.Op("Slice", p.Op("Shape", v), p.Ints(1), p.Ints(3), p.Ints(0))
	return p.Op("Reshape", v, p.Node("Concat", []string{p.Ints(-1, 4), rest}, onnx.IntAttr("axis", 0)))
}

// swap exchanges the first two dimensions, batch and heads.
func (p *patient) swap(v string) string {
	return p.Node("Transpose", []string{v}, onnx.IntsAttr("perm", 1, 0, 2, 3))
}

// folded gives the products of every layer operands and results of three dimensions.
func (p *patient) folded() {
	p.Query(p.fold)
	p.Key(p.fold)
	p.Value(p.fold)
	for _, s := range p.Sites {
		p.After(s.ValueMatMul.Outputs[0], p.unfold)
	}
}

// foldedMask adds the mask to folded scores; rows makes a folded mask of the mask for
// all heads.
func (p *patient) foldedMask(rows func(mask string) string) {
	for _, s := range p.Sites {
		add := p.Up(s.SoftmaxInput(), "Add")
		p.Into(add, 1, rows)
	}
}

// eachHead repeats a mask [batch, 1, length, total] for the heads.
func (p *patient) eachHead(mask string) string { return p.Op("Expand", mask, p.Ints(1, 4, 1, 1)) }

// foldedScores are scores with batch and heads in one dimension.
func foldedScores() []lookalike {
	models := []string{"gpt_neox__dynamo18", "llama__dynamo18", "llama__dynamo18-eager"}
	return []lookalike{
		{
			name: "the scores alone", models: append(models, "llama__optimum", "llama__dynamo18-nocache", "gpt_neox__ts17"), is: hasScale(1),
			change: func(p *patient) {
				p.Query(p.fold)
				p.Key(p.fold)
				p.Product(p.unfold)
			},
		},
		{
			name: "the softmax too", models: append(models, "llama__dynamo18-nocache"), is: hasScale(1),
			change: func(p *patient) {
				p.folded()
				p.Product(p.unfold)
				p.Scores(p.fold)
			},
		},
		{
			name: "the mask too", models: models, is: hasWindow(0),
			change: func(p *patient) {
				p.folded()
				p.foldedMask(func(mask string) string { return p.fold(p.eachHead(mask)) })
			},
		},
		{
			name: "a bias by distance", models: append(models, "llama__dynamo18-nocache"), is: hasSlopes(0.01),
			change: func(p *patient) {
				p.folded()
				p.Product(p.unfold)
				p.Scores(func(old string) string {
					return p.fold(p.Op("Add", old, p.Op("Mul", p.Cast(p.distance(), onnx.Float), p.Float(-0.01))))
				})
			},
		},
		{
			name: "masks of other rows of the batch", models: models, kept: both("hides all keys from some tokens that are not padding"),
			change: func(p *patient) {
				p.folded()
				p.foldedMask(func(mask string) string { return p.fold(p.swap(p.eachHead(mask))) })
			},
		},
		{
			name: "heads before the batch", models: models[:2], kept: both("its mask is not understood"),
			change: func(p *patient) {
				p.Query(func(v string) string { return p.fold(p.swap(v)) })
				p.Key(func(v string) string { return p.fold(p.swap(v)) })
				p.Product(func(v string) string {
					rest := p.Op("Slice", p.Op("Shape", v), p.Ints(1), p.Ints(3), p.Ints(0))
					return p.swap(p.Op("Reshape", v, p.Node("Concat", []string{p.Ints(4, -1), rest}, onnx.IntAttr("axis", 0))))
				})
			},
		},
		{
			name: "keys of the next head", models: models, kept: both("heads of its key"),
			change: func(p *patient) {
				p.Query(p.fold)
				p.Key(func(v string) string {
					v = p.fold(v)
					return p.Node("Concat", []string{
						p.Op("Slice", v, p.Ints(1), p.Ints(1<<40), p.Ints(0)),
						p.Op("Slice", v, p.Ints(0), p.Ints(1), p.Ints(0)),
					}, onnx.IntAttr("axis", 0))
				})
				p.Product(p.unfold)
			},
		},
		{
			name: "softmax over queries", models: models, kept: both("its axis is 1, expected 2"),
			change: func(p *patient) {
				p.folded()
				p.Product(p.unfold)
				p.Scores(p.fold)
				for _, s := range p.Sites {
					s.Softmax.SetAttribute(onnx.IntAttr("axis", 1))
				}
			},
		},
	}
}
