package validate

import (
	"context"
	"math/rand/v2"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// CacheCost is what caches of another element type, rounded as the op rounds them, cost a model that has not been
// given them yet: the divergence of the logits of 16 random tokens that read 48 of the cache. A cost above CostlyKL
// says that keys have a few channels that are much larger than the others.
func CacheCost(ctx context.Context, path string, typ onnx.DataType, e rewrite.Evaluation) (Measures, error) {
	eng, err := engine.Open(engine.Config{Runtime: e.Runtime, Library: e.Library}, e.Worker)
	if err != nil {
		return Measures{}, err
	}
	defer eng.Close()
	const past, length = 48, 16
	has := onnx.DataType(0)
	run := func(stored onnx.DataType) ([]float64, error) {
		d, err := decoder.Open(ctx, eng, path, decoder.Options{Stored: stored})
		if err != nil {
			return nil, err
		}
		defer d.Close()
		has, _ = d.CacheType()
		vocabulary := d.Vocabulary
		if vocabulary == 0 {
			vocabulary = 100 // every model has so many tokens
		}
		rng := rand.New(rand.NewPCG(48, 16))
		ids := make([]int64, past+length)
		for i := range ids {
			ids[i] = rng.Int64N(vocabulary)
		}
		logits, err := d.Chunks(ctx, d.Padded([][]int64{ids}, past+length), past, length)
		if err != nil {
			return nil, err
		}
		return logits[len(logits)/(past+length)*past:], nil
	}
	exact, err := run(0)
	if err != nil || has == typ {
		return Measures{}, err
	}
	rounded, err := run(typ)
	if err != nil {
		return Measures{}, err
	}
	read := make([]int64, length)
	for i := range read {
		read[i] = 1
	}
	return measure(exact, rounded, read, length), nil
}
