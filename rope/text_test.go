package rope

import (
	"strings"
	"testing"
)

func TestTexts(t *testing.T) {
	plain := Attention{Heads: 4, KVHeads: 2, HeadSize: 16, Mask: Mask{Causal: true, Padding: true}, Encoding: Encoding{Frequencies: geometric(10000, 8)}}
	for text, want := range map[string]string{
		"positions string:shift=85,window=32":             "from distance 85 on the query at p − 53 and keys at p; causal + padding",
		"positions rerope:window=16":                      "from distance 16 on the query at 16 and keys at 0; causal + padding",
		"positions leaky-rerope:window=16,factor=4":       "from distance 16 on the query at 0.25·p + 12 and keys at 0.25·p; causal + padding",
		"positions self-extend:window=16,group=4":         "from distance 16 on the query at ⌊p/4⌋ + 12 and keys at ⌊p/4⌋; causal + padding",
		"positions dual-chunk:chunk_size=32,local_size=8": "positions in chunks of 24; from chunk distance 1 on the query at p + 24 (at most 32) and keys at p; from chunk distance 2 on the query at 32 and keys at p; causal + padding",
		"mask first-keys:count=4,window=9":                "causal + window 9 + first 4 keys + padding",
		"mask anchor":                                     "causal + own document and anchor + padding",
		"mask intra-document-reset:start=2":               "causal + own document + positions from 2 in each document + padding",
	} {
		axis, spec, _ := strings.Cut(text, " ")
		on := PositionsAxis
		if axis == "mask" {
			on = MaskAxis
		}
		s, err := ParseSpec(on, spec)
		if err != nil {
			t.Fatal(err)
		}
		a, _, err := s.Apply(plain, Context{})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(append(a.DescribePositions(), a.Mask.String()), "; "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
