package prove

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/score"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// RowKind says how a row of a result is judged.
type RowKind int8

const (
	Compared          RowKind = iota // with the original, in full
	PaddedWithoutKeys                // an output row of a padded token that sees no key: judged apart
	unused                           // not judged: a row of a cache that holds no token, or of the output where the original gives no number
)

// rowKinds returns the kind of row of each element of a result.
func (c *comparison) rowKinds(ctx context.Context, result int, t trial, feeds map[string]engine.Tensor, mask []int64) (func(i int64) RowKind, error) {
	m := c.measured
	if c.site.Alone > 0 {
		return func(int64) RowKind { return Compared }, nil
	}
	if t.lengths != nil {
		return t.lengthTrackedRows(result, m), nil
	}
	if result != output && m.Slots != nil {
		return c.slotRows(result, t), nil
	}
	if result == presentKey && c.at != nil && m.Attention.Mask.Padding && m.Latent == nil {
		return c.newKeyRows(t, mask), nil
	}
	if result != output || m.Attention.Cross {
		return func(int64) RowKind { return Compared }, nil
	}
	smp := score.Sample{Pt: t.pt, Mask: mask}
	heads := int64(1) // a bias may differ between heads
	var none []bool
	if c.bias != nil {
		heads = c.bias.Fed.Heads
		given := map[string]engine.Tensor{}
		for _, v := range c.bias.Loaded.Piece.Inputs {
			given[v.Name] = feeds[v.Name]
		}
		shown := maps.Clone(given)
		for _, b := range c.site.Biases {
			given[b.Value], shown[b.Value] = feeds[b.Value], withoutHiding(feeds[b.Value], b)
		}
		var err error
		if smp.Base, err = c.bias.ZeroRows(ctx, t.pt, shown); err != nil {
			return nil, err
		}
		if none, err = c.hiddenRows(ctx, t, given, smp.Base); err != nil {
			return nil, err
		}
	}
	smp.Mask = paddingOf(m, smp, heads, feeds)
	padded, real := PaddedQueries(m, smp, heads)
	c.tried.RealWithoutKeys = c.tried.RealWithoutKeys || real
	c.tried.PaddedWithoutKeys = c.tried.PaddedWithoutKeys || slices.Contains(padded, true)
	return RowsOfOutput(m, t.pt, func(b, i int64) RowKind {
		switch {
		case none != nil && none[b*t.pt.L+i]:
			return unused
		case padded[b*t.pt.L+i]:
			return PaddedWithoutKeys
		}
		return Compared
	}), nil
}

// withoutHiding returns a hidden state that is added to scores without the numbers that
// hide keys.
func withoutHiding(state engine.Tensor, b site.Bias) engine.Tensor {
	x := slices.Clone(state.Float32s())
	for i := range x {
		if x[i] < score.Masked && !b.Subtracted || x[i] > -score.Masked && b.Subtracted {
			x[i] = 0
		}
	}
	return engine.Float32s(x, state.Dims...)
}

// hiddenRows returns, as [batch·length], for which queries a hidden state that is added to
// the scores is −∞ for every key that the mask shows, in some head. The original divides
// zero by zero there, and what it goes on to compute is lost; the op gives zeros. shown is
// the rows without these −∞. It returns nil where no such state hides keys.
func (c *comparison) hiddenRows(ctx context.Context, t trial, given map[string]engine.Tensor, shown [][]float32) ([]bool, error) {
	if !slices.ContainsFunc(c.site.Biases, func(b site.Bias) bool { return b.Hides }) {
		return nil, nil
	}
	rows, err := c.bias.ZeroRows(ctx, t.pt, given)
	if err != nil {
		return nil, err
	}
	none := make([]bool, t.pt.B*t.pt.L)
	for r, row := range rows {
		b, i := int64(r)/t.pt.L/c.bias.Fed.Heads, int64(r)%t.pt.L
		if slices.Max(row) == float32(math.Inf(-1)) && slices.Max(shown[r]) > float32(math.Inf(-1)) {
			none[b*t.pt.L+i] = true
		}
	}
	return none, nil
}

// paddingOf returns, as [batch, past + length], 0 for tokens of a sample that are padding
// and 1 for others. Where the padding mask is a part of the model's own bias, padding is a
// token for which an integer input [batch, past + length] is 0 and whose key no query sees.
func paddingOf(m *measure.Measured, smp score.Sample, heads int64, feeds map[string]engine.Tensor) []int64 {
	if m.Mask != nil {
		return smp.Mask
	}
	pt, total := smp.Pt, smp.Pt.L+smp.Pt.P
	real := slices.Repeat([]int64{1}, int(pt.B*total))
	fit := score.Fit{Mask: m.Attention.Mask}
	for _, v := range m.Others {
		given := feeds[v.Name]
		if d := given.Dims; len(d) != 2 || d[1] != total {
			continue
		}
		for j, x := range given.Values() {
			if x == 0 {
				for b := int64(j) / total; b < pt.B; b += given.Dims[0] {
					real[b*total+int64(j)%total] = dim.OneIf(keyVisible(&fit, smp, heads, b, int64(j)%total))
				}
			}
		}
	}
	return real
}

// keyVisible reports whether any query of row b of the batch sees the key.
func keyVisible(f *score.Fit, smp score.Sample, heads, b, key int64) bool {
	for i := range smp.Pt.L {
		for h := range heads {
			if keys := f.Shown(smp, int((b*heads+h)*smp.Pt.L+i), b, i); keys.Has(key) {
				return true
			}
		}
	}
	return false
}

// PaddedQueries returns, as [batch·length], which queries of a sample belong to padding
// and see no key in some head. real says that a query of a token that is not padding sees
// no key in some head; it is still compared.
func PaddedQueries(m *measure.Measured, smp score.Sample, heads int64) (list []bool, real bool) {
	pt := smp.Pt
	list = make([]bool, pt.B*pt.L)
	fit := score.Fit{Mask: m.Attention.Mask}
	for b := range pt.B {
		for i := range pt.L {
			for h := range heads {
				if keys := fit.Shown(smp, int((b*heads+h)*pt.L+i), b, i); keys.First() >= 0 {
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

// untried judges queries that see no key in some small call, and in no trial: what the original gives them is
// unknown then. The site is refused where such a token is no padding; a padded one counts as one for which the op
// differs. The trials of a length-tracked cache always have such rows.
func (c *comparison) untried() error {
	may := c.measured.Cases
	if c.measured.LengthTracked != nil {
		return nil
	}
	if may.RealWithoutKeys && !c.tried.RealWithoutKeys {
		return graph.Refuse(c.site.Softmax, "its mask hides all keys from some tokens that are not padding, in calls of a few tokens only, and what the original gives for these was not compared")
	}
	c.proof.PaddedDiffer = c.proof.PaddedDiffer || may.PaddedWithoutKeys && !c.tried.PaddedWithoutKeys
	return nil
}

// RowsOfOutput returns the kind of row of each element of the output, from the kind of
// query i in row b of the batch.
func RowsOfOutput(m *measure.Measured, pt dim.Point, kind func(b, i int64) RowKind) func(i int64) RowKind {
	// All elements are gone through once, because a layout gives an element's index and not the reverse.
	ly := m.Layouts.Output
	dims := OutputDims(m, pt)
	kinds := make([]RowKind, engine.Elements(dims))
	strides := ly.Strides(dims)
	for b := range pt.B {
		for i := range pt.L {
			k := kind(b, i)
			for h := range ly.Heads {
				for c := range ly.Channels {
					kinds[strides.Index(b, h, i, c)] = k
				}
			}
		}
	}
	return func(i int64) RowKind { return kinds[i] }
}

// OutputDims returns the dimensions of the output at the sizes pt.
func OutputDims(m *measure.Measured, pt dim.Point) []int64 {
	ly := m.Layouts.Output
	dims := make([]int64, len(ly.Axes))
	for i, a := range ly.Axes {
		dims[i] = map[dim.Axis]int64{dim.BatchAxis: pt.B, dim.HeadAxis: ly.Heads, dim.RowAxis: pt.L, dim.ChannelAxis: ly.Channels,
			dim.MergedAxis: ly.Heads * ly.Channels, dim.BatchHeadAxis: pt.B * ly.Heads}[a]
	}
	return dims
}

// slotRows returns the kind of row of each element of a cache of fixed size: rows
// behind a call's tokens are never used.
func (c *comparison) slotRows(result int, t trial) func(i int64) RowKind {
	channels := c.measured.Layouts.Key.Channels
	if result == presentValue {
		channels = c.measured.Layouts.Value.Channels
	}
	run := sizes(c.evaluator, t)
	return func(i int64) RowKind {
		if i/channels%(run.L+run.P) < t.tokens() {
			return Compared
		}
		return unused
	}
}
