package method_test

import (
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// A text may begin at any position: first keys that are met by their places in the cache count from the row's own
// first token, as the original does by relative positions.
func TestFirstKeysOfTextsThatBeginLater(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, export := range []string{"llama__optimum", "llama__dynamo18"} {
		for _, target := range []rewrite.Target{rewrite.Ops, rewrite.PlainONNX} {
			patched, _ := kit.Patch(t, kit.Model(export), rewrite.Options{Target: target,
				Edits: []rope.Spec{kit.Spec(t, rope.MaskAxis, "first-keys:count=2,window=8,positions=cache")}})
			d := kit.Open(t, patched)
			for _, padded := range []bool{false, true} {
				g := kit.ReadGolden(t, "llama", "plain", padded)
				at := func(start int64) []float64 {
					s := g.Sequence
					s.Positions = slices.Clone(s.Positions)
					for i := range s.Positions {
						if s.Mask[i] == 1 {
							s.Positions[i] += start
						}
					}
					return kit.Chunked(t, d, s, kit.ThenDecode)
				}
				want := at(0)
				for _, start := range []int64{1, 5000} {
					if off := kit.Largest(at(start), want); !(off <= 1e-3) { // float32 angles at 5,048 move the original by 2.7e-4 of its range
						t.Errorf("%s, target %s, padded %v: from position %d on off by %.2g", export, target, padded, start, off)
					}
				}
			}
		}
	}
}
