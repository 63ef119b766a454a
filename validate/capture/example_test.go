package capture_test

import (
	"context"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/validate/capture"
)

// What the attention layers of a small Llama read, on eight tokens.
func Example() {
	ctx := context.Background()
	m, err := capture.Open(ctx, "../../testdata/models/llama__optimum/model.onnx", capture.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	run, err := m.Run(ctx, capture.Tokens(1, 2, 3, 4, 5, 6, 7, 8))
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
	// layer 0: 4 heads of 16, 2 of them for keys; 512 numbers of query, 256 of key
	// layer 1: 4 heads of 16, 2 of them for keys; 512 numbers of query, 256 of key
}
