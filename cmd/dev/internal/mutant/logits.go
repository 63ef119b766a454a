package mutant

import (
	"context"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// length of the sequences that a mutant is judged by.
const length = 21

// nowhere is the place of a model in memory: a folder that holds no configuration.
const nowhere = "mutant/none"

// Run runs a model in one call and, with a cache, in chunks and token by token,
// on a row without padding and one with padding on the left (on the right of the
// first call where the cache tracks the length of each row). It returns the logits
// of the other tokens. optimized has ONNX Runtime's graph optimisations first.
func Run(ctx context.Context, eng engine.Engine, m *onnx.Model, optimized bool) (Logits, error) {
	return load(ctx, eng, decoder.Options{Model: m.Clone(), AsWritten: !optimized})
}

// Exact is what a model gives when all but our op is computed in float64.
func Exact(ctx context.Context, eng engine.Engine, m *onnx.Model) (Logits, error) {
	return load(ctx, eng, decoder.Options{Model: m.Clone(), Change: rewrite.InFloat64, AsWritten: true})
}

func load(ctx context.Context, eng engine.Engine, opts decoder.Options) (Logits, error) {
	d, err := decoder.Open(ctx, eng, nowhere, opts)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return run(ctx, d)
}

// run is logits of a model that is loaded.
func run(ctx context.Context, d *decoder.Decoder) (Logits, error) {
	calls := [][]int64{{length}}
	if d.Cached() {
		calls = append(calls, []int64{12, 9}, []int64{17, 1, 1, 1, 1})
	}
	var out Logits
	for _, lengths := range calls {
		s := d.Random(lengths[0], length, 0)
		all, err := d.Chunks(ctx, s, lengths...)
		if err != nil {
			return nil, err
		}
		width := len(all) / len(s.Mask)
		var real []float64
		for i, x := range all {
			if s.Mask[i/width] == 0 {
				continue
			}
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return nil, fmt.Errorf("it gives %g", x)
			}
			real = append(real, x)
		}
		out = append(out, real)
	}
	return out, nil
}

// Logits are those of the tokens that are not padding, for each way of running.
type Logits [][]float64

// Off is the largest difference as a share of the range, over all ways of running.
func (l Logits) Off(got Logits) float64 {
	worst := 0.0
	for k, list := range l {
		if k >= len(got) || len(list) != len(got[k]) {
			return math.Inf(1)
		}
		low, high, off := math.Inf(1), math.Inf(-1), 0.0
		for i, x := range list {
			low, high = min(low, x), max(high, x)
			off = max(off, math.Abs(x-got[k][i]))
		}
		if off > 0 {
			worst = max(worst, off/(high-low))
		}
	}
	return worst
}
