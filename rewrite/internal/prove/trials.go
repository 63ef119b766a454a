package prove

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/score"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// smaller returns a trial of no more scores than are held at once; it keeps its
// batch and, as far as it can, its past.
func (t trial) smaller(heads int) trial {
	scores := func(l int64) int64 { return t.pt.B * int64(heads) * l * (l + t.pt.P) }
	for t.pt.L > 1 && scores(t.pt.L) > score.MaxProven {
		t.pt.L--
	}
	return t
}

// trial is one set of inputs under which both are run.
type trial struct {
	pt        dim.Point
	padding   int   // kind of padding, as padding makes them
	positions int64 // first position; −1 follows the padding as tokenisers do, −2 takes random ones
	magnitude float64
	lengths   *eval.CacheLengths // of a counted cache; nil for others
	reach     int64              // largest position that is fed; 0 is 100,000
	more      int64              // times as many draws, where there are few trials; 0 is 1
}

// trials are chosen to reach every part of the op: lengths that are multiples
// of nothing, several tiles, decode, chunked prefill, batches, padding on
// either side and with holes, positions up to 100,000 or the table's end.
func trials(l *measure.Measured) []trial {
	if l.LengthTracked != nil {
		return lengthTrackedTrials(l)
	}
	last := min(100_000, l.PositionLimit)
	list := []trial{
		{pt: dim.Point{B: 1, L: 5, P: 0}, positions: 0, magnitude: 1},
		{pt: dim.Point{B: 2, L: 7, P: 4}, padding: 1, positions: -1, magnitude: 1},
		{pt: dim.Point{B: 3, L: 1, P: 9}, padding: 1, positions: -1, magnitude: 1},
		{pt: dim.Point{B: 2, L: 33, P: 0}, padding: 3, positions: -2, magnitude: 1},
		{pt: dim.Point{B: 1, L: 8, P: 3}, positions: last - 7, magnitude: 1},
		{pt: dim.Point{B: 2, L: 70, P: 131}, padding: 1, positions: -1, magnitude: 1},
		{pt: dim.Point{B: 1, L: 1, P: 300}, positions: last, magnitude: 1},
		{pt: dim.Point{B: 1, L: 131, P: 5}, padding: 2, positions: 5, magnitude: 3},
		{pt: dim.Point{B: 2, L: 19, P: 6}, padding: 4, positions: -2, magnitude: 0.3},
	}
	if !l.Layouts.Cached {
		list = append(list,
			trial{pt: dim.Point{B: 1, L: 1, P: 0}, positions: 0, magnitude: 1},
			trial{pt: dim.Point{B: 3, L: 17, P: 0}, padding: 1, positions: -1, magnitude: 1},
			trial{pt: dim.Point{B: 2, L: 64, P: 0}, padding: 2, positions: -2, magnitude: 1},
			trial{pt: dim.Point{B: 1, L: 257, P: 0}, positions: 0, magnitude: 1})
	}
	if w := l.Attention.Mask.Window; w > 0 && (w < 8192 && l.Layouts.Cached || w < 512) {
		list = append(list,
			trial{pt: dim.Point{B: 1, L: 3, P: w + 5}, positions: w + 5, magnitude: 1},
			trial{pt: dim.Point{B: 2, L: min(w, 300) + 7, P: w}, padding: 1, positions: -1, magnitude: 1})
	}
	if n := l.Attention.Encoding.Reach.Trained; n > 0 && (l.Layouts.Cached || n < 512) {
		list = append(list,
			trial{pt: dim.Point{B: 2, L: 1, P: n - 1}, magnitude: 1},
			trial{pt: dim.Point{B: 2, L: 1, P: n}, magnitude: 1},
			trial{pt: dim.Point{B: 1, L: 6, P: max(n-3, 0)}, magnitude: 1})
	}
	if l.Static != (dim.Point{}) {
		list = atStatic(l, list)
	}
	for i := range list {
		pt := &list[i].pt
		if !l.Layouts.Cached {
			pt.L, pt.P = pt.L+pt.P, 0 // all tokens are new
		}
		over := max(pt.L+pt.P-l.TokenLimit, 0)
		fewer := min(over, pt.P)
		pt.P, pt.L = pt.P-fewer, pt.L-(over-fewer)
	}
	if l.Angles != rope.Float32 {
		// Angles of 16 bits are soon off by more than a proof could see through.
		for i := range list {
			list[i].reach = coarseReach
			if !l.Layouts.Cached || l.Position == nil {
				list[i].pt.L, list[i].pt.P = min(list[i].pt.L, coarseReach/2), min(list[i].pt.P, coarseReach/2)
			}
		}
	}
	for i := range list {
		list[i] = list[i].smaller(l.Attention.Heads)
	}
	if l.Position == nil {
		for i := range list {
			list[i].positions = list[i].pt.P // the graph counts by itself
		}
	}
	return list
}

// tokens is the number of tokens of the longest row after the call.
func (t trial) tokens() int64 {
	if t.lengths != nil {
		return t.lengths.Total
	}
	return t.pt.L + t.pt.P
}

// draws is how often a trial is repeated with other numbers: the largest error
// of a handful of elements says little about an implementation.
func (t trial) draws(a rope.Attention) int {
	elements := t.pt.B * t.pt.L * int64(a.Heads*a.HeadSize)
	most := int64(mostDraws)
	if t.lengths != nil { // whose buffers may be large
		most = min(most, max(1<<20/(t.pt.B*max(t.pt.P, t.lengths.Total)*int64(a.KVHeads*a.HeadSize)), 1))
	}
	draws := min(max(enoughElements/elements, 1), most)
	if draws*elements < 4*enoughElements {
		draws *= max(t.more, 1)
	}
	return int(draws)
}

// A trial is repeated until so many elements are compared, rows that see no key
// not counted, but not more often than that.
const (
	enoughElements = 8192
	mostDraws      = 32
)

// coarseReach is the largest position in the proof of a site whose angles have 16 bits.
const coarseReach = 63

// atStatic makes of trials those at the sizes that the model has, one of each kind
// of padding, position and magnitude.
func atStatic(l *measure.Measured, list []trial) (out []trial) {
	for _, t := range list {
		if !l.Layouts.Cached {
			t.pt.L, t.pt.P = t.pt.L+t.pt.P, 0
		}
		t.pt = l.Static.Over(t.pt)
		if l.Position == nil {
			t.positions = 0 // places of their own
		}
		if t.more = 2; l.Static.L > 0 && (l.Static.P > 0 || !l.Layouts.Cached) {
			t.more = 4 // the fewer sizes there are to try, the more numbers
		}
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}
