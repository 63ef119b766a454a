package kit

import (
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// Crosses are the cross-attentions of an encoder-decoder, which stand behind self-attentions.
func (p *Patient) Crosses() (list []*site.Site) {
	for i, s := range p.Sites {
		if i%2 == 1 {
			list = append(list, s)
		}
	}
	return list
}

// Fused returns a layer's Attention.
func (p *Patient) Fused(layer int) *onnx.Node { return p.Sites[layer].Replaced[0] }

// FusedEach changes the Attention of every layer.
func (p *Patient) FusedEach(change func(n *onnx.Node)) {
	for layer := range p.Sites {
		change(p.Fused(layer))
	}
}

// Flat brings [batch, heads, rows, channels] into [batch, rows, heads · channels].
func (p *Patient) Flat(v string) string {
	return p.Op("Reshape", p.Node("Transpose", []string{v}, onnx.IntsAttr("perm", 0, 2, 1, 3)), p.Ints(0, 0, -1))
}

// Deep is the way back.
func (p *Patient) Deep(v string, heads int64) string {
	return p.Node("Transpose", []string{p.Op("Reshape", v, p.Ints(0, 0, heads, -1))}, onnx.IntsAttr("perm", 0, 2, 1, 3))
}

// Flatten gives the Attention of every layer inputs and output of 3 dimensions.
func (p *Patient) Flatten(keyHeads int64) {
	p.FusedEach(func(n *onnx.Node) {
		p.After(n.Outputs[0], func(v string) string { return p.Deep(v, 4) })
		for i := range 3 {
			p.Into(n, i, p.Flat)
		}
		n.SetAttribute(onnx.IntAttr("q_num_heads", 4))
		n.SetAttribute(onnx.IntAttr("kv_num_heads", keyHeads))
	})
}

// Past returns how many tokens are cached.
func (p *Patient) Past() string {
	if p.Sites[0].Key.Cache == nil {
		return p.Int(0)
	}
	return p.Size("past_key_values.0.key", 2)
}

// VisibleIf hides keys beyond what the export hides, where condition is false.
func (p *Patient) VisibleIf(condition func() string) {
	le := p.First("LessOrEqual")
	p.After(le.Outputs[0], func(old string) string { return p.Op("And", old, condition()) })
}

// Scores changes what enters the softmax of every layer.
func (p *Patient) Scores(change func(old string) string) {
	for _, s := range p.Sites {
		p.Into(s.Softmax, 0, change)
	}
}

// Product changes the scores of every layer before its mask.
func (p *Patient) Product(change func(old string) string) {
	for _, s := range p.Sites {
		p.After(s.Scores(), change)
	}
}

// Tanh limits a value smoothly.
func (p *Patient) Tanh(v string, limit float32) string {
	return p.Op("Mul", p.Op("Tanh", p.Op("Div", v, p.Float(limit))), p.Float(limit))
}

// Sink puts a column behind the keys of every layer and takes its probability
// away: a logit per head and what shift makes of the first key's score.
func (p *Patient) Sink(shift func(first string) string) {
	for _, s := range p.Sites {
		p.Into(s.Softmax, 0, func(old string) string {
			first := p.Op("Slice", old, p.Ints(0), p.Ints(1), p.Ints(3))
			logits := p.Op("Add", shift(first), p.Floats([]int64{1, 4, 1, 1}, 1, 2, -1, 0.5))
			return p.Node("Concat", []string{old, logits}, onnx.IntAttr("axis", 3))
		})
		p.After(s.Softmax.Outputs[0], func(old string) string {
			return p.Op("Slice", old, p.Ints(0), p.Ints(-1), p.Ints(3))
		})
	}
}

// Chunked lets tokens see those of their own chunk only.
func (p *Patient) Chunked(size int64) {
	p.VisibleIf(func() string {
		past := p.Past()
		total := p.Op("Add", past, p.Size("input_ids", 1))
		q := p.Op("Unsqueeze", p.Op("Range", past, total, p.Int(1)), p.Ints(1))
		k := p.Op("Unsqueeze", p.Op("Range", p.Int(0), total, p.Int(1)), p.Ints(0))
		return p.Op("Equal", p.Op("Div", q, p.Int(size)), p.Op("Div", k, p.Int(size)))
	})
}

// Angles changes what the cosines and sines are of, [1, length, width].
func (p *Patient) Angles(change func(old string) string) {
	cos, _ := p.Tables()
	p.After(cos.Inputs[0], change)
}

// GivenKeys changes keys right behind their rotation, and gives them away for later calls.
func (p *Patient) GivenKeys(change func(old string) string) {
	for _, s := range p.Sites {
		p.After(p.Rotation(s.Key.Operand).Sum.Outputs[0], func(old string) string {
			given := change(old)
			p.Output(given)
			return given
		})
	}
}

// DependsOnPadding is why a site is kept whose padded tokens are read.
const DependsOnPadding = "the output for other tokens depends on them"

// PerPair is a vector of ones over the rotated channels, both halves changed alike.
func (p *Patient) PerPair(change func(f []float32)) string {
	half := 8
	if p.Sites[0].ScoresMatMul != nil && len(p.All("LayerNormalization")) > 0 || len(p.All("Erf")) > 0 {
		half = 4 // gpt_neox turns half of its 16 channels
	}
	f := make([]float32, half)
	for i := range f {
		f[i] = 1
	}
	change(f)
	return p.Floats([]int64{int64(2 * half)}, append(f, f...)...)
}

// OtherTables makes cosines and sines of other angles for one branch's products.
func (p *Patient) OtherTables(value string, angles func(old string) string) {
	cos, sin := p.Tables()
	r := p.Rotation(value)
	for _, x := range []struct {
		product *onnx.Node
		maker   *onnx.Node
	}{{r.Cos, cos}, {r.Sin, sin}} {
		table := p.Op("Unsqueeze", p.Op(x.maker.OpType, angles(x.maker.Inputs[0])), p.Ints(1))
		x.product.Inputs[1] = table
	}
}

// Normed divides by the root of the mean square over a head's channels.
func (p *Patient) Normed(v string) string {
	mean := p.Op("ReduceMean", p.Op("Mul", v, v), p.Ints(3))
	return p.Op("Div", v, p.Op("Sqrt", p.Op("Add", mean, p.Float(1e-6))))
}

// NormedBoth norms query and key behind their rotation.
func (p *Patient) NormedBoth() {
	p.Query(p.Normed)
	for _, s := range p.Sites {
		p.Into(s.Key.Cache.Concat, 1, p.Normed)
	}
}
