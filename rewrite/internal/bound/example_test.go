package bound_test

import (
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
)

// The size that an Expand is told decides whether it may be run.
func ExampleCheck() {
	nodes := []*onnx.Node{onnx.NewNode("Expand", []string{"x", "shape"}, []string{"y"})}
	for _, shape := range [][]int64{{1, 1000}, {1_000_000, 1_000_000}} {
		err := bound.Check(nodes, nil, map[string]engine.Tensor{
			"x":     engine.Float32s([]float32{1}, 1),
			"shape": engine.Int64s(shape, 2),
		})
		fmt.Println(shape, errors.Is(err, bound.ErrTooLarge))
	}
	// Output:
	// [1 1000] false
	// [1000000 1000000] true
}
