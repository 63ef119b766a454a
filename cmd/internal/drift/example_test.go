package drift_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/drift"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// Two tokens shifted by 100 positions: in bfloat16 the first key's products change.
func Example() {
	p := ref.Problem{
		Attention: rope.Attention{Heads: 1, KVHeads: 1, HeadSize: 2, Encoding: rope.Encoding{Frequencies: []float64{1}}, Mask: rope.Mask{Causal: true}},
		Batch:     1, Length: 2, Positions: []int64{0, 1},
		Query: []float64{1, 2, 3, 4},
		Key:   []float64{2, 1, 0.5, 1.5},
	}
	for _, a := range []drift.Arithmetic{drift.Float64, drift.BFloat16} {
		d, err := drift.Compare(p, drift.Turn(p, a, 0), drift.Turn(p, a, 100))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %.3f\n", a, d.FirstKey)
	}
	// Output:
	// float64: 0.000
	// bfloat16: 0.007
}
