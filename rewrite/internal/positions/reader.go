package positions

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
)

// Reader evaluates positions for a call.
type Reader struct {
	loaded *eval.Loaded
	values []string
	dims   map[string][]dim.Extent
	mask   *onnx.ValueInfo // the padding mask among its inputs; nil for none
	ids    *onnx.ValueInfo // the input of positions; nil for none

	padding bool // mask is known to be the padding mask
}

// Open returns the reader of positions that were found. It must be closed.
func Open(ctx context.Context, ev *eval.Evaluator, c *Computed) (*Reader, error) {
	loaded, err := ev.LoadFlat(ctx, []string{c.Value})
	if err != nil {
		return nil, err
	}
	return &Reader{loaded: loaded, values: []string{c.Value}, dims: map[string][]dim.Extent{c.Value: c.Dims}, mask: c.Mask, ids: c.Ids}, nil
}

// Close releases it.
func (r *Reader) Close() { r.loaded.Session.Close() }

// At returns the position of each new token of a call, [batch·length]. feeds has the graph inputs.
func (r *Reader) At(ctx context.Context, pt dim.Point, feeds map[string]engine.Tensor) ([]float64, error) {
	own := map[string]engine.Tensor{}
	for _, v := range r.loaded.Piece.Inputs {
		own[v.Name] = feeds[v.Name]
	}
	all, err := r.run(ctx, pt, own)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// run evaluates all values, each as [batch·length].
func (r *Reader) run(ctx context.Context, pt dim.Point, feeds map[string]engine.Tensor) ([][]float64, error) {
	results, err := r.loaded.Run(ctx, pt, feeds)
	if err != nil {
		return nil, err
	}
	out := make([][]float64, len(r.values))
	for i, v := range r.values {
		x := results[v+eval.FlatSuffix].Values()
		if want := engine.Elements(dim.Evaluate(r.dims[v], pt)); int64(len(x)) != want {
			return nil, fmt.Errorf("%q has %d elements with %v, expected %d", short.Name(v), len(x), pt, want)
		}
		if each := pt.L + pt.P; ofAll(r.dims[v]) {
			var last []float64
			for row := range slices.Chunk(x, int(each)) {
				last = append(last, row[pt.P:]...)
			}
			x = last
		}
		if int64(len(x)) == pt.L { // the same for all rows
			x = slices.Repeat(x, int(pt.B))
		}
		out[i] = x
	}
	return out, nil
}

// open loads the candidates, and says which of the inputs that they read is the padding mask.
func open(ctx context.Context, ev *eval.Evaluator, values []string, dims map[string][]dim.Extent, mask *onnx.ValueInfo) (*Reader, error) {
	loaded, err := ev.LoadFlat(ctx, values)
	if err != nil {
		return nil, err
	}
	r := &Reader{loaded: loaded, values: values, dims: dims, padding: mask != nil}
	keys := eval.TotalOf(ev.Table)
	for _, v := range loaded.Piece.Inputs {
		dims := ev.Table.Inputs[v.Name]
		switch {
		case len(dims) == 0 || len(dims) > 2:
		case mask != nil && v.Name == mask.Name, mask == nil && len(dims) == 2 && dims[1] == keys:
			r.mask = v
		case dims[len(dims)-1] == dim.LengthExtent:
			r.ids = v
		}
	}
	return r, nil
}

// call is a call whose rows are padded, and whose tokens have positions where an input tells them.
type call struct {
	pt     dim.Point
	mask   []int64 // [batch·(past + length)]
	starts []int64 // the first position of each row; nil for the number of cached tokens
}

// at evaluates the candidates in a call, which has the sizes of the model where these are static.
func (r *Reader) at(ctx context.Context, c call) ([][]float64, error) {
	feeds := map[string]engine.Tensor{}
	for _, v := range r.loaded.Piece.Inputs {
		dims := dim.Evaluate(r.loaded.Table.Inputs[v.Name], c.pt)
		elements, err := bound.Elements(dims)
		if err != nil {
			return nil, err
		}
		values := slices.Repeat([]int64{1}, int(elements))
		switch {
		case v == r.mask:
			copy(values, c.mask)
		case v == r.ids:
			for i := range values {
				b, place := int64(i)/c.pt.L, int64(i)%c.pt.L
				values[i] = c.pt.P + place
				if c.starts != nil {
					values[i] = c.starts[b%int64(len(c.starts))] + place
				}
			}
		}
		if feeds[v.Name], err = engine.Integers(v.Type, values, dims...); err != nil {
			return nil, err
		}
	}
	return r.run(ctx, c.pt, feeds)
}

// given reports whether positions are what an input gives, or that times a number: the rotation is then
// measured by the input. It also looks whether they are that and a number more.
func (r *Reader) given(ctx context.Context, c *Computed) (bool, error) {
	inputs := c.Inputs
	if len(inputs) != 1 {
		return false, nil
	}
	dims := r.loaded.Table.Inputs[inputs[0].Name]
	if len(dims) == 0 || dims[len(dims)-1] != dim.LengthExtent || len(dims) > 2 {
		return len(dims) > 2, nil // several positions for each token are measured by their input
	}
	ids := *r
	ids.ids, ids.mask = inputs[0], nil
	times, more := true, true
	factor, shift := math.NaN(), math.NaN()
	for i, pt := range []dim.Point{{B: 2, L: 5, P: 7}, {B: 1, L: 4, P: 3}, {B: 3, L: 1, P: 11}, {B: 1, L: 1, P: 2}} {
		if !r.loaded.Table.Past {
			pt.P = 0
		}
		pt = r.loaded.Table.At(pt)
		starts := [][]int64{{40, 3}, {1009}, {65_537, 4099, 20_011}, {dim.Longest}}[i]
		all, err := ids.at(ctx, call{pt: pt, starts: starts})
		if err != nil {
			return false, err
		}
		rows := int64(1)
		if dims[0] == dim.BatchExtent {
			rows = pt.B
		}
		for i, x := range all[0] {
			id := float64(starts[int64(i)/pt.L%rows%int64(len(starts))] + int64(i)%pt.L)
			if math.IsNaN(shift) {
				shift, factor = x-id, x/id
			}
			more = more && x == id+shift
			times = times && x == id*factor
		}
	}
	if more {
		r.ids, r.mask = inputs[0], nil
		c.Ids, c.Mask = r.ids, r.mask
	}
	return times && factor != 0, nil
}
