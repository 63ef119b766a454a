package decoder_test

import (
	"context"
	"fmt"
	"os"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
)

// Three tokens at once, then a fourth with their cache.
func Example() {
	ctx := context.Background()
	eng, err := engine.NewWorker(engine.Config{}, os.Args[0]) // a program that calls engine.ServeIfWorker first
	if err != nil {
		fmt.Println(err)
		return
	}
	defer eng.Close()
	d, err := decoder.Open(ctx, eng, "../../testdata/models/llama__optimum/model.onnx", decoder.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	_, cache, err := d.Run(ctx, decoder.Step{
		Batch: 1, Length: 3, IDs: []int64{7, 8, 9}, Mask: []int64{1, 1, 1}, Positions: []int64{0, 1, 2},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	logits, cache, err := d.Run(ctx, decoder.Step{
		Batch: 1, Length: 1, IDs: []int64{10}, Mask: []int64{1, 1, 1, 1}, Positions: []int64{3}, Cache: cache,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(logits.Dims, cache[0].Dims)
	// Output: [1 1 128] [1 2 4 16]
}
