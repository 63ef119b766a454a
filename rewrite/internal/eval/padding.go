package eval

import (
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
)

// Padding makes masks of several kinds: none, left, right, holes, random.
func Padding(rng *rand.Rand, pt dim.Point, kind int) []int64 {
	total := pt.L + pt.P
	mask := slices.Repeat([]int64{1}, int(pt.B*total))
	for b := range pt.B {
		row := mask[b*total : (b+1)*total]
		n := rng.Int64N(max(total/2, 1)) + 1
		for j := range total {
			switch kind % 5 {
			case 1:
				row[j] = B2i(j >= n)
			case 2:
				row[j] = B2i(j < total-n)
			case 3:
				row[j] = B2i(j < n || j >= n+2)
			case 4:
				row[j] = rng.Int64N(2)
			}
		}
	}
	return mask
}

func B2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
