package method_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestOwnRawCache: a model that itself caches keys un-rotated takes methods as its twin does, the
// same weights with rotated keys in the cache.
func TestOwnRawCache(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	raw, twin := kit.Model("../field/raw_cache"), kit.Model("../field/raw_cache_twin")
	s := decoder.Sequence{Batch: 2, Length: 48}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range s.Batch * s.Length {
		s.IDs = append(s.IDs, rng.Int64N(64))
		s.Mask = append(s.Mask, 1)
		s.Positions = append(s.Positions, i%s.Length)
	}
	logits := func(path string, chunks []int64) []float64 { return kit.Chunked(t, kit.Open(t, path), s, chunks) }
	ways := [][]int64{{48}, {17, 31}, slices.Concat([]int64{32}, slices.Repeat([]int64{1}, 16))}
	own := 0.0 // what rounding does: the op against the model's own nodes
	for _, path := range []string{raw, twin} {
		same, _ := kit.Patch(t, path, rewrite.Options{})
		for _, way := range ways {
			own = max(own, kit.Largest(logits(path, way), logits(same, way)))
		}
	}
	plain := logits(twin, ways[0])
	for _, method := range testsample.Of(t, []string{"scaling linear:factor=4", "scaling yarn:factor=4,original_max_position_embeddings=16",
		"scaling dynamic:factor=2,original_max_position_embeddings=16,length=run", "positions self-extend:window=8,group=4",
		"positions string:shift=16,window=4", "mask first-keys:count=2,window=8"}, 3) {
		for _, target := range []rewrite.Target{rewrite.Ops, rewrite.PlainONNX} {
			opts := rewrite.Options{Edits: kit.Edits(t, []string{method}), Target: target, Context: rope.Context{Length: 48, Original: 16}}
			a, report := kit.Patch(t, raw, opts)
			b, _ := kit.Patch(t, twin, opts)
			if slices.Contains(report.Edits, "cache raw") {
				t.Errorf("%s: the report says that the cache becomes raw, which it was", method)
			}
			for _, way := range ways {
				got, want := logits(a, way), logits(b, way)
				if off := kit.Largest(got, want); off > 2*own {
					t.Errorf("%s, target %v, %d calls: off by %.2g; without a method the op is off by %.2g", method, target, len(way), off, own)
				}
				if kit.Largest(got, plain) < 100*own {
					t.Errorf("%s, target %v: it changes nothing", method, target)
				}
			}
		}
	}
}
