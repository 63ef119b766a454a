package rewrite_test

import (
	"context"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

func ExampleRewrite() {
	ctx := context.Background()
	m, err := onnx.Open("../testdata/models/llama__optimum/model.onnx")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	yarn, err := rope.ParseSpec(rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=64")
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := rewrite.Rewrite(ctx, m, rewrite.Options{Edits: []rope.Spec{yarn}})
	if err != nil {
		fmt.Println(err) // rewrite.ErrNoAttention: there was nothing to do; ErrPartial: not everything could be done
		return
	}
	for _, s := range report.Sites {
		fmt.Println("layer", s.Layer, s.Status, "heads", s.Heads, "rotary", s.RotaryDim, "theta", s.Theta, s.Mask)
	}
	// m.Save("model.rope.onnx", onnx.SaveOptions{}) writes the patched model.

	// Output:
	// layer 0 rewritten heads 4 rotary 16 theta 10000 causal + padding
	// layer 1 rewritten heads 4 rotary 16 theta 10000 causal + padding
}
