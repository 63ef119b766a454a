package rope_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// YaRN's limits, for any model: pairs that turn more than beta_fast times within
// the trained context keep their frequency, those that turn less than beta_slow
// times are divided by the factor, the others lie between, and factor 1 changes
// nothing.
func TestYarnLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := llama()
		factor := rapid.Float64Range(1, 64).Draw(t, "factor")
		original := rapid.Int64Range(64, 1<<20).Draw(t, "L0")
		for _, form := range []string{"", ",ramp=ratio"} {
			text := fmt.Sprintf("yarn:factor=%g,original_max_position_embeddings=%d", factor, original)
			got := scaled(t, text+form, a)
			for i, w := range got.Encoding.Frequencies {
				own := a.Encoding.Frequencies[i]
				low, high := own/factor*(1-1e-6), own*(1+1e-6)
				switch turns := own * float64(original) / 6.283185307179586; {
				case turns > 32*1.4: // the ramp's ends are whole pairs
					low = own * (1 - 1e-6)
				case turns < 1/1.4:
					high = own / factor * (1 + 1e-6)
				}
				if w < low || w > high {
					t.Fatalf("%s: pair %d turns by %g, by %g before; %g to %g was expected", text+form, i, w, own, low, high)
				}
			}
		}
		one := scaled(t, fmt.Sprintf("yarn:factor=1,original_max_position_embeddings=%d", original), a)
		for i, w := range one.Encoding.Frequencies {
			if w != a.Encoding.Frequencies[i] || one.Encoding.EffectiveGain() != 1 {
				t.Fatalf("factor 1: pair %d turns by %g with the gain %g", i, w, one.Encoding.EffectiveGain())
			}
		}
	})
}

func scaled(t *rapid.T, text string, a rope.Attention) rope.Attention {
	s, err := rope.ParseSpec(rope.ScalingAxis, text)
	if err == nil {
		a, _, err = s.Apply(a, rope.Context{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}
