package prove

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/score"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// trial describes inputs on which the site and the op are run.
type trial struct {
	pt              dim.Point
	padding         eval.PaddingKind   // which tokens are padding
	positions       int64              // the first position, followPadding or randomPositions
	magnitude       float64            // standard deviation of the hidden states
	lengths         *eval.CacheLengths // of a length-tracked cache; nil for others
	largestPosition int64              // the largest position that is fed; 0 for farthestPosition
	rough           bool               // so large that a few queries between two keys have nearly all of the error: it is bounded, not compared
	ties            bool               // hidden states are whole numbers, so that many scores are equal
	repeats         int64              // factor on the number of draws, where there are few trials; 0 for 1
}

// Values of trial.positions below 0.
const (
	followPadding   = -1 // each row counts its tokens that are not padding, as tokenisers do
	randomPositions = -2
)

const (
	farthestPosition = dim.Longest // no larger position is fed in a proof
	maxTriedPast     = 8192        // a window is tried if the past that it takes is shorter
	maxTriedLength   = 512         // the same without a cache, where scores take memory with the square of the length
)

// trials returns trials that reach every part of the op: lengths that are multiples of
// no tile size, several tiles, decode, prefill in chunks, batches, padding on either side
// and in between, positions up to farthestPosition or the end of the model's table.
func trials(m *measure.Measured) []trial {
	switch {
	case m.LengthTracked != nil:
		return lengthTrackedTrials(m)
	case m.Attention.Cross:
		return crossTrials
	}
	last := min(farthestPosition, m.PositionLimit)
	list := []trial{
		{pt: dim.Point{B: 1, L: 5, P: 0}, positions: 0, magnitude: 1},
		{pt: dim.Point{B: 2, L: 7, P: 4}, padding: eval.LeftPadding, positions: followPadding, magnitude: 1},
		{pt: dim.Point{B: 3, L: 1, P: 9}, padding: eval.LeftPadding, positions: followPadding, magnitude: 1},
		{pt: dim.Point{B: 2, L: 33, P: 0}, padding: eval.HolePadding, positions: randomPositions, magnitude: 1},
		{pt: dim.Point{B: 1, L: 8, P: 3}, positions: last - 7, magnitude: 1},
		{pt: dim.Point{B: 2, L: 70, P: 131}, padding: eval.LeftPadding, positions: followPadding, magnitude: 1},
		{pt: dim.Point{B: 1, L: 1, P: 300}, positions: last, magnitude: 1},
		{pt: dim.Point{B: 1, L: 131, P: 5}, padding: eval.RightPadding, positions: 5, magnitude: 3},
		{pt: dim.Point{B: 2, L: 19, P: 6}, padding: eval.RandomPadding, positions: randomPositions, magnitude: 0.3},
		{pt: dim.Point{B: 1, L: 23, P: 4}, positions: 0, magnitude: 20, rough: true},                                        // most probabilities vanish
		{pt: dim.Point{B: 2, L: 11, P: 2}, padding: eval.LeftPadding, positions: followPadding, magnitude: 1e-4},            // all are nearly equal
		{pt: dim.Point{B: 2, L: 13, P: 6}, padding: eval.HolePadding, positions: followPadding, magnitude: 0.5, ties: true}, // many are equal
	}
	if !m.Layouts.Cached {
		list = append(list,
			trial{pt: dim.Point{B: 1, L: 1, P: 0}, positions: 0, magnitude: 1},
			trial{pt: dim.Point{B: 3, L: 17, P: 0}, padding: eval.LeftPadding, positions: followPadding, magnitude: 1},
			trial{pt: dim.Point{B: 2, L: 64, P: 0}, padding: eval.RightPadding, positions: randomPositions, magnitude: 1},
			trial{pt: dim.Point{B: 1, L: 257, P: 0}, positions: 0, magnitude: 1})
	}
	if w := m.Attention.Mask.Window; w > 0 && (w < maxTriedPast && m.Layouts.Cached || w < maxTriedLength) {
		list = append(list,
			trial{pt: dim.Point{B: 1, L: 3, P: w + 5}, positions: w + 5, magnitude: 1},
			trial{pt: dim.Point{B: 2, L: min(w, 300) + 7, P: w}, padding: eval.LeftPadding, positions: followPadding, magnitude: 1})
	}
	if far := farDistance(m); far > 0 {
		list = append(list,
			trial{pt: dim.Point{B: 1, L: 3, P: far}, positions: far, magnitude: 1},
			trial{pt: dim.Point{B: 2, L: 2, P: far}, padding: eval.HolePadding, positions: followPadding, magnitude: 1})
	}
	if m.Attention.Encoding.Axes != nil { // more calls in which a token's positions differ
		list = append(list,
			trial{pt: dim.Point{B: 2, L: 1, P: 40}, padding: eval.LeftPadding, positions: randomPositions, magnitude: 1},
			trial{pt: dim.Point{B: 1, L: 21, P: 9}, positions: randomPositions, magnitude: 1})
	}
	if n := m.Attention.Encoding.LengthDependent.Trained; n > 0 && (m.Layouts.Cached || n < maxTriedLength) {
		list = append(list,
			trial{pt: dim.Point{B: 2, L: 1, P: n - 1}, positions: n - 1, magnitude: 1},
			trial{pt: dim.Point{B: 2, L: 1, P: n}, positions: n, magnitude: 1},
			trial{pt: dim.Point{B: 1, L: 6, P: max(n-3, 0)}, positions: max(n-3, 0), magnitude: 1})
		if m.Ids() != nil { // rows of a batch on both sides
			list = append(list,
				trial{pt: dim.Point{B: 3, L: 1, P: 5}, positions: randomPositions, largestPosition: n + n/2, magnitude: 1},
				trial{pt: dim.Point{B: 4, L: 2, P: 3}, padding: eval.LeftPadding, positions: randomPositions, largestPosition: n + 1, magnitude: 1})
		}
	}
	if m.Static != (dim.Point{}) {
		list = atStatic(m, list)
	}
	for i := range list {
		pt := &list[i].pt
		if !m.Layouts.Cached {
			pt.L, pt.P = pt.L+pt.P, 0 // without a cache all tokens are new
		}
		over := max(pt.L+pt.P-m.TokenLimit, 0)
		fewer := min(over, pt.P)
		pt.P, pt.L = pt.P-fewer, pt.L-(over-fewer)
	}
	if m.Angles != rope.Float32 {
		// At larger positions the rounding of angles in 16 bits would hide other errors.
		for i := range list {
			list[i].largestPosition = largestCoarsePosition
			if !m.Layouts.Cached || m.Ids() == nil {
				list[i].pt.L, list[i].pt.P = min(list[i].pt.L, largestCoarsePosition/2), min(list[i].pt.P, largestCoarsePosition/2)
			}
		}
	}
	for i := range list {
		list[i] = list[i].smaller(m.Attention.Heads)
	}
	if m.Ids() == nil || m.Slots != nil && m.Position.Name == m.Slots.Input.Name {
		for i := range list {
			list[i].positions = list[i].pt.P // without a positions input the graph counts from past on; one that tells rows does so too
		}
	}
	return list
}

// farDistance is how many earlier keys reach what a bias by distance has for far ones, as far as is tried;
// 0 without such a bias.
func farDistance(m *measure.Measured) int64 {
	d := m.Attention.Distance
	most := int64(maxTriedPast)
	if !m.Layouts.Cached {
		most = maxTriedLength
	}
	switch {
	case d.IsZero():
		return 0
	case d.Starts == nil:
		return most / 8
	}
	return min(max(d.Starts[len(d.Starts)-1], -d.Starts[0])+9, most)
}

// smaller returns a trial with fewer new tokens, so that its scores are no more than are
// held in memory at once.
func (t trial) smaller(heads int) trial {
	scores := func(length int64) int64 { return t.pt.B * int64(heads) * length * (length + t.pt.P) }
	for t.pt.L > 1 && scores(t.pt.L) > score.MaxProven {
		t.pt.L--
	}
	return t
}

// tokens is the number of tokens of the longest row after the call.
func (t trial) tokens() int64 {
	if t.lengths != nil {
		return t.lengths.Total
	}
	return t.pt.L + t.pt.P
}

// reach is how many positions a trial reaches.
func (t trial) reach(m *measure.Measured) int64 {
	if m.Ids() == nil || t.positions == followPadding {
		return t.tokens()
	}
	last := min(farthestPosition, m.PositionLimit)
	if t.largestPosition > 0 {
		last = min(last, t.largestPosition)
	}
	if t.positions >= 0 {
		last = min(last, t.positions+t.pt.L-1)
	}
	return last + 1
}

// draws returns how often a trial is run with other random numbers: the largest error of a
// handful of elements says little about an implementation.
func (t trial) draws(a rope.Attention) int {
	elements := t.pt.B * t.pt.L * int64(a.Heads*a.HeadSize)
	most := int64(mostDraws)
	if t.lengths != nil { // whose buffers may be large
		most = min(most, max(1<<20/(t.pt.B*max(t.pt.P, t.lengths.Total)*int64(a.KVHeads*a.HeadSize)), 1))
	}
	draws := min(max(enoughElements/elements, 1), most)
	if draws*elements < 4*enoughElements {
		draws *= max(t.repeats, 1)
	}
	return int(draws)
}

const (
	enoughElements = 8192 // a trial is repeated until so many elements were compared
	mostDraws      = 32   // but not more often than this
)

// largestCoarsePosition is the largest position in the proof of a site whose angles have 16 bits.
const largestCoarsePosition = 63

// atStatic returns the trials at the static sizes of the model, without the ones that are
// then the same as others.
func atStatic(m *measure.Measured, list []trial) (out []trial) {
	for _, t := range list {
		if !m.Layouts.Cached {
			t.pt.L, t.pt.P = t.pt.L+t.pt.P, 0
		}
		t.pt = m.Static.Over(t.pt)
		if m.Ids() == nil {
			t.positions = 0 // indices are the positions
		}
		if t.repeats = 2; m.Static.L > 0 && (m.Static.P > 0 || !m.Layouts.Cached) {
			t.repeats = 4 // the fewer sizes there are to try, the more numbers
		}
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// crossTrials are those of cross-attention: more and fewer keys than queries, one of either,
// several tiles, every kind of mask of the source, and pasts on which nothing may depend.
var crossTrials = []trial{
	{pt: dim.Point{B: 1, L: 5, S: 9}, magnitude: 1},
	{pt: dim.Point{B: 2, L: 7, P: 4, S: 3}, padding: eval.LeftPadding, magnitude: 1},
	{pt: dim.Point{B: 3, L: 1, P: 9, S: 33}, padding: eval.RightPadding, magnitude: 1},
	{pt: dim.Point{B: 2, L: 33, S: 5}, padding: eval.HolePadding, magnitude: 1},
	{pt: dim.Point{B: 2, L: 70, P: 131, S: 17}, padding: eval.LeftPadding, magnitude: 1},
	{pt: dim.Point{B: 1, L: 1, P: 300, S: 700}, magnitude: 1},
	{pt: dim.Point{B: 1, L: 131, P: 5, S: 140}, padding: eval.RightPadding, magnitude: 3},
	{pt: dim.Point{B: 2, L: 19, P: 6, S: 19}, padding: eval.RandomPadding, magnitude: 0.3},
	{pt: dim.Point{B: 2, L: 6, S: 1}, magnitude: 1},
}

// keepLast shows the last token of rows of which a mask hides all. A source without a token
// says nothing: exporters average what is hidden or give NaN, and the op gives zeros.
func keepLast(mask []int64, total int64) {
	for row := range slices.Chunk(mask, int(total)) {
		if !slices.Contains(row, 1) {
			row[total-1] = 1
		}
	}
}
