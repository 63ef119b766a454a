package eval

import (
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
)

// PaddingKind says which tokens of a row are padding.
type PaddingKind int

const (
	NoPadding     PaddingKind = iota
	LeftPadding               // the first ones
	RightPadding              // the last ones
	HolePadding               // two in the middle
	RandomPadding             // any
	paddingKinds
)

// Padding returns a padding mask [batch, keys], 1 for tokens that are there. How
// many are not is random. Kinds beyond the last begin again with the first.
func Padding(rng *rand.Rand, pt dim.Point, kind PaddingKind) []int64 {
	total := pt.Keys()
	mask := slices.Repeat([]int64{1}, int(pt.B*total))
	for b := range pt.B {
		row := mask[b*total : (b+1)*total]
		n := rng.Int64N(max(total/2, 1)) + 1
		for j := range total {
			switch kind % paddingKinds {
			case LeftPadding:
				row[j] = dim.OneIf(j >= n)
			case RightPadding:
				row[j] = dim.OneIf(j < total-n)
			case HolePadding:
				row[j] = dim.OneIf(j < n || j >= n+2)
			case RandomPadding:
				row[j] = rng.Int64N(2)
			}
		}
	}
	return mask
}
