package customop_test

import (
	"fmt"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// A text behind padding is the text alone, in one call and in several, whatever
// the other texts of the batch: first keys are its own.
func TestFirstKeysBehindPadding(t *testing.T) {
	const length = 90
	streaming := with(attention(4, 2, 32), func(a *rope.Attention) { a.Mask.Window, a.Mask.FirstKeys = 12, 4 })
	cached := with(streaming, func(a *rope.Attention) { // positions=cache
		a.Bands = []rope.Band{{QueryScale: 1, KeyScale: 1}, {Start: 12, QueryScale: 1, KeyScale: 1, QueryLimit: 15}}
	})
	for name, a := range map[string]rope.Attention{
		"text": streaming, "cache": cached, "raw": with(cached, func(a *rope.Attention) { a.Cache = rope.Raw }),
		"both ways": with(streaming, func(a *rope.Attention) { a.Mask.Causal = false }),
	} {
		padding := []int{0, 11, 50, 86}
		whole := filled(leftPadded(problem(a, len(padding), length, 0), padding...), 1)
		chunks := [][]int{{length}, {3, 60, 27}, {87, 1, 1, 1}}
		if !a.Mask.Causal {
			chunks = chunks[:1]
		}
		for _, lengths := range chunks {
			t.Run(fmt.Sprint(name, lengths), func(t *testing.T) {
				var parts []tensor
				var cache map[string]tensor
				begin := 0
				for _, n := range lengths {
					part := slice(whole, begin, begin+n)
					if cache != nil {
						part.PastKey, part.PastValue = float64s(cache["present_key"]), float64s(cache["present_value"])
					}
					cache = outputsOf(t, part, false)
					parts = append(parts, cache["output"])
					begin += n
				}
				output := join(parts)
				for b, pad := range padding {
					alone := textOf(whole, b, pad)
					want, err := ref.Run(alone)
					if err != nil {
						t.Fatal(err)
					}
					plain, err := ref.RunFloat32(alone)
					if err != nil {
						t.Fatal(err)
					}
					got := rows(output.row(b).floats, length, 32, pad, length)
					within(t, fmt.Sprintf("text %d", b), floats(got, 1, 4, int64(length-pad), 32), want.Output, plain.Output, 1, 4, int64(length-pad), 32)
				}
			})
		}
	}
}

// textOf is one row of a call without past, less its padding, as a call of its own.
func textOf(p ref.Problem, b, pad int) ref.Problem {
	a, n := p.Attention, p.Length
	a.Mask.Padding = false
	cut := func(data []float64, heads, size int) []float64 {
		return rows(data[b*heads*n*size:][:heads*n*size], n, size, pad, n)
	}
	return ref.Problem{Attention: a, Batch: 1, Length: n - pad, ValueSize: p.ValueSize,
		Query: cut(p.Query, a.Heads, a.HeadSize), Key: cut(p.Key, a.KVHeads, a.HeadSize), Value: cut(p.Value, a.KVHeads, p.ValueSize)}
}

// A node of an older specification counts first keys by index, padding too.
func TestFirstKeysByIndex(t *testing.T) {
	for pad, left := range map[int]int64{0: 5, 3: 2, 5: 0, 17: 0} {
		p := filled(leftPadded(problem(with(attention(4, 2, 32), func(a *rope.Attention) { a.Mask.Window, a.Mask.FirstKeys = 20, 5 }), 2, 60, 0), pad), 1)
		node := nodeOf(t, p)
		node.SetAttribute(onnx.IntAttr("first_keys_shown", 0))
		node.SetAttribute(onnx.IntAttr("spec_version", 2))
		in := feedsOf(p, false)
		s, err := newSession(t, node, typesOf(in), 2)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.run(in)
		if err != nil {
			t.Fatal(err)
		}
		p.Attention.Mask.FirstKeys = left // what padding leaves of them
		compare(t, p, false, got)
	}
}
