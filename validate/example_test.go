package validate_test

import (
	"context"
	"fmt"
	"os"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/validate"
)

// Two exports of one model by different exporters compute the same.
func Example() {
	eng, err := engine.NewWorker(engine.Config{Threads: 1}, os.Args[0]) // a program that calls engine.ServeIfWorker first
	if err != nil {
		fmt.Println(err)
		return
	}
	defer eng.Close()
	result, err := validate.Run(context.Background(), eng,
		"../testdata/models/llama__optimum/model.onnx",
		"../testdata/models/llama__dynamo18/model.onnx", validate.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range result.Cases {
		fmt.Println(c.Name, c.Share() < 1e-5)
	}
	fmt.Println("same:", result.Same)
	// Output:
	// prefill true
	// prefill in two chunks true
	// prefill, then 16 single tokens true
	// same: true
}
