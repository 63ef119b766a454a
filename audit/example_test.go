package audit_test

import (
	"context"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/audit"
)

func ExampleRun() {
	r, err := audit.Run(context.Background(), "../testdata/claims/llama__genai-linear/model.onnx", audit.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range r.Lines {
		if l.Verdict == audit.Differs {
			fmt.Printf("layers %s: %s says %s, the graph has %s\n", l.Where, l.From, l.Expected, l.Found)
		}
	}
	// Output:
	// layers 0-1: config.json: rope_parameters says linear:factor=4, the graph has none
}
