package score

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// A bias that depends on the distance between query and key alone need not be a tensor of
// length · length: the op has slopes and buckets of distances. They are read from the row of
// one query with as many keys as possible before it and, where later keys are visible, from
// that of the first query of as many tokens. The samples then decide, as for a mask.

// maxBuckets is the largest number of buckets of distances. T5 has 32; a learned table of
// distances has some hundred.
const maxBuckets = 2048

// profile is what a head adds to its scores by the distance to a key before the query, and
// behind it. Numbers of one list are comparable up to a constant.
type profile struct{ earlier, later []float32 }

// distance finds the bias by distance of a fit whose structure is known, and the window, which
// values that fall with the distance may look like.
func (s *Scorer) distance(ctx context.Context, rng *rand.Rand, fit *Fit) error {
	heads, err := s.profiles(ctx, rng, fit.Mask.Causal)
	if err != nil {
		return err
	}
	shown := fit.Distance.Shown
	slopes, reach := s.slopes(heads)
	if slopes == nil {
		if fit.Distance, reach, err = buckets(heads); err != nil {
			return err
		}
	} else {
		fit.Distance = rope.Distance{Slopes: slopes}
	}
	fit.Distance.Shown = shown
	fit.Mask.Window = 0
	if n := int64(len(heads[0].earlier)); reach < n {
		fit.Mask.Window = reach
	}
	return s.biased(ctx, rng, fit)
}

// biased returns an error if scores of zero do not become the bias by distance of a fit, with
// padding of every kind. Other scores show less of it: their own rounding is larger.
func (s *Scorer) biased(ctx context.Context, rng *rand.Rand, fit *Fit) error {
	points := s.points()
	for _, past := range s.far() {
		points = append(points, dim.Point{B: 1, L: 1, P: past})
	}
	for i, pt := range points {
		smp, err := s.sample(ctx, rng, fit, pt, eval.Padding(rng, pt, eval.PaddingKind(i)), func() float64 { return 0 })
		if err == nil {
			err = s.agrees(fit, smp)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// profiles evaluates the rows from which the bias is read, of every head.
func (s *Scorer) profiles(ctx context.Context, rng *rand.Rand, causal bool) ([]profile, error) {
	heads := make([]profile, s.Fed.Heads)
	last := s.within(dim.Point{B: 1, L: 1, P: s.longest})
	rows, err := s.unpadded(ctx, rng, last)
	if err != nil {
		return nil, err
	}
	for h := range heads {
		row := rows[int64(h+1)*last.L-1]
		heads[h].earlier = slices.Clone(row[:last.P+last.L])
		slices.Reverse(heads[h].earlier)
	}
	if causal {
		return heads, nil
	}
	first := s.within(dim.Point{B: 1, L: s.longest + 1})
	switch {
	case s.byRows:
		first = dim.Point{B: 1, L: 1, P: s.longest}
		given, err := s.given(rng, first, slices.Repeat([]int64{1}, int(first.Keys())))
		if err != nil {
			return nil, err
		}
		given[eval.RowsInput] = engine.Int64s([]int64{0}, 1)
		if rows, err = s.ZeroRows(ctx, first, given); err != nil {
			return nil, err
		}
	case s.ends():
		if rows, err = s.unpadded(ctx, rng, first); err != nil {
			return nil, err
		}
	default:
		return nil, errors.New("it shows later keys, of which only few can be evaluated at once")
	}
	for h := range heads {
		heads[h].later = rows[int64(h)*first.L]
	}
	return heads, nil
}

// slopes returns the slope of each head where biases fall linearly with the distance, nil where
// they do not, and how many of the nearest keys are visible.
func (s *Scorer) slopes(heads []profile) (slopes []float64, reach int64) {
	const near = 64 // distances that show whether a head is linear, and about how steep
	slack, any := s.lineSlack(), false
	for _, head := range heads {
		n := visible(head.earlier[:min(near+1, len(head.earlier))], 0)
		slope, ok := line(head.earlier[:n], slack)
		if !ok {
			return nil, 0
		}
		n = visible(head.earlier, slope)
		if slope, ok = line(head.earlier[:n], slack); !ok {
			return nil, 0
		}
		for d, v := range head.later[:visible(head.later, slope)] {
			if !onLine(slack, slope, d, v, head.later[0]) {
				return nil, 0
			}
		}
		any = any || slope != 0
		slopes, reach = append(slopes, slope), max(reach, n)
	}
	if !any {
		return nil, 0
	}
	return slopes, reach
}

// visible is how many of the nearest keys are not hidden where the rest falls with a slope.
func visible(by []float32, slope float64) int64 {
	for d, v := range by {
		if float64(v)-float64(by[0])+slope*float64(d) <= Masked {
			return int64(d)
		}
	}
	return int64(len(by))
}

// line returns the slope by which values fall, as float32, and whether they do so but for slack. The slope is
// that of least squares with a constant, which leaves the rounding of single values out. Small
// values count for more, as they are rounded less.
func line(by []float32, slack float64) (slope float64, ok bool) {
	if len(by) < 3 {
		return 0, false
	}
	const least = 1.0 / 4096 // of the largest value: smaller ones count no more
	largest := max(float64(slices.Max(by)), -float64(slices.Min(by)))
	weight := func(v float32) float64 {
		size := math.Abs(float64(v)) + least*largest
		return 1 / (size * size)
	}
	if largest == 0 {
		return 0, true
	}
	var all, middle, mean float64
	for d, v := range by {
		w := weight(v)
		all, middle, mean = all+w, middle+w*float64(d), mean+w*float64(v)
	}
	middle, mean = middle/all, mean/all
	var dot, norm float64
	for d, v := range by {
		dot -= weight(v) * (float64(d) - middle) * (float64(v) - mean)
		norm += weight(v) * (float64(d) - middle) * (float64(d) - middle)
	}
	slope = float64(float32(dot / norm))
	for d, v := range by {
		if !onLine(slack, slope, d, v, by[0]) {
			return 0, false
		}
	}
	return slope, true
}

// lineSlack is slack for the values of a line.
func (s *Scorer) lineSlack() float64 {
	if p := s.precision(); p != rope.Float32 {
		return p.Epsilon() // a product and a sum are rounded
	}
	return s.slack(true)
}

// onLine reports whether a value at a distance lies on the line through that at distance 0.
func onLine(slack, slope float64, d int, v, v0 float32) bool {
	off := math.Abs(float64(v) - float64(v0) + slope*float64(d))
	return off <= slack*(math.Abs(float64(v))+math.Abs(float64(v0)))
}

// buckets returns the biases by ranges of distances in which no head's bias changes, and how many
// of the nearest keys before the query are visible.
func buckets(heads []profile) (rope.Distance, int64, error) {
	var d rope.Distance
	reach := visible(heads[0].earlier, 0)
	behind := int64(0) // later keys
	if later := heads[0].later; later != nil {
		behind = visible(later, 0) - 1
	}
	value := func(p profile, distance int64) float64 {
		if distance < 0 {
			return float64(p.later[-distance]) - float64(p.later[0]) + float64(p.earlier[0])
		}
		return float64(p.earlier[distance])
	}
	for distance := -behind; distance < reach; distance++ {
		if distance > -behind && !slices.ContainsFunc(heads, func(p profile) bool { return value(p, distance) != value(p, distance-1) }) {
			continue
		}
		if len(d.Starts) == maxBuckets {
			return d, 0, fmt.Errorf("its bias changes with the distance more than %d times", maxBuckets)
		}
		biases := make([]float64, len(heads))
		for h, p := range heads {
			if biases[h] = value(p, distance); biases[h] <= Masked {
				return d, 0, fmt.Errorf("it hides keys at the distance %d in some of its heads", distance)
			}
		}
		d.Starts, d.Biases = append(d.Starts, distance), append(d.Biases, biases)
	}
	if len(d.Starts) < 2 {
		return d, 0, errors.New("it has no bias by distance")
	}
	if d.Starts[0] < 0 {
		d.Starts[0] = d.Starts[1] - 1 // it has all smaller ones
	}
	return d, reach, nil
}

// slack is by which share of the numbers that it is made of a value may be off. A bias by distance that is
// rounded to a type of fewer bits than the scores have is another one: that type explains nothing then.
func (s *Scorer) slack(byDistance bool) float64 {
	p := s.precision()
	if !byDistance {
		p = s.Loaded.Piece.Precision()
	}
	if p != rope.Float32 {
		return 2 * p.Epsilon()
	}
	return 16 * ir.Float32eps
}

// precision is that of the scores.
func (s *Scorer) precision() rope.Precision {
	return ir.Precision(s.Loaded.Piece.Graph.Element(s.In))
}

// weights returns what a fit's bias by distance is for each key of a query in a sample.
func (f *Fit) weights(smp Sample, h, b, i int64) func(key int64) float64 {
	total, own := smp.Pt.Keys(), smp.Pt.P+i
	if !f.Distance.Shown {
		return func(key int64) float64 { return f.Distance.Bias(int(h), own-key) }
	}
	before := make([]int64, total) // keys that the mask shows before each
	for j := int64(1); j < total; j++ {
		before[j] = before[j-1] + dim.OneIf(smp.Mask[b*total+j-1] != 0)
	}
	return func(key int64) float64 { return f.Distance.Bias(int(h), before[own]-before[key]) }
}

// unweighted returns what becomes of each score in row r of a sample, less the score and the bias
// by distance.
func (s *Scorer) unweighted(fit *Fit, smp Sample, keys *Keys, r int) func(key int64) float64 {
	h, b, i := s.place(smp.Pt, r)
	weight := fit.weights(smp, h, b, i)
	rest := func(j int64) float64 {
		return float64(smp.out[r][j]) - fit.Curve.at(float64(smp.in[r][j])) - weight(j)
	}
	most := math.Inf(-1)
	for j := range smp.Pt.Keys() {
		if keys.Has(j) {
			most = max(most, rest(j))
		}
	}
	constant := fit.lift(h, smp.Pt.Keys(), most)
	return func(j int64) float64 { return rest(j) - constant }
}

// lift is the constant that a row's biases have beside those of the fit, where that explains why
// values of visible keys are far below 0: the distance may be counted from another key than the
// query's own.
func (f *Fit) lift(h, total int64, most float64) float64 {
	const scores = 500 // more than the scores of samples
	if f.Distance.Slopes == nil || most >= 0 || -most > math.Abs(f.Distance.Slopes[h])*float64(total)+scores {
		return 0
	}
	return most
}
