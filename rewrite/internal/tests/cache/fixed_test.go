package cache_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// A cache of fixed capacity gives the logits of the growing one bit for bit,
// and rows that stand in it without their padding those of the goldens.
func TestFixedCache(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, name := range testsample.Of(t, []string{"llama__optimum", "llama__dynamo18", "llama__dynamo18-eager", "llama__dynamo23",
		"qwen3__optimum", "qwen3__dynamo18", "gpt_neox__optimum", "gpt_neox__dynamo18"}, 2) {
		t.Run(name, func(t *testing.T) {
			architecture, _, _ := strings.Cut(name, "__")
			path, _ := kit.Patch(t, kit.Model(name), rewrite.Options{})
			growing := kit.Open(t, path)
			path, _ = kit.Patch(t, kit.Model(name), rewrite.Options{Cache: rewrite.Cache{Capacity: 50}})
			fixed := kit.Open(t, path)
			if fixed.Capacity != 50 || growing.Capacity != 0 {
				t.Fatalf("capacities %d and %d", fixed.Capacity, growing.Capacity)
			}
			for _, padded := range []bool{false, true} {
				g := kit.ReadGolden(t, architecture, "plain", padded)
				for way, chunks := range kit.Ways {
					want, err := growing.Chunks(context.Background(), g.Sequence, chunks...)
					if err != nil {
						t.Fatal(err)
					}
					got, err := fixed.Chunks(context.Background(), g.Sequence, chunks...)
					if err != nil {
						t.Fatal(err)
					}
					if !slices.Equal(got, want) {
						t.Errorf("%s, padded %v: off by %.2g from the growing cache", way, padded, kit.Largest(got, want))
					}
				}
				for _, prefill := range []int64{1, 32, 48} {
					got, err := fixed.Ragged(context.Background(), g.Sequence, prefill)
					if err != nil {
						t.Fatal(err)
					}
					if off := g.Distance(t, got); !(off <= 1e-4) {
						t.Errorf("rows of their own length, prefill %d, padded %v: off by %.2g", prefill, padded, off)
					} else {
						t.Logf("rows of their own length, prefill %d, padded %v: off by %.2g", prefill, padded, off)
					}
				}
			}
		})
	}
}

// A row whose length is set back to 0 begins anew while the others go on, and
// what stood in its place is not seen.
func TestSlotReuse(t *testing.T) {
	testruntime.Require(t)
	path, _ := kit.Patch(t, kit.Model("llama__optimum"), rewrite.Options{
		Cache: rewrite.Cache{Capacity: 64},
		Edits: []rope.Spec{kit.Spec(t, rope.PositionsAxis, "string:shift=16,window=4")},
	})
	d := kit.Open(t, path)
	g := kit.ReadGolden(t, "llama", "plain", false).Sequence
	row := func(b int64) []int64 { return g.IDs[b*g.Length : (b+1)*g.Length] }
	ctx := context.Background()
	alone := func(ids []int64) []float64 { // one row by itself
		t.Helper()
		s := decoder.Sequence{Batch: 1, Length: int64(len(ids)), IDs: ids}
		for i := range ids {
			s.Mask, s.Positions = append(s.Mask, 1), append(s.Positions, int64(i))
		}
		logits, err := d.Chunks(ctx, s, s.Length)
		if err != nil {
			t.Fatal(err)
		}
		return logits
	}
	step := decoder.Step{Batch: 2, Length: 20, Pasts: []int64{0, 0}, Mask: slices.Repeat([]int64{1}, 2*20)}
	for b := range int64(2) {
		for i := range int64(20) {
			step.IDs, step.Positions = append(step.IDs, row(b)[i]), append(step.Positions, i)
		}
	}
	_, cache, err := d.Run(ctx, step)
	if err != nil {
		t.Fatal(err)
	}
	// Row 0 goes on with 12 tokens, row 1 begins with the first 12 of row 0.
	// The mask is wider than any row, and what it says of places that no token
	// stands in does not count.
	step = decoder.Step{Batch: 2, Length: 12, Pasts: []int64{20, 0}, Cache: cache}
	for i := range int64(12) {
		step.IDs, step.Positions = append(step.IDs, row(0)[20+i]), append(step.Positions, 20+i)
	}
	for i := range int64(12) {
		step.IDs, step.Positions = append(step.IDs, row(0)[i]), append(step.Positions, i)
	}
	step.Mask = slices.Repeat([]int64{1}, 2*40)
	logits, _, err := d.Run(ctx, step)
	if err != nil {
		t.Fatal(err)
	}
	values := logits.Values()
	half := len(values) / 2
	if off := kit.Largest(values[:half], alone(row(0)[:32])[20*128:]); !(off <= 2e-5) {
		t.Errorf("the row that goes on is off by %.2g", off)
	}
	if off := kit.Largest(values[half:], alone(row(0)[:12])); !(off <= 2e-5) {
		t.Errorf("the row that begins anew is off by %.2g", off)
	}
}
