package recommend_test

import (
	"context"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/recommend"
)

// A model that was trained for 8K tokens solves everything up to there, and with YaRN everything.
func Example() {
	s := recommend.Search{
		Task: "kv", Trained: 8192, Context: 16384, Samples: 20, Candidates: []string{"scaling yarn:factor=4"},
		Measure: func(_ context.Context, ask recommend.Ask) (list []evaluation.Sample, err error) {
			for i := range ask.Samples {
				right := ask.Method != recommend.Unchanged || ask.Lengths[0] <= 8192
				list = append(list, evaluation.Sample{Variant: ask.Method, Task: "kv", Length: ask.Lengths[0], Index: i, Right: right})
			}
			return list, nil
		},
	}
	r, err := s.Run(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("reaches", r.Effective, "tokens:", r.Verdict)
	fmt.Println("rope-rewrite model.onnx", recommend.Flags(r.Best))
	// Output:
	// reaches 8192 tokens: method
	// rope-rewrite model.onnx --scaling yarn:factor=4
}
