package modeldiff_test

import (
	"context"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/modeldiff"
)

func ExampleRun() {
	d, err := modeldiff.Run(context.Background(), "../testdata/models/llama__genai-fp32/model.onnx",
		"../testdata/claims/qwen2__genai-window/model.onnx", modeldiff.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range d.Of(modeldiff.Attention) {
		fmt.Println("layers", c.Where)
		fmt.Println("A", c.Expected)
		fmt.Println("B", c.Found)
	}
	// Output:
	// layers 1
	// A 4 heads, 2 for keys, rotary 16 half, theta 10000, score scale 0.25, causal
	// B 4 heads, 2 for keys, rotary 16 half, theta 10000, score scale 0.25, causal + window 8
}
