package lookalike_test

import (
	"fmt"
	"math"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// isCross checks the kinds of attention of an encoder-decoder, and something of those that cross.
func isCross(more func(rope.Attention) error) func(int, rope.Attention) error {
	return func(layer int, a rope.Attention) error {
		crosses := layer%2 == 1
		if a.Cross != crosses || (len(a.Encoding.Frequencies) == 0) != crosses {
			return fmt.Errorf("cross-attention is %v, with %d frequencies", a.Cross, len(a.Encoding.Frequencies))
		}
		if crosses && more != nil {
			return more(a)
		}
		return nil
	}
}

// sourceMask gives the model a mask of the encoder's frames, and returns it as bool
// [batch, 1, 1, frames].
func (p *patient) sourceMask(frames string) string {
	p.Graph.AddInput(onnx.NewValueInfo("encoder_attention_mask", onnx.Int64, onnx.Dim{Param: "batch"}, onnx.Dim{Param: frames}))
	return p.Op("Unsqueeze", p.Cast("encoder_attention_mask", onnx.Bool), p.Ints(1, 2))
}

// hides hides the scores of cross-attentions where what visible gives is false.
func (p *patient) hides(visible func(s *site.Site) string) {
	for _, s := range p.Crosses() {
		p.After(s.Scores(), func(old string) string { return p.Op("Where", visible(s), old, p.Float(-1e30)) })
	}
}

// counted returns the numbers of a dimension of a value, as [n].
func (p *patient) counted(value string, axis int64) string {
	return p.Op("Range", p.Int(0), p.Size(value, axis), p.Int(1))
}

// keptCross says that the cross-attentions are kept for a reason.
func keptCross(reason string) []string { return []string{"", reason, "", reason} }

// crossAttentions are encoder-decoders: the keys of every second attention are those of
// another text.
func crossAttentions() []lookalike {
	const cached, states = "moonshine__dynamo18", "moonshine__dynamo18-nocache"
	all := make([]string, 4)
	both := []string{cached, states}
	eachScore := func(change func(p *patient, s *site.Site, old string) string) func(p *patient) {
		return func(p *patient) {
			for _, s := range p.Crosses() {
				p.After(s.Scores(), func(old string) string { return change(p, s, old) })
			}
		}
	}
	eachKey := func(change func(p *patient, s *site.Site, old string) string) func(p *patient) {
		return func(p *patient) {
			for _, s := range p.Crosses() {
				p.Into(s.ScoresMatMul, 1, func(old string) string { return change(p, s, old) })
			}
		}
	}
	scaled := isCross(func(a rope.Attention) error { return near("the scale", a.EffectiveScale(), 1.5/math.Sqrt(8)) })
	padded := isCross(func(a rope.Attention) error {
		if !a.Mask.Padding || a.Mask.Causal {
			return fmt.Errorf("the mask is %s", a.Mask.String())
		}
		return nil
	})
	return []lookalike{
		{name: "nothing changed, keys and values given", models: []string{cached}, kept: all, is: isCross(nil), change: func(*patient) {}},
		{name: "nothing changed, states given", models: []string{states}, kept: all, is: isCross(nil), change: func(*patient) {}},
		{
			name: "another scale", models: both, kept: all, is: scaled,
			change: eachScore(func(p *patient, _ *site.Site, old string) string { return p.Op("Mul", old, p.Float(1.5)) }),
		},
		{
			name: "fewer heads of keys and values", models: []string{cached}, kept: all, is: isCross(func(a rope.Attention) error { return hasKeyHeads(2)(1, a) }),
			change: func(p *patient) {
				for _, v := range p.Graph.Inputs {
					if strings.HasPrefix(v.Name, "cross_") {
						p.After(v.Name, func(old string) string {
							two := p.Op("Unsqueeze", p.Op("Slice", old, p.Ints(0), p.Ints(2), p.Ints(1)), p.Ints(2))
							return p.Op("Reshape", p.Op("Expand", two, p.Ints(1, 1, 2, 1, 1)), p.Ints(0, 4, -1, 8))
						})
					}
				}
			},
		},
		{
			name: "a mask of the source", models: both, kept: all, is: padded,
			change: func(p *patient) {
				mask := p.sourceMask("frames")
				p.hides(func(*site.Site) string { return mask })
			},
		},
		{
			name: "a mask of the source whose size has another name", models: []string{states}, kept: all, is: padded,
			change: func(p *patient) {
				mask := p.sourceMask("tokens")
				p.hides(func(*site.Site) string { return mask })
			},
		},
		{
			name: "padding among the decoder's own tokens", models: both, kept: all, is: isCross(nil),
			change: func(p *patient) {
				p.Graph.AddInput(onnx.NewValueInfo("attention_mask", onnx.Int64, onnx.Dim{Param: "batch"}, onnx.Dim{Param: "total"}))
				real := p.Op("Unsqueeze", p.Cast("attention_mask", onnx.Bool), p.Ints(1, 2))
				for i, s := range p.Sites {
					if i%2 == 0 {
						p.After(s.SoftmaxInput(), func(old string) string { return p.Op("Where", real, old, p.Float(-1e30)) })
					}
				}
			},
		},
		{
			name: "another scale for each head", models: both, kept: keptCross("its mask is not understood"),
			change: eachScore(func(p *patient, _ *site.Site, old string) string {
				return p.Op("Mul", old, p.Floats([]int64{1, 4, 1, 1}, 1, 1, 1.01, 1))
			}),
		},
		{
			name: "a scale by the number of keys", models: both, kept: keptCross("its mask is not understood"),
			change: eachScore(func(p *patient, s *site.Site, old string) string {
				return p.Op("Mul", old, p.Op("Log", p.Cast(p.Size(s.Scores(), 3), onnx.Float)))
			}),
		},
		{
			name: "keys hidden from earlier queries", models: both, kept: keptCross("its mask is not understood"),
			change: func(p *patient) {
				p.hides(func(s *site.Site) string {
					queries := p.Op("Unsqueeze", p.counted(s.Query.Operand, 2), p.Ints(1))
					return p.Op("LessOrEqual", p.counted(s.Value.Operand, 2), p.Op("Add", queries, p.Int(2)))
				})
			},
		},
		{
			name: "keys hidden from late queries", models: both, kept: keptCross("its mask is not understood"),
			change: func(p *patient) {
				p.hides(func(s *site.Site) string {
					late := p.Op("Greater", p.Op("Unsqueeze", p.counted(s.Query.Operand, 2), p.Ints(1)), p.Int(1000))
					return p.Op("Not", p.Op("And", late, p.Op("Equal", p.counted(s.Value.Operand, 2), p.Int(0))))
				})
			},
		},
		{
			name: "keys far away hidden", models: both, kept: keptCross("its mask is not understood"),
			change: func(p *patient) {
				p.hides(func(s *site.Site) string { return p.Op("Less", p.counted(s.Value.Operand, 2), p.Int(3000)) })
			},
		},
		{
			name: "keys hidden by the decoder's own past", models: []string{cached}, kept: keptCross("its mask is not understood"),
			change: func(p *patient) {
				p.hides(func(s *site.Site) string {
					return p.Op("LessOrEqual", p.counted(s.Value.Operand, 2), p.Op("Add", p.Size("past_key_values.0.key", 2), p.Int(100)))
				})
			},
		},
		{
			name: "keys read a row later", models: both, kept: keptCross("its key operand differs from the key"),
			change: eachKey(func(p *patient, _ *site.Site, old string) string {
				first := p.Op("Slice", old, p.Ints(0), p.Ints(1), p.Ints(3))
				rest := p.Op("Slice", old, p.Ints(1), p.Ints(1<<40), p.Ints(3))
				return p.Node("Concat", []string{rest, first}, onnx.IntAttr("axis", 3))
			}),
		},
		{
			name: "values read a row later", models: both, kept: keptCross("its value operand differs from the value"),
			change: func(p *patient) {
				for _, s := range p.Crosses() {
					p.Into(s.ValueMatMul, 1, func(old string) string {
						first := p.Op("Slice", old, p.Ints(0), p.Ints(1), p.Ints(2))
						rest := p.Op("Slice", old, p.Ints(1), p.Ints(1<<40), p.Ints(2))
						return p.Node("Transpose", []string{p.Node("Transpose", []string{p.Node("Concat", []string{rest, first}, onnx.IntAttr("axis", 2))}, onnx.IntsAttr("perm", 0, 1, 3, 2))}, onnx.IntsAttr("perm", 0, 1, 3, 2))
					})
				}
			},
		},
		{
			name: "values without the last", models: both, kept: keptCross("which is not batch, length or a constant"),
			change: func(p *patient) {
				for _, s := range p.Crosses() {
					p.Into(s.ValueMatMul, 0, func(old string) string { return p.Op("Slice", old, p.Ints(0), p.Ints(-1), p.Ints(3)) })
					p.Into(s.ValueMatMul, 1, func(old string) string { return p.Op("Slice", old, p.Ints(0), p.Ints(-1), p.Ints(2)) })
				}
			},
		},
		{
			name: "a softmax over queries", models: both, kept: keptCross("its axis is 2, expected 3"),
			change: func(p *patient) {
				for _, s := range p.Crosses() {
					s.Softmax.SetAttribute(onnx.IntAttr("axis", 2))
				}
			},
		},
		{name: "queries scaled by position", models: both, kept: all, change: scaledByPosition}, // a factor of each token, which stays in the graph
	}
}

// scaledByPosition multiplies the queries of cross-attention by √(1 + their index in the call).
func scaledByPosition(p *patient) {
	for _, s := range p.Crosses() {
		p.Into(s.ScoresMatMul, 0, func(old string) string {
			places := p.Op("Unsqueeze", p.Cast(p.counted(old, 2), onnx.Float), p.Ints(1))
			return p.Op("Mul", old, p.Op("Sqrt", p.Op("Add", places, p.Float(1))))
		})
	}
}
