package prove

import (
	"context"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/score"
)

// RowKind says how a row of a result is held to the rule.
type RowKind int8

const (
	Compared          RowKind = iota
	PaddedWithoutKeys         // the output of a padded token that sees no key: judged apart
	unused                    // room in a cache that holds no token
)

// rowKinds says of each element of a result what kind of row it is in.
func (c *comparison) rowKinds(ctx context.Context, result int, t trial, feeds map[string]engine.Tensor, mask []int64) (func(i int64) RowKind, error) {
	l := c.lift
	if t.lengths != nil {
		return t.lengthTrackedKinds(result, l), nil
	}
	if result != 0 {
		return func(int64) RowKind { return Compared }, nil
	}
	smp := score.Sample{Pt: t.pt, Mask: mask}
	heads := int64(1) // a bias may differ between heads
	if c.bias != nil {
		heads = c.bias.Heads
		given := map[string]engine.Tensor{}
		for _, v := range c.bias.Loaded.Piece.Inputs {
			given[v.Name] = feeds[v.Name]
		}
		var err error
		if _, smp.Base, err = c.bias.Rows(ctx, t.pt, score.Zero, given); err != nil {
			return nil, err
		}
	}
	smp.Mask = paddingOf(l, smp, heads, feeds)
	padded, real := PaddedQueries(l, smp, heads)
	c.unseeing = c.unseeing || real
	return RowsOfOutput(l, t.pt, func(b, i int64) RowKind {
		if padded[b*t.pt.L+i] {
			return PaddedWithoutKeys
		}
		return Compared
	}), nil
}

// paddingOf returns 0 for each token of a sample, cached ones included, that is
// padding. Where a bias has taken up the padding mask, that is a token whose key
// is hidden from all queries and for which an integer input [batch, past + length]
// has a 0.
func paddingOf(l *measure.Measured, smp score.Sample, heads int64, feeds map[string]engine.Tensor) []int64 {
	if l.Mask != nil {
		return smp.Mask
	}
	pt, total := smp.Pt, smp.Pt.L+smp.Pt.P
	real := slices.Repeat([]int64{1}, int(pt.B*total))
	fit := score.Fit{Mask: l.Attention.Mask}
	for _, v := range l.Others {
		given := feeds[v.Name]
		if d := given.Dims; len(d) != 2 || d[1] != total {
			continue
		}
		for j, x := range given.Values() {
			if x == 0 {
				for b := int64(j) / total; b < pt.B; b += given.Dims[0] {
					real[b*total+int64(j)%total] = eval.B2i(seen(&fit, smp, heads, b, int64(j)%total))
				}
			}
		}
	}
	return real
}

// seen reports whether a query of the row sees the key.
func seen(f *score.Fit, smp score.Sample, heads, b, key int64) bool {
	for i := range smp.Pt.L {
		for h := range heads {
			if f.Shown(smp, int((b*heads+h)*smp.Pt.L+i), b, i, key) {
				return true
			}
		}
	}
	return false
}

// PaddedQueries says of each query of a sample, as [batch·length], whether
// its token is padding and one of the heads sees no key. A query of a token that
// is no padding is compared in any case; real says that one sees no key.
func PaddedQueries(l *measure.Measured, smp score.Sample, heads int64) (list []bool, real bool) {
	pt := smp.Pt
	list = make([]bool, pt.B*pt.L)
	fit := score.Fit{Mask: l.Attention.Mask}
	for b := range pt.B {
		for i := range pt.L {
			for h := range heads {
				if fit.First(smp, int((b*heads+h)*pt.L+i), b, i) >= 0 {
					continue
				}
				if smp.Mask[b*(pt.L+pt.P)+pt.P+i] != 0 {
					real = true
				} else {
					list[b*pt.L+i] = true
				}
			}
		}
	}
	return list, real
}

// RowsOfOutput says of each element of the output of which kind the row is that
// it belongs to.
func RowsOfOutput(l *measure.Measured, pt dim.Point, kind func(b, i int64) RowKind) func(i int64) RowKind {
	// The output's element → row map, by walking its layout once.
	ly := l.Layouts.Output
	dims := OutputDims(l, pt)
	kinds := make([]RowKind, engine.Elements(dims))
	for b := range pt.B {
		for i := range pt.L {
			for h := range ly.Heads {
				for c := range ly.Channels {
					kinds[ly.Index(dims, b, h, i, c)] = kind(b, i)
				}
			}
		}
	}
	return func(i int64) RowKind { return kinds[i] }
}

// OutputDims returns the dimensions of the output.
func OutputDims(l *measure.Measured, pt dim.Point) []int64 {
	ly := l.Layouts.Output
	dims := make([]int64, len(ly.Axes))
	for i, a := range ly.Axes {
		dims[i] = map[dim.Axis]int64{dim.BatchAxis: pt.B, dim.HeadAxis: ly.Heads, dim.RowAxis: pt.L, dim.ChannelAxis: ly.Channels,
			dim.MergedAxis: ly.Heads * ly.Channels, dim.BatchHeadAxis: pt.B * ly.Heads}[a]
	}
	return dims
}
