package rotation

import (
	"context"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// callTables computes the tables of calls of any length.
type callTables struct {
	loaded  *eval.Loaded
	values  []string
	given   []string // as which outputs of the piece they are given
	dims    map[string][]dim.Extent
	last    *Tables // of the last length: many positions are asked for in calls of one
	changes *Change // which rows change, and beyond which length
}

// Changes says which rows are other ones in calls of other lengths, and beyond which. It is nil
// where all calls have the same.
func (t *Tables) Changes() *Change {
	if t == nil || t.byCall == nil {
		return nil
	}
	return t.byCall.changes
}

// in returns the tables of calls of a length.
func (t *Tables) in(ctx context.Context, length int64) (_ *Tables, err error) {
	c := t.byCall
	if c == nil {
		return t, nil
	}
	if c.last == nil || c.last.limit != length-1 {
		c.last, err = c.compute(ctx, dim.Point{B: 1, L: length})
	}
	return c.last, err
}

// Close releases what computes them.
func (t *Tables) Close() {
	if t.byCall != nil {
		t.byCall.loaded.Session.Close()
	}
}

// compute evaluates them at some sizes.
func (c *callTables) compute(ctx context.Context, pt dim.Point) (*Tables, error) {
	results, err := c.loaded.Run(ctx, pt, nil)
	if err != nil {
		return nil, err
	}
	t := &Tables{limit: pt.L - 1}
	for i, v := range c.values {
		whole := results[c.given[i]]
		if want := dim.Evaluate(c.dims[v], pt); !slices.Equal(whole.Dims, want) {
			return nil, fmt.Errorf("%q has the shape %v with %v, expected %v", short.Name(v), whole.Dims, pt, want)
		}
		t.list = append(t.list, table{v, c.dims[v], whole})
	}
	return t, nil
}

// listNumbers makes p give a value without dimensions as a list of one, and notes it so: the engine has
// no tensors without dimensions, and to arithmetic they are the same.
func (c *callTables) listNumbers(p *eval.Piece) {
	const suffix = "/rope-rewrite/list"
	for i, v := range c.values {
		if len(c.dims[v]) > 0 {
			continue
		}
		list := ir.Int64Tensor(v+suffix+"/shape", []int64{1}, 1)
		p.Consts = append(p.Consts, list)
		p.Nodes = append(p.Nodes, onnx.NewNode("Reshape", []string{v, list.Name}, []string{v + suffix}))
		p.Outputs[i], c.dims[v] = v+suffix, []dim.Extent{dim.ConstantExtent(1)}
	}
}

// everywhere returns the tables for every token index, with what computes those of each length
// where they differ.
func (c *callTables) everywhere(ctx context.Context) (*Tables, error) {
	far, err := bisect.Farthest(dim.Longest+1, func(length int64) (*Tables, error) { return c.compute(ctx, dim.Point{B: 1, L: length}) })
	if err != nil {
		return nil, err
	}
	for _, pt := range []dim.Point{{B: 3, L: 1}, {B: 1, L: 2}, {B: 1, L: 3}, {B: 2, L: 5}, {B: 1, L: 4096}, {B: 1, L: 20_011}, {B: 1, L: 65_537}} {
		if pt.L > far.limit {
			continue
		}
		one, err := c.compute(ctx, dim.Point{B: 1, L: pt.L})
		if err != nil {
			return nil, err
		}
		several := one
		if pt.B > 1 {
			if several, err = c.compute(ctx, pt); err != nil {
				return nil, err
			}
		}
		if i := several.differs(one, pt); i >= 0 {
			return nil, fmt.Errorf("%q is not the same with %v and with one row", short.Name(c.values[i]), pt)
		}
		if i := one.differs(far, pt); i >= 0 && far.byCall == nil {
			n, err := c.until(ctx, i, pt.L, far.limit+1)
			if err != nil {
				return nil, err
			}
			c.changes = &Change{c.values[i], n}
			far.byCall = c
		}
	}
	return far, nil
}

// differs returns which table has other rows than one of as many tokens or more, -1 where none
// has. pt are the sizes of the call that has these.
func (t *Tables) differs(other *Tables, pt dim.Point) int {
	places := make([]int64, pt.L)
	for i := range places {
		places[i] = int64(i)
	}
	for i, x := range t.list {
		if !sameNumbers(x.whole, other.list[i].rows(places, pt.B)) {
			return i
		}
	}
	return -1
}

// until returns the largest number of tokens with which the first few rows of a table are those of
// a call of so few tokens. They are others with most.
func (c *callTables) until(ctx context.Context, table int, few, most int64) (int64, error) {
	pt := dim.Point{B: 1, L: few}
	near, err := c.compute(ctx, pt)
	if err != nil {
		return 0, err
	}
	return bisect.Largest(few, most, func(length int64) (bool, error) {
		far, err := c.compute(ctx, dim.Point{B: 1, L: length})
		if err != nil {
			return false, err
		}
		return near.differs(far, pt) != table, nil
	})
}
