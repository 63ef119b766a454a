package validate_test

import (
	"context"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/validate"
)

// Two exports of one model by different exporters have the same outputs.
func Example() {
	report, err := validate.Run(context.Background(),
		"../testdata/models/llama__optimum/model.onnx",
		"../testdata/models/llama__dynamo18/model.onnx", validate.Options{OutputsOnly: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range report.Cases {
		fmt.Println(c.Name, c.Share() < 1e-5)
	}
	fmt.Println("verdict:", report.Verdict)
	// Output:
	// prefill true
	// prefill in two chunks true
	// prefill, then 16 single tokens true
	// verdict: same outputs
}
