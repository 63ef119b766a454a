package decoder_test

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
)

// TestCountsAreNotRounded rounds a model that counts the keys that a token sees and compares the count
// with 1. Rounding moves its logits a little. A count that is rounded hides all keys of some tokens.
func TestCountsAreNotRounded(t *testing.T) {
	eng := worker(t)
	path := filepath.Join(filepath.Dir(model("llama__transformers")), "prefill.onnx")
	const length = 40
	step := decoder.Step{Batch: 1, Length: length, Mask: slices.Repeat([]int64{1}, length)}
	for i := range int64(length) {
		step.IDs, step.Positions = append(step.IDs, 4+i), append(step.Positions, i)
	}
	logits := func(as decoder.Options) []float64 {
		d, err := decoder.Open(context.Background(), eng, path, as)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		out, _, err := d.Run(context.Background(), step)
		if err != nil {
			t.Fatal(err)
		}
		return out.Values()
	}
	own := logits(decoder.Options{})
	for seed := range 3 {
		worst := 0.0
		for i, x := range logits(decoder.Options{Rounded: true, Seed: seed}) {
			worst = math.Max(worst, math.Abs(x-own[i]))
		}
		if span := slices.Max(own) - slices.Min(own); worst == 0 || worst > 1e-4*span {
			t.Errorf("seed %d moves the logits by %.2g of %.2g, want a little", seed, worst, span)
		}
	}
}
