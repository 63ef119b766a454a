package coverage

import (
	"context"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// A mixture of experts magnifies rounding: one that is better in some ways of
// running is worse in others, and neither says that anything is wrong. In 16 bits
// one logit in thousands may round badly. Where the rule is broken, both models
// are run in float64, the op alone in float32. An error of the method stays what it
// was; rounding goes.

// rounding says of one way of running how far the models are from each other in
// float64 where that is at most half of what the original rounds by in its own
// type, noise; else "".
func (m measured) rounding(ctx context.Context, eng engine.Engine, original, patched string, noise float64) (string, error) {
	var logits [2][]float64
	for i, path := range []string{original, patched} {
		var err error
		if logits[i], err = m.inFloat64(ctx, eng, path); err != nil {
			return "", fmt.Errorf("in float64: %w", err)
		}
	}
	_, _, between, _ := distances(m.sequence, m.want, logits[0], logits[1])
	if !(between <= noise/2) {
		return "", nil
	}
	return fmt.Sprintf("%.2g between them in float64: rounding", between), nil
}

// inFloat64 runs a model in float64.
func (m measured) inFloat64(ctx context.Context, eng engine.Engine, path string) ([]float64, error) {
	d, err := decoder.Open(ctx, eng, path, decoder.Options{Change: rewrite.InFloat64})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Chunks(ctx, m.sequence.Sequence, m.calls...)
}
