package prove

import (
	"context"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/positions"
)

// openPositions opens the positions that the graph computes itself. done closes them.
func (c *comparison) openPositions(ctx context.Context) (done func(), _ error) {
	if c.measured.Computed == nil {
		return func() {}, nil
	}
	r, err := positions.Open(ctx, c.evaluator, c.measured.Computed)
	if err != nil {
		return nil, graph.Refuse(c.site.Softmax, "the positions that the graph computes (%q) cannot be evaluated: %v", short.Name(c.measured.Computed.Value), err)
	}
	c.computed = r
	return r.Close, nil
}

// place notes the positions that the graph computes in a call.
func (c *comparison) place(ctx context.Context, t trial, feeds map[string]engine.Tensor) (err error) {
	if c.computed == nil {
		return nil
	}
	if c.at, err = c.computed.At(ctx, t.pt, feeds); err != nil {
		return graph.Refuse(c.site.Softmax, "the positions that the graph computes (%q) cannot be evaluated with %v: %v", short.Name(c.measured.Computed.Value), t.pt, err)
	}
	return nil
}

// newKeyRows returns the kind of row of each element of the present keys where padded tokens stand below
// 0: a table has other rows there than a rotation (its last ones), and the mask hides these keys in
// every call.
func (c *comparison) newKeyRows(t trial, mask []int64) func(i int64) RowKind {
	m, total := c.measured, t.pt.Keys()
	return func(i int64) RowKind {
		row, b := i/m.Layouts.Key.Channels%total, i/m.Layouts.Key.Channels/total/m.Layouts.Key.Heads
		if place := row - t.pt.P; place >= 0 && mask[b*total+row] == 0 && c.at[b*t.pt.L+place] < 0 {
			return unused
		}
		return Compared
	}
}

// positions returns a function that gives the position of a new token by which a channel
// pair turns: in row b of the batch, at this place among the new tokens, at this index
// among all tokens.
func (c *comparison) positions(t trial, feeds map[string]engine.Tensor) func(b, place, index int64, pair int) int64 {
	switch {
	case c.at != nil:
		return func(b, place, _ int64, _ int) int64 { return int64(c.at[b*t.pt.L+place]) }
	case c.measured.Position == nil:
		return func(_, _, index int64, _ int) int64 { return index }
	}
	input := feeds[c.measured.Position.Name]
	values, axes := input.Values(), c.measured.Attention.Encoding.Axes
	of := int64(len(values)) // positions of one axis
	if axes != nil {
		of /= input.Dims[0]
	}
	return func(b, place, _ int64, pair int) int64 {
		at := (b*t.pt.L + place) % of
		if axes != nil {
			at += int64(axes[pair]) * of
		}
		return int64(values[at])
	}
}
