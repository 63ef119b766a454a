package prove_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/prove"
)

// The original is off by 0.25 from its definition in float64. The op may be off by twice
// as much.
func Example() {
	tensor := func(x float64) engine.Tensor { return engine.Float64s([]float64{1, x}, 2) }
	all := func(int64) bool { return true }
	for _, op := range []float64{2.5, 2.75} {
		var errs prove.ResultErrors
		if err := errs.Add(tensor(2.25), tensor(2), tensor(op), all); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(errs.JudgeLargest(1e-7))
	}
	// Output:
	// <nil>
	// the op is off by 0.75 from the original in float64; expected at most 0.5, twice the error of the original or of a plain implementation
}
