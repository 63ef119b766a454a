package eval

import (
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
)

// Padding returns a padding mask [batch, past + length], 1 for tokens that are there.
// kind, modulo 5, is: no padding, left, right, a hole of two tokens, or random.
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

// B2i is 1 for true and 0 for false.
func B2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
