package rewrite

import (
	"context"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
)

// rowKind says how a row of a result is held to the rule.
type rowKind int8

const (
	compared          rowKind = iota
	paddedWithoutKeys         // the output of a padded token that sees no key: judged apart
	unused                    // room in a cache that holds no token
)

// rowKinds says of each element of a result what kind of row it is in.
func (c *comparison) rowKinds(ctx context.Context, result int, t trial, feeds map[string]engine.Tensor, mask []int64) (func(i int64) rowKind, error) {
	l := c.lift
	if t.counts != nil {
		return t.countedKinds(result, l), nil
	}
	if result != 0 {
		return func(int64) rowKind { return compared }, nil
	}
	smp := sample{pt: t.pt, mask: mask}
	heads := int64(1) // a bias may differ between heads
	if c.bias != nil {
		heads = c.bias.heads
		given := map[string]engine.Tensor{}
		for _, v := range c.bias.loaded.piece.inputs {
			given[v.Name] = feeds[v.Name]
		}
		var err error
		if _, smp.base, err = c.bias.rows(ctx, t.pt, zero, given); err != nil {
			return nil, err
		}
	}
	smp.mask = l.paddingOf(smp, heads, feeds)
	padded, real := l.paddedWithoutKeys(smp, heads)
	c.unseeing = c.unseeing || real
	return l.rowsOfOutput(t.pt, func(b, i int64) rowKind {
		if padded[b*t.pt.L+i] {
			return paddedWithoutKeys
		}
		return compared
	}), nil
}

// paddingOf returns 0 for each token of a sample, cached ones included, that is
// padding. Where a bias has taken up the padding mask, that is a token whose key
// is hidden from all queries and for which an integer input [batch, past + length]
// has a 0.
func (l *lifted) paddingOf(smp sample, heads int64, feeds map[string]engine.Tensor) []int64 {
	if l.mask != nil {
		return smp.mask
	}
	pt, total := smp.pt, smp.pt.L+smp.pt.P
	real := slices.Repeat([]int64{1}, int(pt.B*total))
	fit := scoreFit{mask: l.attention.Mask}
	for _, v := range l.others {
		given := feeds[v.Name]
		if d := given.Dims; len(d) != 2 || d[1] != total {
			continue
		}
		for j, x := range given.Values() {
			if x == 0 {
				for b := int64(j) / total; b < pt.B; b += given.Dims[0] {
					real[b*total+int64(j)%total] = b2i(fit.seen(smp, heads, b, int64(j)%total))
				}
			}
		}
	}
	return real
}

// seen reports whether a query of the row sees the key.
func (f *scoreFit) seen(smp sample, heads, b, key int64) bool {
	for i := range smp.pt.L {
		for h := range heads {
			if f.shown(smp, int((b*heads+h)*smp.pt.L+i), b, i, key) {
				return true
			}
		}
	}
	return false
}

// paddedWithoutKeys says of each query of a sample, as [batch·length], whether
// its token is padding and one of the heads sees no key. A query of a token that
// is no padding is compared in any case; real says that one sees no key.
func (l *lifted) paddedWithoutKeys(smp sample, heads int64) (list []bool, real bool) {
	pt := smp.pt
	list = make([]bool, pt.B*pt.L)
	fit := scoreFit{mask: l.attention.Mask}
	for b := range pt.B {
		for i := range pt.L {
			for h := range heads {
				if fit.first(smp, int((b*heads+h)*pt.L+i), b, i) >= 0 {
					continue
				}
				if smp.mask[b*(pt.L+pt.P)+pt.P+i] != 0 {
					real = true
				} else {
					list[b*pt.L+i] = true
				}
			}
		}
	}
	return list, real
}

// rowsOfOutput says of each element of the output of which kind the row is that
// it belongs to.
func (l *lifted) rowsOfOutput(pt point, kind func(b, i int64) rowKind) func(i int64) rowKind {
	// The output's element → row map, by walking its layout once.
	ly := l.layouts.output
	dims := l.outputDims(pt)
	kinds := make([]rowKind, engine.Elements(dims))
	for b := range pt.B {
		for i := range pt.L {
			for h := range ly.heads {
				for c := range ly.channels {
					kinds[ly.index(dims, b, h, i, c)] = kind(b, i)
				}
			}
		}
	}
	return func(i int64) rowKind { return kinds[i] }
}

// outputDims returns the dimensions of the output.
func (l *lifted) outputDims(pt point) []int64 {
	ly := l.layouts.output
	dims := make([]int64, len(ly.axes))
	for i, a := range ly.axes {
		dims[i] = map[axis]int64{batchAxis: pt.B, headAxis: ly.heads, rowAxis: pt.L, channelAxis: ly.channels,
			mergedAxis: ly.heads * ly.channels, batchHeadAxis: pt.B * ly.heads}[a]
	}
	return dims
}
