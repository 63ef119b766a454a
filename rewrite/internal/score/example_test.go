package score_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/score"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// A causal mask with a window of 3 and padding on the left: which keys the first query
// of a call sees that has two cached tokens.
func ExampleFit_Shown() {
	fit := score.Fit{Mask: rope.Mask{Causal: true, Window: 3, Padding: true}}
	sample := score.Sample{Pt: dim.Point{B: 1, L: 2, P: 2}, Mask: []int64{0, 1, 1, 1}}
	keys := fit.Shown(sample, 0, 0, 0)
	for key := range int64(4) {
		fmt.Print(keys.Has(key), " ")
	}
	fmt.Println("first:", keys.First())
	fmt.Println(fit.Mask.String())
	// Output:
	// false true true false first: 1
	// causal + window 3 + padding
}
