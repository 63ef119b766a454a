package rope

import (
	"fmt"
	"math"
	"slices"
)

// Distance is a bias that heads add to their scores after the softcap, by the distance d = i − j
// from the query at index i back to the key at index j. d is negative for a later key. The bias of
// head h is
//
//	Biases[b][h] − Slopes[h]·|d|, where b is the last bucket with Starts[b] ≤ d (the first one where there is none)
//
// Slopes are those of ALiBi (Press et al., arXiv:2108.12409), buckets those of T5 (Raffel et al.,
// arXiv:1910.10683). The zero value adds nothing.
type Distance struct {
	Slopes []float64   `json:"slopes,omitzero"` // one per head; nil means none
	Starts []int64     `json:"starts,omitzero"` // the smallest distance of each bucket, ascending; the first bucket also has all smaller ones
	Biases [][]float64 `json:"biases,omitzero"` // [bucket][head]
	Shown  bool        `json:"shown,omitzero"`  // d counts only keys that the padding mask shows
}

// IsZero reports whether no head adds anything.
func (d Distance) IsZero() bool { return d.Slopes == nil && d.Starts == nil }

// Bias is what a head adds to the score of a key at a distance.
func (d Distance) Bias(head int, distance int64) float64 {
	bias := 0.0
	if len(d.Starts) > 0 {
		after, _ := slices.BinarySearch(d.Starts, distance+1)
		bias = d.Biases[max(after-1, 0)][head]
	}
	if d.Slopes != nil {
		bias -= d.Slopes[head] * math.Abs(float64(distance))
	}
	return bias
}

// Check returns an error if the lists do not fit each other or the number of heads.
func (d Distance) Check(heads int) error {
	if d.Slopes != nil && len(d.Slopes) != heads {
		return fmt.Errorf("%d slopes for %d heads", len(d.Slopes), heads)
	}
	if len(d.Starts) != len(d.Biases) {
		return fmt.Errorf("%d starts for %d buckets", len(d.Starts), len(d.Biases))
	}
	for b, list := range d.Biases {
		if len(list) != heads {
			return fmt.Errorf("bucket %d has %d biases for %d heads", b, len(list), heads)
		}
		if b > 0 && d.Starts[b] <= d.Starts[b-1] {
			return fmt.Errorf("bucket %d starts at distance %d after %d: they must rise", b, d.Starts[b], d.Starts[b-1])
		}
	}
	return nil
}
