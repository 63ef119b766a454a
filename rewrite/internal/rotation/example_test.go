package rotation_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// The two channels of the second pair, in either layout.
func ExamplePairAt() {
	e := rope.Encoding{Frequencies: make([]float64, 4)}
	for _, e.Layout = range []rope.Layout{rope.Half, rope.Interleaved} {
		fmt.Println(rotation.PairAt(e, 1))
	}
	// Output:
	// 1 5
	// 2 3
}
