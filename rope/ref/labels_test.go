package ref_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// settings are parameters with which a method changes something, for those
// that need any.
var settings = map[string]string{
	"theta": "rope_theta=500", "linear": "factor=4", "ntk": "alpha=4", "dynamic": "factor=2", "partial-ntk": "factor=4",
	"ntk-by-parts": "factor=4", "yarn": "factor=4", "longrope": "short_factor=[1;1;1;1],long_factor=[1;2;3;4]",
	"llama3": "factor=4,low_freq_factor=1,high_freq_factor=4", "proportional": "partial_rotary_factor=0.5", "beta-ary": "factor=4",
	"temperature": "floor_scale=3", "frequencies": "inv_freq=[1;0.3;0.2;0.1]",
	"string": "shift=5,window=2", "rerope": "window=4", "leaky-rerope": "window=4,factor=3", "self-extend": "window=4,group=2",
	"dual-chunk": "chunk_size=7,local_size=2", "randomized": "range=100",
	"sliding-window": "window=4", "first-keys": "window=4,count=1", "anchor": "restart=true",
}

// Every method does what its labels say of calls: cut into calls a text gives
// the same, or the method is for whole texts and says so; with length=run it is
// not the same. And every method does something.
func TestLabelsOfCalls(t *testing.T) {
	const length = 24
	a := rope.Attention{Heads: 2, KVHeads: 1, HeadSize: 8, Mask: rope.Mask{Causal: true}, Encoding: rope.Encoding{Frequencies: []float64{1, 0.5, 0.25, 0.125}}}
	p := filled(a, length)
	plain := mustRun(t, p)
	for m := range rope.Methods() {
		list := []string{m.Name}
		if s := settings[m.Name]; s != "" {
			list[0] += ":" + s
		}
		if m.ByLength {
			run := list[0] + ",length=run"
			if !strings.Contains(list[0], ":") {
				run = list[0] + ":length=run"
			}
			list = append(list, run)
		}
		for i, text := range list {
			q := p
			q.Attention = mustApply(t, m.Axis, text, a, rope.Context{Length: length, Original: 12, Theta: 16})
			if q.Attention.Mask.Documents != rope.NoDocuments {
				q.Documents = []int64{0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4}
			}
			whole := mustRun(t, q)
			if off := distance(whole.Output, plain.Output); off < 1e-3 && !m.Neutral && m.Name != "causal" {
				t.Errorf("%s changes nothing", text)
			}
			first, rest := cutAt(q, 9)
			if m.OneCall {
				rest.Past, rest.PastKey, rest.PastValue = 9, whole.PresentKey[:9*a.HeadSize], whole.PresentValue[:9*a.HeadSize]
				if _, err := ref.Run(rest); err == nil {
					t.Errorf("%s is for whole texts, and runs on a past", text)
				}
				continue
			}
			past := mustRun(t, first)
			rest.Past, rest.PastKey, rest.PastValue = 9, past.PresentKey, past.PresentValue
			off := distance(mustRun(t, rest).Output, places(whole.Output, length, a.HeadSize, 9, length))
			off = max(off, distance(past.Output, places(whole.Output, length, a.HeadSize, 0, 9)))
			if same := i == 0; same != (off == 0) {
				t.Errorf("%s in two calls differs by %g", text, off)
			}
		}
	}
}

// filled is one text of random tokens.
func filled(a rope.Attention, length int) ref.Problem {
	r := rand.New(rand.NewPCG(3, 4))
	return ref.Problem{Attention: a, Batch: 1, Length: length, ValueSize: a.HeadSize,
		Query: normal(r, a.Heads*length*a.HeadSize), Key: normal(r, a.KVHeads*length*a.HeadSize), Value: normal(r, a.KVHeads*length*a.HeadSize)}
}

// cutAt cuts a text into two calls; the second lacks its past.
func cutAt(p ref.Problem, at int) (first, rest ref.Problem) {
	cut := func(from, to int) ref.Problem {
		q := p
		size := p.Attention.HeadSize
		q.Length = to - from
		q.Query, q.Key, q.Value = places(p.Query, p.Length, size, from, to), places(p.Key, p.Length, size, from, to), places(p.Value, p.Length, size, from, to)
		if p.Documents != nil {
			q.Documents = p.Documents[:to]
		}
		return q
	}
	return cut(0, at), cut(at, p.Length)
}
