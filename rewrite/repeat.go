package rewrite

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// headsTogether is how many heads are fed in one call, a row of the batch each:
// all of thousands would take the square of their number in memory.
const headsTogether = 64

// headMap feeds one head at a time from one of a branch's cuts and returns which
// of them each head of the operand is made of.
func headMap(ctx context.Context, l *loaded, b branch, part int, in, to layout) ([]int64, error) {
	from := slices.Repeat([]int64{-1}, int(to.heads))
	for first := int64(0); first < in.heads; first += headsTogether {
		if err := someHeads(ctx, l, b, part, in, to, first, min(headsTogether, in.heads-first), from); err != nil {
			return nil, err
		}
	}
	if h := slices.Index(from, -1); h >= 0 {
		return nil, fmt.Errorf("head %d is made of no head", h)
	}
	return from, nil
}

// someHeads does so for count heads from first on.
func someHeads(ctx context.Context, l *loaded, b branch, part int, in, to layout, first, count int64, from []int64) error {
	pt := point{B: count, L: 1, P: 1}
	if !l.table.past {
		pt.P = 0
	}
	pt = l.table.within(pt)
	feeds := map[string]engine.Tensor{}
	for i, cut := range b.cuts() {
		dims := evaluate(l.table.dims[cut], pt)
		elements, err := room(dims)
		if err != nil {
			return err
		}
		x := make([]float32, elements)
		for row := range count {
			for c := range in.channels {
				if i == part {
					x[in.index(dims, row, first+row, in.rows.at(pt)-1, c)] = 1
				}
			}
		}
		feeds[cut] = l.piece.state(cut, x, dims...)
	}
	if b.past() != "" {
		past := evaluate(l.table.dims[b.past()], pt)
		feeds[b.past()] = engine.Float32s(make([]float32, engine.Elements(past)), past...)
	}
	result, err := l.run(ctx, pt, feeds)
	if err != nil {
		return err
	}
	y := result[b.operand]
	values := y.Values()
	last := to.rows.at(pt) - 1 // the new token
	for h := range to.heads {
		for row := range count {
			size := 0.0
			for c := range to.channels {
				size += math.Abs(values[to.index(y.Dims, row, h, last, c)])
			}
			if size == 0 {
				continue
			}
			if from[h] >= 0 {
				return fmt.Errorf("head %d is made of heads %d and %d", h, from[h], first+row)
			}
			from[h] = first + row
		}
	}
	return nil
}

// grouped refuses a head map that is not the one of grouped-query attention:
// head h reads kv head h / (heads / kv heads).
func grouped(from []int64, kvHeads int64) error {
	for h, source := range from {
		if want := int64(h) * kvHeads / int64(len(from)); source != want {
			return fmt.Errorf("query head %d reads kv head %d, %d was expected", h, source, want)
		}
	}
	return nil
}

// snapped returns the number of a 16-bit type that a factor measured in it can
// hardly differ from; any other factor stays as it is.
func snapped(factor float64, p rope.Precision) float64 {
	if near := p.Round(factor); p != rope.Float32 && math.Abs(near-factor) < p.Epsilon()/16*math.Abs(factor) {
		return near
	}
	return factor
}

// repeatFactor checks that an operand is what the cache holds, head by head
// (repeated as grouped-query attention does), times one factor, and returns it.
func repeatFactor(ctx context.Context, l *loaded, cached, operand string, in, to layout) (float64, error) {
	pt := point{B: 2, L: 3, P: 4}
	if !l.table.past {
		pt.P = 0
	}
	pt = l.table.within(pt)
	x, y, err := l.random(ctx, pt, cached, operand, 1)
	if err != nil {
		return 0, err
	}
	given, values := x.Values(), y.Values()
	var dot, norm, worst float64
	each := func(f func(got, stored float64)) {
		for b := range pt.B {
			for h := range to.heads {
				for r := range to.rows.at(pt) {
					for c := range to.channels {
						f(values[to.index(y.Dims, b, h, r, c)], given[in.index(x.Dims, b, h*in.heads/to.heads, r, c)])
					}
				}
			}
		}
	}
	each(func(got, stored float64) { dot += got * stored; norm += stored * stored })
	p := l.piece.precision()
	factor := snapped(dot/norm, p)
	slack := 32 * float32eps
	if p != rope.Float32 {
		slack = 4 * p.Epsilon()
	}
	each(func(got, stored float64) { worst = math.Max(worst, math.Abs(got-factor*stored)) })
	if !(worst <= slack*math.Abs(factor)) {
		return 0, fmt.Errorf("it is not the cache's content times one factor (%g, off by %g)", factor, worst)
	}
	return factor, nil
}
