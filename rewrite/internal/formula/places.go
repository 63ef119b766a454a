package formula

import (
	"cmp"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// places are the ops that move, repeat, join or fill: they tell which element of their inputs an element is.
var places = []string{"Range", "ConstantOfShape", "Expand", "Reshape", "Flatten", "Unsqueeze", "Squeeze", "Transpose", "Slice", "Concat",
	"Gather", "GatherND", "Trilu", "CumSum", "ReduceSum"}

// place reads an element of what one of them gives.
func (r *Reader) place(n *onnx.Node, index []Form) (*term, error) {
	in, out := n.Inputs[0], r.dims[n.Outputs[0]]
	dims, ok := r.shape(in)
	if !ok {
		return nil, r.not(n)
	}
	own := slices.Clone(index)
	switch n.OpType {
	case "Range":
		return r.sequence(n, out, index[0])
	case "ConstantOfShape":
		value := []float64{0}
		if a := n.Attribute("value"); a != nil && a.Tensor != nil {
			value, _ = a.Tensor.Float64s()
		}
		if len(value) != 1 {
			return nil, r.not(n)
		}
		return leaf(number(value[0])), r.told(n, in, out)
	case "Expand":
		if err := r.told(n, n.Inputs[1], out, 1); err != nil {
			return nil, err
		}
		return r.operand(in, out, index)
	case "Unsqueeze":
		own = own[:0]
		for k, f := range index {
			if !slices.Contains(axes(r.piece.Graph.Axes(n), len(index)), k) {
				own = append(own, f)
			}
		}
	case "Squeeze":
		at := axes(r.piece.Graph.Axes(n), len(dims))
		for k, e := range dims {
			if slices.Contains(at, k) || at == nil && e == unit {
				own = slices.Insert(own, k, nil)
			}
		}
	case "Transpose":
		for k := range own {
			if perm := n.Ints("perm"); perm != nil {
				own[perm[k]] = index[k]
			} else {
				own[len(own)-1-k] = index[k]
			}
		}
	case "Reshape", "Flatten":
		if n.OpType == "Reshape" {
			if err := r.told(n, n.Inputs[1], out, -1, 0); err != nil {
				return nil, err
			}
		}
		if own, ok = r.reshaped(dims, out, index); !ok {
			return nil, r.not(n)
		}
	case "Slice":
		return r.sliced(n, dims, out, own)
	case "Concat":
		return r.joined(n, own)
	case "Gather", "GatherND":
		return r.gathered(n, dims, index)
	case "Trilu":
		return r.triangle(n, index)
	case "CumSum":
		return r.counted(n, index)
	case "ReduceSum":
		return r.summed(n, index)
	}
	return r.at(in, own)
}

// unit is the size of a dimension along which all elements are one.
var unit = dim.ConstantExtent(1)

// axes are those of a node, counted from the front.
func axes(list []int64, rank int) (out []int) {
	for _, a := range list {
		if a < 0 {
			a += int64(rank)
		}
		out = append(out, int(a))
	}
	return out
}

// told refuses an argument that is another shape than was measured. open are the numbers that leave a size open.
func (r *Reader) told(n *onnx.Node, v string, dims []dim.Extent, open ...float64) error {
	list, err := r.argument(v)
	if err != nil || len(list) > len(dims) {
		return cmp.Or(err, r.not(n))
	}
	for k, f := range list {
		size, ok := extent(dims[len(dims)-len(list)+k])
		if x, constant := f.constant(); !ok || !equal(f, size) && (!constant || !slices.Contains(open, x)) {
			return r.not(n)
		}
	}
	return nil
}

// sequence is an element of a Range whose steps are 1.
func (r *Reader) sequence(n *onnx.Node, out []dim.Extent, index Form) (*term, error) {
	var ends [3]Form
	for k := range ends {
		list, err := r.argument(n.Inputs[k])
		if err != nil {
			return nil, err
		}
		ends[k] = list[0]
	}
	if size, ok := extent(append(out, dim.Extent{})[0]); !ok || !equal(ends[2], number(1)) || !equal(ends[1].plus(ends[0], -1), size) {
		return nil, r.not(n)
	}
	return leaf(ends[0].plus(index, 1)), nil
}

// sliced is an element of a Slice with steps of 1 that begins and ends, in every call, where it was measured to.
func (r *Reader) sliced(n *onnx.Node, dims, out []dim.Extent, own []Form) (*term, error) {
	if len(n.Inputs) < 3 {
		return nil, r.not(n)
	}
	var args [4][]Form // starts, ends, axes, steps
	for k, v := range n.Inputs[1:] {
		var err error
		if args[k], err = r.argument(v); v != "" && err != nil {
			return nil, err
		}
	}
	for k, start := range args[0] {
		at, step := k, 1.0
		if args[2] != nil {
			x, _ := args[2][k].constant()
			at = axes([]int64{int64(x)}, len(own))[0]
		}
		if args[3] != nil {
			step, _ = args[3][k].constant()
		}
		whole, _ := extent(dims[at])
		left, _ := extent(out[at])
		end := args[1][k]
		if x, constant := start.constant(); constant && x < 0 {
			start = start.plus(whole, 1)
		}
		if x, constant := end.constant(); constant && x < 0 {
			end = end.plus(whole, 1)
		} else if constant && x >= math.MaxInt32 {
			end = whole
		}
		own[at] = own[at].plus(start, 1)
		if _, fixed := end.constant(); dims[at].Constant() && !fixed || step != 1 || !equal(left, end.plus(start, -1)) || len(start) > 0 && !dims[at].Constant() && !r.within(own[at], dims[at]) {
			return nil, r.not(n)
		}
	}
	return r.at(n.Inputs[0], own)
}

// joined is an element of a Concat: a question decides from which input, where the index is no number.
func (r *Reader) joined(n *onnx.Node, own []Form) (*term, error) {
	axis := axes([]int64{n.Int("axis", 0)}, len(own))[0]
	starts := []Form{nil}
	for k, v := range n.Inputs {
		dims, ok := r.shape(v)
		if !ok {
			return nil, r.not(n)
		}
		if r.within(own[axis], dims[axis]) && k == 0 { // a key, of scores with sinks behind them
			return r.at(v, own)
		}
		size, _ := extent(dims[axis])
		starts = append(starts, starts[k].plus(size, 1))
	}
	var x *term
	for k := len(n.Inputs) - 1; k >= 0; k-- {
		before := asks(own[axis].plus(starts[k+1], -1).plus(number(1), 1), false) // below the end
		if before == no || asks(starts[k].plus(own[axis], -1), false) == no {     // or in front of the start
			continue
		}
		at := slices.Clone(own)
		at[axis] = own[axis].plus(starts[k], -1)
		y, err := r.at(n.Inputs[k], at)
		if err != nil {
			return nil, err
		}
		if x == nil {
			x = y
		} else if x, err = r.chosen(before, y, x); err != nil {
			return nil, err
		}
	}
	if x == nil {
		return nil, r.not(n)
	}
	return x, nil
}

// gathered is an element of a Gather, or of a GatherND without batches.
func (r *Reader) gathered(n *onnx.Node, dims []dim.Extent, index []Form) (*term, error) {
	indices, ok := r.shape(n.Inputs[1])
	rank := len(indices)
	var own []Form
	read := func(axis int, at []Form) error {
		x, err := r.at(n.Inputs[1], at)
		if err != nil || x.test != nil {
			return cmp.Or(err, unread("a condition decides what %s reads", ir.Label(n)))
		}
		f := x.leaf
		if c, constant := f.constant(); constant && c < 0 && dims[axis].Constant() {
			f = f.plus(number(float64(dims[axis].One)), 1)
		}
		own = append(own, f)
		if r.piece.Graph.Constants[n.Inputs[0]] == nil && !r.within(f, dims[axis]) {
			return unread("%s reads elements that there may not be", ir.Label(n))
		}
		return nil
	}
	if n.OpType == "Gather" {
		axis := axes([]int64{n.Int("axis", 0)}, len(dims))[0]
		own = append(own, index[:axis]...)
		if err := read(axis, index[axis:axis+rank]); err != nil {
			return nil, err
		}
		return r.at(n.Inputs[0], append(own, index[axis+rank:]...))
	}
	if !ok || rank == 0 || n.Int("batch_dims", 0) != 0 || !indices[rank-1].Constant() {
		return nil, r.not(n)
	}
	for k := range indices[rank-1].One {
		if err := read(int(k), append(slices.Clone(index[:rank-1]), number(float64(k)))); err != nil {
			return nil, err
		}
	}
	return r.at(n.Inputs[0], append(own, index[rank-1:]...))
}

// triangle is an element of a Trilu.
func (r *Reader) triangle(n *onnx.Node, index []Form) (*term, error) {
	k, last := []Form{nil}, len(index)-1
	x, err := r.at(n.Inputs[0], index)
	if err == nil && len(n.Inputs) > 1 && n.Inputs[1] != "" {
		k, err = r.argument(n.Inputs[1])
	}
	if err != nil {
		return nil, err
	}
	inside := index[last].plus(index[last-1], -1).plus(k[0], -1) // at most 0 in a lower triangle
	if n.Int("upper", 1) == 1 {
		inside = Form(nil).plus(inside, -1)
	}
	return r.chosen(asks(inside, false), x, no)
}

// counted is an element of a sum along a row of the padding mask: a symbol.
func (r *Reader) counted(n *onnx.Node, index []Form) (*term, error) {
	axis, err := r.argument(n.Inputs[1])
	if err != nil {
		return nil, err
	}
	x, err := r.at(n.Inputs[0], index)
	if err != nil {
		return nil, err
	}
	a, _ := axis[0].constant()
	if !bit(x) || axes([]int64{int64(a)}, len(index))[0] != len(index)-1 || n.Int("exclusive", 0) != 0 || n.Int("reverse", 0) != 0 {
		return nil, r.not(n)
	}
	return r.symbol(symbol{op: "CumSum", arg: []Form{x.test.form}}), nil
}

// summed is a sum along a whole row of the padding mask: a symbol.
func (r *Reader) summed(n *onnx.Node, index []Form) (*term, error) {
	dims, _ := r.shape(n.Inputs[0])
	if at := axes(r.piece.Graph.Axes(n), 2); len(dims) != 2 || len(at) != 1 || at[0] != 1 {
		return nil, r.not(n)
	}
	place := variable(Key)
	if dims[1] == dim.LengthExtent {
		place = variable(Query)
	}
	x, err := r.at(n.Inputs[0], []Form{index[0], place})
	if err != nil {
		return nil, err
	}
	if !bit(x) || !equal(x.test.form, place) {
		return nil, r.not(n)
	}
	return r.symbol(symbol{op: "ReduceSum"}), nil
}

// bit reports whether a term is an element of the padding mask.
func bit(x *term) bool {
	return x.test != nil && x.test.bit && x.yes.test == nil && x.no.test == nil && equal(x.yes.leaf, yes.leaf) && equal(x.no.leaf, no.leaf)
}

// reshaped returns the index in a value of one shape of an element of the same value in another.
func (r *Reader) reshaped(from, to []dim.Extent, index []Form) ([]Form, bool) {
	own := make([]Form, len(from))
	dimensions := func(dims []dim.Extent) (list []int) { // those that are not 1
		for k, e := range dims {
			if e != unit {
				list = append(list, k)
			}
		}
		return list
	}
	in, out := dimensions(from), dimensions(to)
	for len(in) > 0 && len(out) > 0 && from[in[0]] == to[out[0]] {
		own[in[0]] = index[out[0]]
		in, out = in[1:], out[1:]
	}
	for len(in) > 0 && len(out) > 0 && from[in[len(in)-1]] == to[out[len(out)-1]] {
		own[in[len(in)-1]] = index[out[len(out)-1]]
		in, out = in[:len(in)-1], out[:len(out)-1]
	}
	var at Form // among the dimensions that are left
	for _, k := range out {
		size, known := extent(to[k])
		var ok bool
		if at, ok = at.times(size); !ok || !known {
			return nil, false
		}
		at = at.plus(index[k], 1)
	}
	for j := len(in) - 1; j >= 0; j-- {
		k := in[j]
		size, _ := extent(from[k])
		if j == 0 {
			own[k], at = at, nil
		} else {
			at, own[k] = at.divided(size)
		}
		if len(in) > 1 && !r.within(own[k], from[k]) {
			return nil, false
		}
	}
	return own, len(at) == 0
}

// divided returns a quotient that is a place, and the rest.
func (f Form) divided(size Form) (quotient, rest Form) {
	for v := Row; v < opaque; v++ {
		own := func(u Variable) bool { return u == v }
		if q, ok := variable(v).times(size); ok && f.reads(own) && !f.plus(q, -1).reads(own) {
			return variable(v), f.plus(q, -1)
		}
	}
	return nil, f
}
