package measure

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// headsTogether is how many heads are fed in one call, a row of the batch each:
// all of thousands would take the square of their number in memory.
const headsTogether = 64

// headMap feeds one head at a time from one of a branch's cuts and returns which
// of them each head of the operand is made of.
func headMap(ctx context.Context, l *eval.Loaded, b site.Branch, part int, in, to dim.Layout) ([]int64, error) {
	from := slices.Repeat([]int64{-1}, int(to.Heads))
	for first := int64(0); first < in.Heads; first += headsTogether {
		if err := someHeads(ctx, l, b, part, in, to, first, min(headsTogether, in.Heads-first), from); err != nil {
			return nil, err
		}
	}
	if h := slices.Index(from, -1); h >= 0 {
		return nil, fmt.Errorf("head %d is made of no head", h)
	}
	return from, nil
}

// someHeads does so for count heads from first on.
func someHeads(ctx context.Context, l *eval.Loaded, b site.Branch, part int, in, to dim.Layout, first, count int64, from []int64) error {
	pt := dim.Point{B: count, L: 1, P: 1}
	if !l.Table.Past {
		pt.P = 0
	}
	pt = l.Table.Within(pt)
	feeds := map[string]engine.Tensor{}
	for i, cut := range b.Boundaries() {
		dims := dim.Evaluate(l.Table.Dims[cut], pt)
		elements, err := bound.Room(dims)
		if err != nil {
			return err
		}
		x := make([]float32, elements)
		for row := range count {
			for c := range in.Channels {
				if i == part {
					x[in.Index(dims, row, first+row, in.Rows.At(pt)-1, c)] = 1
				}
			}
		}
		feeds[cut] = l.Piece.State(cut, x, dims...)
	}
	if b.Past() != "" {
		past := dim.Evaluate(l.Table.Dims[b.Past()], pt)
		feeds[b.Past()] = engine.Float32s(make([]float32, engine.Elements(past)), past...)
	}
	result, err := l.Run(ctx, pt, feeds)
	if err != nil {
		return err
	}
	y := result[b.Operand]
	values := y.Values()
	last := to.Rows.At(pt) - 1 // the new token
	for h := range to.Heads {
		for row := range count {
			size := 0.0
			for c := range to.Channels {
				size += math.Abs(values[to.Index(y.Dims, row, h, last, c)])
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

// repeatFactor checks that an operand is what the cache holds, head by head
// (repeated as grouped-query attention does), times one factor, and returns it.
func repeatFactor(ctx context.Context, l *eval.Loaded, cached, operand string, in, to dim.Layout) (float64, error) {
	pt := dim.Point{B: 2, L: 3, P: 4}
	if !l.Table.Past {
		pt.P = 0
	}
	pt = l.Table.Within(pt)
	x, y, err := l.Random(ctx, pt, cached, operand, 1)
	if err != nil {
		return 0, err
	}
	given, values := x.Values(), y.Values()
	var dot, norm, worst float64
	each := func(f func(got, stored float64)) {
		for b := range pt.B {
			for h := range to.Heads {
				for r := range to.Rows.At(pt) {
					for c := range to.Channels {
						f(values[to.Index(y.Dims, b, h, r, c)], given[in.Index(x.Dims, b, h*in.Heads/to.Heads, r, c)])
					}
				}
			}
		}
	}
	each(func(got, stored float64) { dot += got * stored; norm += stored * stored })
	p := l.Piece.Precision()
	factor := ir.Snapped(dot/norm, p)
	slack := 32 * ir.Float32eps
	if p != rope.Float32 {
		slack = 4 * p.Epsilon()
	}
	each(func(got, stored float64) { worst = math.Max(worst, math.Abs(got-factor*stored)) })
	if !(worst <= slack*math.Abs(factor)) {
		return 0, fmt.Errorf("it is not the cache's content times one factor (%g, off by %g)", factor, worst)
	}
	return factor, nil
}
