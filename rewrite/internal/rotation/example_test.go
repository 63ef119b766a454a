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

// A table of 2048 rows: the largest position that can be evaluated is found by trying.
func ExampleFarthest() {
	last, err := rotation.Farthest(1<<20, func(position int64) (int64, error) {
		if position >= 2048 {
			return 0, fmt.Errorf("index %d is out of range", position)
		}
		return position, nil
	})
	fmt.Println(last, err)
	// Output: 2047 <nil>
}

// A base that was measured in float16: the shortest number in its range was meant.
func ExampleShortest() {
	fmt.Println(rotation.Shortest(9987.3, 10019.8))
	// Output: 10000
}
