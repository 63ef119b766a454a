package bisect_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
)

// A table of 2048 rows: the largest position that can be evaluated is found by trying.
func ExampleFarthest() {
	last, err := bisect.Farthest(1<<20, func(position int64) (int64, error) {
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
	fmt.Println(bisect.Shortest(9987.3, 10019.8))
	// Output: 10000
}
