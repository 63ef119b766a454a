package ref_test

import (
	"math"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// Figure 4 of "Why Does the Effective Context Length of LLMs Fall Short?" (An et al., 2024): with
// shift S and window W the distances S and more are S less, but not below W.
func TestSightOfString(t *testing.T) {
	const length, shift, window = 12, 5, 2
	a := attention(t, rope.PositionsAxis, "string:shift=5,window=2")
	see, err := ref.Sight(a, nil, length)
	if err != nil {
		t.Fatal(err)
	}
	for i := range length {
		for j := range length {
			want := i - j
			if want >= shift {
				want += window - shift
			}
			if got, visible := see(i, j); visible != (j <= i) || visible && got != float64(want) {
				t.Errorf("query %d sees key %d at %g (%v), want %d", i, j, got, visible, want)
			}
		}
	}
}

// What sight says is what the reference computes: a query and a key of one pair give the cosine of
// their distance as score, and hidden keys none.
func TestSightIsTheReferences(t *testing.T) {
	for _, c := range []struct {
		axis rope.Axis
		spec string
		ids  []int64
	}{
		{rope.PositionsAxis, "rerope:window=6", nil},
		{rope.PositionsAxis, "self-extend:window=4,group=3", nil},
		{rope.PositionsAxis, "dual-chunk:chunk_size=6,local_size=2", nil},
		{rope.MaskAxis, "sliding-window:window=5", nil},
		{rope.MaskAxis, "anchor", []int64{0, 1, 1, 1, 2, 2, 2, 3, 3, 3, -1, -1}},
		{rope.MaskAxis, "intra-document-reset", []int64{1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3}},
	} {
		const length = 12
		a := attention(t, c.axis, c.spec)
		see, err := ref.Sight(a, c.ids, length)
		if err != nil {
			t.Fatal(err)
		}
		p := ref.Problem{Attention: a, Batch: 1, Length: length, ValueSize: length, Documents: c.ids}
		for i := range length {
			p.Query, p.Key = append(p.Query, 1, 0), append(p.Key, 1, 0)
			for j := range length {
				one := 0.0
				if i == j {
					one = 1
				}
				p.Value = append(p.Value, one)
			}
		}
		got, err := ref.Run(p)
		if err != nil {
			t.Fatal(err)
		}
		for i := range length {
			var weights [length]float64
			sum := 0.0
			for j := range length {
				if d, visible := see(i, j); visible {
					weights[j] = math.Exp(a.EffectiveScale() * math.Cos(d*a.Encoding.Frequencies[0]))
					sum += weights[j]
				}
			}
			for j, w := range weights {
				if out := got.Output[i*length+j]; math.Abs(out-w/sum) > 1e-12 {
					t.Errorf("%s: query %d gives key %d %g, want %g", c.spec, i, j, out, w/sum)
				}
			}
		}
	}
}

// attention is a causal one of one pair, after a method.
func attention(t *testing.T, axis rope.Axis, spec string) rope.Attention {
	t.Helper()
	s, err := rope.ParseSpec(axis, spec)
	if err != nil {
		t.Fatal(err)
	}
	a := rope.Attention{Heads: 1, KVHeads: 1, HeadSize: 2, Encoding: rope.Encoding{Frequencies: []float64{0.25}}, Mask: rope.Mask{Causal: true}}
	a, _, err = s.Apply(a, rope.Context{Original: 8, Length: 12})
	if err != nil {
		t.Fatal(err)
	}
	return a
}
