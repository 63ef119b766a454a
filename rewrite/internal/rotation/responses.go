package rotation

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// response is what one basis vector becomes at one position: the channels that it reaches, with
// their values. All others are 0, and they are not stored: a head of 4,096 channels would take
// gigabytes.
type response map[int]float64

// inOrder goes through the channels from the first to the last, so that errors name the same one
// in every run.
func (r response) inOrder() iter.Seq2[int, float64] {
	return func(yield func(int, float64) bool) {
		for _, c := range slices.Sorted(maps.Keys(r)) {
			if !yield(c, r[c]) {
				return
			}
		}
	}
}

// maxAlike is the largest number of results of one call in alike.
const maxAlike = 4 << 20

// maxReached is how many channels a basis vector may reach. One of a rotation reaches two; some more
// are kept for the sentence that says which.
const maxReached = 64

// alike evaluates the basis vectors of all channels under a rotation that must be the same in all
// heads. The result has the first head only: out[channel][0][position]. Channels that get at most
// least at every position count as not reached.
func (r *Rotator) alike(ctx context.Context, positions []int64, least float64) ([][][]response, error) {
	d := int(r.In.Channels)
	each := int64(len(positions)) * r.To.Heads * max(r.To.Channels, r.In.Channels) // numbers of one vector
	together := int(max(maxAlike/each, 1))
	var out [][][]response
	for first := 0; first < d; first += together {
		var some [][]float32
		for c := first; c < min(first+together, d); c++ {
			vector := make([]float32, d)
			vector[c] = 1
			some = append(some, vector)
		}
		m, err := r.apply(ctx, some, positions)
		if err != nil {
			return nil, err
		}
		if err := sameOverHeads(m); err != nil {
			return nil, err
		}
		for i, heads := range m {
			responses, err := reached(heads[0], first+i, least)
			if err != nil {
				return nil, err
			}
			out = append(out, [][]response{responses})
		}
	}
	return out, nil
}

// reached returns what the basis vector of a channel becomes at each position. Where a result is not
// a number, that of the channel itself is none.
func reached(y [][]float64, channel int, least float64) ([]response, error) {
	out := make([]response, len(y))
	for p := range y {
		out[p] = response{channel: y[p][channel]}
		if slices.ContainsFunc(y[p], math.IsNaN) {
			out[p][channel] = math.NaN()
		}
	}
	for to := range y[0] {
		if !slices.ContainsFunc(y, func(at []float64) bool { return math.Abs(at[to]) > least }) {
			continue
		}
		for p := range y {
			if to != channel {
				out[p][to] = y[p][to]
			}
		}
		if n := len(out[0]); n > maxReached {
			return nil, fmt.Errorf("channel %d reaches %d other channels or more: not a rotation of pairs", channel, n-1)
		}
	}
	return out, nil
}

// notANumber returns the error about the first position with a result that is not a number, nil
// where there is none.
func notANumber(m [][][]response, positions []int64) error {
	for i, p := range positions {
		for c := range m {
			if math.IsNaN(m[c][0][i][c]) {
				return NotANumber{p}
			}
		}
	}
	return nil
}

// NotANumber says that a rotation gives NaN at a position: nothing that reads it means anything.
type NotANumber struct{ Position int64 }

// Error says where, and what to do.
func (n NotANumber) Error() string {
	return fmt.Sprintf("at position %d it gives NaN: the model's frequencies, or its tables of cosines and sines, are broken; export the model again", n.Position)
}

// sameOverHeads returns an error if a head gives other results than the first.
func sameOverHeads(m [][][][]float64) error {
	for e := range m {
		for h := range m[e] {
			for p := range m[e][h] {
				for c, v := range m[e][h][p] {
					if first := m[e][0][p][c]; math.Abs(v-first) > 8*ir.Float32eps*math.Max(1, math.Abs(first)) {
						return fmt.Errorf("heads 0 and %d are rotated differently: %g and %g at channel %d", h, first, v, c)
					}
				}
			}
		}
	}
	return nil
}
