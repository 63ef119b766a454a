package eval

import (
	"bytes"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
)

// A piece of a model with static sizes is run at other sizes too: a batch is put
// together from several runs, fewer new tokens are followed by zeros, and a shorter past
// has zeros in front of it. This assumes that rows and tokens do not affect each other;
// the proof, at the model's own sizes, shows whether they do.

// staticCalls are as many runs at the model's own sizes as the sizes of a run take.
func (r Run) staticCalls() (calls []engine.Call, _ error) {
	pt, at := r.Pt, r.Table.At(r.Pt)
	if pt.L > at.L || pt.P > at.P {
		return nil, fmt.Errorf("%v is more than the model takes (%v)", pt, at)
	}
	for first := int64(0); first < pt.B; first += at.B {
		feeds := r.Feeds
		if at != pt {
			feeds = map[string]engine.Tensor{}
			for name, x := range r.Feeds {
				feeds[name] = widened(x, r.dimsOf(name), pt, at, first)
			}
		}
		call, err := r.call(at, feeds)
		if err != nil {
			return nil, err
		}
		calls = append(calls, call)
	}
	return calls, nil
}

// joinStatic puts the results of these runs together.
func (r Run) joinStatic(all []map[string]engine.Tensor) (map[string]engine.Tensor, error) {
	pt, at := r.Pt, r.Table.At(r.Pt)
	if at == pt {
		return all[0], nil
	}
	out := map[string]engine.Tensor{}
	for i, results := range all {
		first := int64(i) * at.B
		for name, y := range results {
			y, axis := narrowed(y, r.dimsOf(name), pt, at, first)
			switch last, seen := out[name]; {
			case !seen:
				out[name] = y
			case axis < 0 && bytes.Equal(last.Data, y.Data):
			case axis < 0:
				return nil, fmt.Errorf("%q differs between rows of a batch but has no dimension for it", short.Name(name))
			default:
				out[name] = behind(last, y, axis)
			}
		}
	}
	return out, nil
}

// segment is count indices along one dimension, from the index from on; zeros where
// from is −1.
type segment struct{ from, count int64 }

// along returns the segments of a tensor along one dimension, one behind the other.
func along(t engine.Tensor, axis int, list ...segment) engine.Tensor {
	step := int64(t.Type.Size()) // bytes of one index along axis
	for _, d := range t.Dims[axis+1:] {
		step *= d
	}
	outer := int64(1)
	for _, d := range t.Dims[:axis] {
		outer *= d
	}
	out := engine.Tensor{Type: t.Type, Dims: append([]int64{}, t.Dims...)}
	out.Dims[axis] = 0
	for _, s := range list {
		out.Dims[axis] += s.count
	}
	for i := range outer {
		for _, s := range list {
			if s.from < 0 {
				out.Data = append(out.Data, make([]byte, s.count*step)...)
				continue
			}
			start := (i*t.Dims[axis] + s.from) * step
			out.Data = append(out.Data, t.Data[start:start+s.count*step]...)
		}
	}
	return out
}

// widened returns an input of the sizes pt with the sizes at of the model: of its batch
// the rows from first on, its tokens padded with zeros.
func widened(t engine.Tensor, dims []dim.Extent, pt, at dim.Point, first int64) engine.Tensor {
	if len(dims) != len(t.Dims) {
		return t
	}
	for i, e := range dims {
		if t.Dims[i] != e.At(pt) {
			continue // a dimension of size 1 that is broadcast, or chosen rows
		}
		switch {
		case e.B != 0 && at.B != pt.B:
			some := min(at.B, pt.B-first)
			t = along(t, i, segment{first * e.B, some * e.B}, segment{-1, (at.B - some) * e.B})
		case e.At(pt) != e.At(at) && e.B == 0:
			rows := e.P*pt.P + e.L*pt.L
			t = along(t, i, segment{-1, e.P * (at.P - pt.P)}, segment{0, rows}, segment{-1, e.L * (at.L - pt.L)}, segment{rows, e.One})
		}
	}
	return t
}

// behind returns a followed by b along one dimension.
func behind(a, b engine.Tensor, axis int) engine.Tensor {
	out := engine.Tensor{Type: a.Type, Dims: append([]int64{}, a.Dims...)}
	out.Dims[axis] += b.Dims[axis]
	outer := engine.Elements(a.Dims[:axis])
	for i := range outer {
		for _, t := range []engine.Tensor{a, b} {
			step := int64(len(t.Data)) / outer
			out.Data = append(out.Data, t.Data[i*step:(i+1)*step]...)
		}
	}
	return out
}

// narrowed returns a result of the sizes at with the sizes pt, and its dimension that
// follows the batch, −1 where none does.
func narrowed(t engine.Tensor, dims []dim.Extent, pt, at dim.Point, first int64) (_ engine.Tensor, batch int) {
	batch = -1
	if len(dims) != len(t.Dims) {
		return t, batch
	}
	for i, e := range dims {
		if t.Dims[i] != e.At(at) {
			continue
		}
		switch {
		case e.B != 0:
			batch = i
			t = along(t, i, segment{0, min(at.B, pt.B-first) * e.B})
		case e.At(pt) != e.At(at) && e.B == 0:
			rows := e.P*pt.P + e.L*pt.L
			t = along(t, i, segment{e.P * (at.P - pt.P), rows}, segment{t.Dims[i] - e.One, e.One})
		}
	}
	return t, batch
}
