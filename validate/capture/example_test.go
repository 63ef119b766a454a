package capture_test

import (
	"context"
	"fmt"
	"os"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/validate/capture"
)

// What the attentions of a small Llama read, on eight tokens.
func Example() {
	ctx := context.Background()
	worker := os.Args[0] // a program that calls engine.ServeIfWorker first
	eng, err := engine.NewWorker(engine.Config{}, worker)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer eng.Close()
	m, err := capture.Open(ctx, eng, "../../testdata/models/llama__optimum/model.onnx",
		capture.Options{Rewrite: rewrite.Options{Worker: []string{worker}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	run, err := m.Run(ctx, m.Random(8, 8, 0))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range run.Layers {
		a := l.Attention
		fmt.Printf("layer %d: %d heads of %d, %d of them for keys; %d numbers of query, %d of key\n",
			l.Layer, a.Heads, a.HeadSize, a.KVHeads, len(l.Query), len(l.Key))
	}
	// Output:
	// layer 0: 4 heads of 16, 2 of them for keys; 1024 numbers of query, 512 of key
	// layer 1: 4 heads of 16, 2 of them for keys; 1024 numbers of query, 512 of key
}
