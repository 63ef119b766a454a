package rewrite_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

func open(t *testing.T, path string) *decoder.Decoder {
	t.Helper()
	d, err := decoder.Open(context.Background(), local(t), path, decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// A cache of fixed capacity gives the logits of the growing one bit for bit,
// and rows that stand in it without their padding those of the goldens.
func TestFixedCache(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, name := range []string{"llama__optimum", "llama__dynamo18", "llama__dynamo18-eager", "llama__dynamo23",
		"qwen3__optimum", "qwen3__dynamo18", "gpt_neox__optimum", "gpt_neox__dynamo18"} {
		t.Run(name, func(t *testing.T) {
			architecture, _, _ := strings.Cut(name, "__")
			path, _ := patch(t, model(name), rewrite.Options{})
			growing := open(t, path)
			path, _ = patch(t, model(name), rewrite.Options{FixedCapacity: 50})
			fixed := open(t, path)
			if fixed.Capacity != 50 || growing.Capacity != 0 {
				t.Fatalf("capacities %d and %d", fixed.Capacity, growing.Capacity)
			}
			for _, padded := range []bool{false, true} {
				g := readGolden(t, architecture, "plain", padded)
				for way, chunks := range ways {
					want, err := growing.Chunks(context.Background(), g.sequence, chunks...)
					if err != nil {
						t.Fatal(err)
					}
					got, err := fixed.Chunks(context.Background(), g.sequence, chunks...)
					if err != nil {
						t.Fatal(err)
					}
					if !slices.Equal(got, want) {
						t.Errorf("%s, padded %v: off by %.2g from the growing cache", way, padded, largest(got, want))
					}
				}
				for _, prefill := range []int64{1, 32, 48} {
					got, err := fixed.Ragged(context.Background(), g.sequence, prefill)
					if err != nil {
						t.Fatal(err)
					}
					if off := g.distance(t, got); !(off <= 1e-4) {
						t.Errorf("rows of their own length, prefill %d, padded %v: off by %.2g", prefill, padded, off)
					} else {
						t.Logf("rows of their own length, prefill %d, padded %v: off by %.2g", prefill, padded, off)
					}
				}
			}
		})
	}
}

func largest(a, b []float64) float64 {
	worst := 0.0
	for i := range a {
		worst = math.Max(worst, math.Abs(a[i]-b[i]))
	}
	return worst
}

// A row whose length is set back to 0 begins anew while the others go on, and
// what stood in its place is not seen.
func TestSlotReuse(t *testing.T) {
	testruntime.Require(t)
	path, _ := patch(t, model("llama__optimum"), rewrite.Options{
		FixedCapacity: 64, Edits: []rope.Spec{spec(t, rope.PositionsAxis, "string:shift=16,window=4")},
	})
	d := open(t, path)
	g := readGolden(t, "llama", "plain", false).sequence
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
	if off := largest(values[:half], alone(row(0)[:32])[20*128:]); !(off <= 2e-5) {
		t.Errorf("the row that goes on is off by %.2g", off)
	}
	if off := largest(values[half:], alone(row(0)[:12])); !(off <= 2e-5) {
		t.Errorf("the row that begins anew is off by %.2g", off)
	}
}
