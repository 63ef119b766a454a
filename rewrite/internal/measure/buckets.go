package measure

import (
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rope/encoding"
)

// nameBuckets recognises biases that are learned for ranges of distances as T5's are
// (Raffel et al., arXiv:1910.10683): a bucket for each of the first distances, then as
// many that widen with the logarithm.
func nameBuckets(heads []byDistance, largest float64) string {
	last, later := int64(0), false
	for d := range heads[0] {
		last, later = max(last, d), later || d < 0
	}
	if last < leastDistances {
		return ""
	}
	same := shares(heads, largest, last, 1)
	if later && !slices.Equal(same, shares(heads, largest, last, -1)) {
		return ""
	}
	const farthest = 1024
	for exact := 2; exact <= 64; exact *= 2 {
		for end := int64(exact) + 1; end <= farthest; end++ {
			if !bucketed(same, encoding.T5{Buckets: 2 * exact, MaxDistance: end}) {
				continue
			}
			buckets, direction := 2*exact, "one direction"
			if later {
				buckets, direction = 4*exact, "both directions"
			}
			return fmt.Sprintf("relative biases on the scores, learned for %d buckets of distances in %s as in T5: %d distances each by itself, then ranges that widen", buckets, direction, exact)
		}
	}
	return ""
}

// shares says of each distance up to last, in one direction, whether the next one has its
// bias in all heads.
func shares(heads []byDistance, largest float64, last, direction int64) []bool {
	same := make([]bool, last)
	for d := int64(1); d < last; d++ {
		same[d] = !slices.ContainsFunc(heads, func(h byDistance) bool {
			return math.Abs(h[direction*d]-h[direction*(d+1)]) > 4*unit*largest
		})
	}
	return same
}

// bucketed says whether neighbouring distances share a bias exactly where they share a
// bucket, and whether any do before the last bucket.
func bucketed(same []bool, t encoding.T5) bool {
	shared := false
	for d := int64(1); d < int64(len(same)); d++ {
		b, next := t.Bucket(d), t.Bucket(d+1)
		if (b == next) != same[d] {
			return false
		}
		shared = shared || b == next && b < t.Buckets-1
	}
	return shared
}
