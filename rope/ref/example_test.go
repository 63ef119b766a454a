package ref_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// Two tokens, one head of two channels; the second query sees both keys.
func Example() {
	result, err := ref.Run(ref.Problem{
		Attention: rope.Attention{
			Heads: 1, KVHeads: 1, HeadSize: 2,
			Encoding: rope.Encoding{Frequencies: []float64{1}},
			Mask:     rope.Mask{Causal: true},
		},
		Batch: 1, Length: 2, ValueSize: 1,
		Query: []float64{1, 0, 1, 0},
		Key:   []float64{1, 0, 1, 0},
		Value: []float64{10, 20},
	})
	fmt.Printf("%.3f %v %v\n", result.Output, result.Visible, err)
	// Output: [10.000 15.806] [1 2] <nil>
}
