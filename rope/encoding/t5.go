package encoding

import "math"

// T5 puts distances into buckets, each with a bias that every head learned. Half of the buckets
// of a direction have one distance each. The others widen with the logarithm up to MaxDistance,
// and the last has all distances beyond. The zero value is T5's decoder.
// (Raffel et al., T5, arXiv:1910.10683, section 2.1.)
type T5 struct {
	Buckets       int   // 0 means 32; at least 2 for each direction, which has half of them with Bidirectional
	MaxDistance   int64 // 0 means 128; above half the buckets of a direction
	Bidirectional bool  // T5's encoder: later keys have buckets of their own
}

// WithDefaults returns the buckets with the numbers of T5 filled in.
func (t T5) WithDefaults() T5 {
	if t.Buckets == 0 {
		t.Buckets = 32
	}
	if t.MaxDistance == 0 {
		t.MaxDistance = 128
	}
	return t
}

// Bucket returns the bucket of a distance, from 0 on.
func (t T5) Bucket(distance int64) int {
	t = t.WithDefaults()
	buckets, first := t.Buckets, 0
	switch {
	case t.Bidirectional:
		buckets /= 2
		if distance < 0 {
			distance, first = -distance, buckets
		}
	case distance < 0:
		distance = 0 // a later key, which a causal mask hides
	}
	exact := buckets / 2
	if distance < int64(exact) {
		return first + int(distance)
	}
	share := math.Log(float64(distance)/float64(exact)) / math.Log(float64(t.MaxDistance)/float64(exact))
	// A distance on the border between two buckets is in the farther one; rounding must not change that.
	const rounding = 1e-9
	return first + min(exact+int(share*float64(buckets-exact)+rounding), buckets-1)
}

// Biases returns what one head adds to the score, as a function of the distance. learned are the
// biases of the head, one for each bucket.
func (t T5) Biases(learned []float64) func(distance int64) float64 {
	return func(distance int64) float64 { return learned[t.Bucket(distance)] }
}
