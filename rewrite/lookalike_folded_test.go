package rewrite_test

import "github.com/rope-rewrite/rope-rewrite/onnx"

// fold makes one dimension of the first two, batch · heads.
func (p *patient) fold(v string) string {
	rest := p.op("Slice", p.op("Shape", v), p.ints(2), p.ints(4), p.ints(0))
	return p.op("Reshape", v, p.node("Concat", []string{p.ints(-1), rest}, onnx.IntAttr("axis", 0)))
}

// unfold is the way back.
func (p *patient) unfold(v string) string {
	rest := p.op("Slice", p.op("Shape", v), p.ints(1), p.ints(3), p.ints(0))
	return p.op("Reshape", v, p.node("Concat", []string{p.ints(-1, 4), rest}, onnx.IntAttr("axis", 0)))
}

// swap exchanges the first two dimensions, batch and heads.
func (p *patient) swap(v string) string {
	return p.node("Transpose", []string{v}, onnx.IntsAttr("perm", 1, 0, 2, 3))
}

// folded gives the products of every layer operands and results of three dimensions.
func (p *patient) folded() {
	p.query(p.fold)
	p.key(p.fold)
	p.value(p.fold)
	for _, s := range p.sites {
		p.after(s.ValueMatMul.Outputs[0], p.unfold)
	}
}

// foldedMask adds the mask to folded scores; rows makes a folded mask of the mask for
// all heads.
func (p *patient) foldedMask(rows func(mask string) string) {
	for _, s := range p.sites {
		add := p.up(s.SoftmaxInput(), "Add")
		p.into(add, 1, rows)
	}
}

// eachHead repeats a mask [batch, 1, length, total] for the heads.
func (p *patient) eachHead(mask string) string { return p.op("Expand", mask, p.ints(1, 4, 1, 1)) }

// foldedScores are scores with batch and heads in one dimension.
func foldedScores() []lookalike {
	models := []string{"gpt_neox__dynamo18", "llama__dynamo18", "llama__dynamo18-eager"}
	return []lookalike{
		{
			name: "the scores alone", models: append(models, "llama__optimum", "llama__dynamo18-nocache", "gpt_neox__ts17"), is: hasScale(1),
			change: func(p *patient) {
				p.query(p.fold)
				p.key(p.fold)
				p.product(p.unfold)
			},
		},
		{
			name: "the softmax too", models: append(models, "llama__dynamo18-nocache"), is: hasScale(1),
			change: func(p *patient) {
				p.folded()
				p.product(p.unfold)
				p.scores(p.fold)
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
			name: "a bias by distance", models: append(models, "llama__dynamo18-nocache"), is: ownBias(true),
			change: func(p *patient) {
				p.folded()
				p.product(p.unfold)
				p.scores(func(old string) string {
					return p.fold(p.op("Add", old, p.op("Mul", p.cast(p.distance(), onnx.Float), p.float(-0.01))))
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
				p.query(func(v string) string { return p.fold(p.swap(v)) })
				p.key(func(v string) string { return p.fold(p.swap(v)) })
				p.product(func(v string) string {
					rest := p.op("Slice", p.op("Shape", v), p.ints(1), p.ints(3), p.ints(0))
					return p.swap(p.op("Reshape", v, p.node("Concat", []string{p.ints(4, -1), rest}, onnx.IntAttr("axis", 0))))
				})
			},
		},
		{
			name: "keys of the next head", models: models, kept: both("heads of its key"),
			change: func(p *patient) {
				p.query(p.fold)
				p.key(func(v string) string {
					v = p.fold(v)
					return p.node("Concat", []string{
						p.op("Slice", v, p.ints(1), p.ints(1<<40), p.ints(0)),
						p.op("Slice", v, p.ints(0), p.ints(1), p.ints(0)),
					}, onnx.IntAttr("axis", 0))
				})
				p.product(p.unfold)
			},
		},
		{
			name: "softmax over queries", models: models, kept: both("its axis is 1, 2 was expected"),
			change: func(p *patient) {
				p.folded()
				p.product(p.unfold)
				p.scores(p.fold)
				for _, s := range p.sites {
					s.Softmax.SetAttribute(onnx.IntAttr("axis", 1))
				}
			},
		},
	}
}
