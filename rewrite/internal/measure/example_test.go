package measure_test

import (
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
)

// A bias for one head, three new tokens and no past, that falls by 0.5 per token of
// distance. The mask, which hides later keys, does not matter.
func ExampleNameBias() {
	hidden := math.Inf(-1)
	fmt.Println(measure.NameBias([]float64{
		0, hidden, hidden,
		-0.5, 0, hidden,
		-1, -0.5, 0,
	}, 3, 3))
	// Output: ALiBi (scores fall linearly with the distance, by 0.5 to 0.5 per token)
}

func ExampleSinusoidal() {
	var table []float32
	for position := range 16 {
		sin, cos := math.Sincos(0.3 * float64(position))
		table = append(table, float32(sin), float32(cos))
	}
	fmt.Println(measure.Sinusoidal(ir.Float32Tensor("positions", []int64{16, 2}, table...)))
	// Output: true
}
