package bound

import (
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// shape returns the shape of n's first output, where it follows from what is known.
func (e *Estimate) shape(n *onnx.Node) (dims []int64, ok bool) {
	first, known := e.input(n, 0)
	switch {
	case ir.Standard(n, "Shape") && n.Attribute("start") == nil && n.Attribute("end") == nil:
		return []int64{int64(len(first))}, known
	case ir.Standard(n, "Range"):
		return e.rangeShape(n)
	case ir.Standard(n, "ConstantOfShape"):
		return e.list(n, 0)
	case ir.Standard(n, "Expand", "Tile", "Pad", "Reshape", "Unsqueeze", "Squeeze"):
		return e.resized(n, first, known)
	case ir.Standard(n, "Gather"):
		indices, ok := e.input(n, 1)
		axis := n.Int("axis", 0)
		if axis < 0 {
			axis += int64(len(first))
		}
		if !ok || !known || axis < 0 || axis >= int64(len(first)) {
			return nil, false
		}
		return slices.Concat(first[:axis], indices, first[axis+1:]), true
	case ir.Standard(n, "Concat"):
		return e.concatShape(n)
	case ir.Standard(n, "MatMul"):
		second, ok := e.input(n, 1)
		if !ok || !known || len(first) < 2 || len(second) < 2 {
			return nil, false
		}
		front, ok := broadcast(first[:len(first)-2], second[:len(second)-2])
		return append(front, first[len(first)-2], second[len(second)-1]), ok
	case ir.Standard(n, "Transpose"):
		perm := n.Ints("perm")
		if !known || len(perm) != len(first) {
			return nil, false
		}
		for _, axis := range perm {
			if axis < 0 || axis >= int64(len(first)) {
				return nil, false
			}
			dims = append(dims, first[axis])
		}
		return dims, true
	case ir.Standard(n, "Cast", "Neg", "Not", "Abs", "Identity", "Floor", "Ceil", "Sqrt", "Exp", "Log", "Tanh", "Cos", "Sin",
		"IsNaN", "Softmax", "Clip", "Reciprocal", "Sigmoid", "Relu"):
		return first, known
	case ir.Standard(n, "Add", "Sub", "Mul", "Div", "Mod", "Pow", "Min", "Max", "And", "Or", "Xor", "Equal", "Less", "LessOrEqual",
		"Greater", "GreaterOrEqual", "Where"):
		dims = []int64{}
		for i := range n.Inputs {
			d, ok := e.input(n, i)
			if !ok {
				return nil, false
			}
			if dims, ok = broadcast(dims, d); !ok {
				return nil, false
			}
		}
		return dims, true
	}
	return nil, false
}

// input returns the shape of n's input i, if it is known.
func (e *Estimate) input(n *onnx.Node, i int) ([]int64, bool) {
	if i >= len(n.Inputs) {
		return nil, false
	}
	d, ok := e.Dims[n.Inputs[i]]
	return d, ok
}

// resized returns the output shape of an op that gives its first input another
// shape; first is the shape of that input, if known.
func (e *Estimate) resized(n *onnx.Node, first []int64, known bool) (dims []int64, ok bool) {
	if ir.Standard(n, "Unsqueeze", "Squeeze") {
		axes, given := e.axes(n)
		switch {
		case !known:
			return nil, false
		case ir.Standard(n, "Squeeze"):
			return squeezed(first, axes, given)
		case !given:
			return nil, false
		}
		return unsqueezed(first, axes)
	}
	sizes, ok := e.list(n, 1)
	switch n.OpType {
	case "Expand":
		if !ok || !known {
			return sizes, ok
		}
		return broadcast(first, sizes)
	case "Tile":
		if !ok || !known || len(sizes) != len(first) {
			return nil, false
		}
		dims = slices.Clone(first)
		for i := range dims {
			dims[i] = dim.Saturated(dims[i], sizes[i])
		}
		return dims, true
	case "Pad":
		if !ok || !known || len(n.Inputs) > 3 || len(sizes) != 2*len(first) {
			return nil, false
		}
		dims = slices.Clone(first)
		for i := range dims {
			dims[i] += sizes[i] + sizes[i+len(dims)]
		}
		return dims, true
	}
	if ok && known && len(first) == 0 && len(sizes) == 1 { // Reshape from here on
		return []int64{1}, true
	}
	if !ok || slices.ContainsFunc(sizes, func(d int64) bool { return d <= 0 }) {
		return reshaped(first, sizes, ok && known)
	}
	return sizes, true
}

// rangeShape returns the shape of a Range whose three inputs are known.
func (e *Estimate) rangeShape(n *onnx.Node) ([]int64, bool) {
	var v [3]float64
	for i := range v {
		if i >= len(n.Inputs) || len(e.values[n.Inputs[i]]) != 1 {
			return nil, false
		}
		v[i] = e.values[n.Inputs[i]][0]
	}
	count := math.Ceil((v[1] - v[0]) / v[2])
	if !(count > 0) {
		count = 0
	}
	return []int64{int64(min(count, 1<<62))}, true
}

// concatShape returns the shape of a Concat.
func (e *Estimate) concatShape(n *onnx.Node) ([]int64, bool) {
	var dims []int64
	for _, v := range n.Inputs {
		d, ok := e.Dims[v]
		axis := n.Int("axis", 0)
		if axis < 0 {
			axis += int64(len(d))
		}
		switch {
		case !ok || axis < 0 || axis >= int64(len(d)) || dims != nil && len(d) != len(dims):
			return nil, false
		case dims == nil:
			dims = slices.Clone(d)
		default:
			dims[axis] += d[axis]
		}
	}
	return dims, dims != nil
}

// axes returns the axes of an Unsqueeze or Squeeze, from its input or its attribute.
func (e *Estimate) axes(n *onnx.Node) ([]int64, bool) {
	if len(n.Inputs) > 1 {
		return e.list(n, 1)
	}
	a := n.Ints("axes")
	return a, a != nil
}

// broadcast returns the shape to which two shapes broadcast.
func broadcast(a, b []int64) ([]int64, bool) {
	out := make([]int64, max(len(a), len(b)))
	for i := range out {
		x, y := int64(1), int64(1)
		if k := i - len(out) + len(a); k >= 0 {
			x = a[k]
		}
		if k := i - len(out) + len(b); k >= 0 {
			y = b[k]
		}
		switch {
		case x == 1:
			out[i] = y
		case y == 1 || x == y:
			out[i] = x
		default:
			return nil, false
		}
	}
	return out, true
}

// reshaped returns the shape to of a Reshape with its 0 (the size in from) and −1
// (what is left of the elements) replaced by numbers.
func reshaped(from, to []int64, known bool) ([]int64, bool) {
	if !known {
		return nil, false
	}
	out := slices.Clone(to)
	rest, open := engine.Elements(from), -1
	for i, d := range out {
		switch {
		case d == -1 && open < 0:
			open = i
			continue
		case d == 0 && i < len(from):
			out[i] = from[i]
		case d <= 0:
			return nil, false
		}
		if out[i] == 0 {
			return nil, false
		}
		rest /= out[i]
	}
	if open >= 0 {
		out[open] = rest
	}
	return out, true
}

// unsqueezed returns dims with a 1 inserted at each of the axes.
func unsqueezed(dims, axes []int64) ([]int64, bool) {
	out := make([]int64, len(dims)+len(axes))
	for _, a := range axes {
		if a < 0 {
			a += int64(len(out))
		}
		if a < 0 || a >= int64(len(out)) {
			return nil, false
		}
		out[a] = -1
	}
	for i := range out {
		switch {
		case out[i] == -1:
			out[i] = 1
		case len(dims) == 0:
			return nil, false
		default:
			out[i], dims = dims[0], dims[1:]
		}
	}
	return out, true
}

// squeezed returns dims without the axes; without every 1 where no axes are given.
func squeezed(dims, axes []int64, given bool) ([]int64, bool) {
	drop := map[int64]bool{}
	for _, a := range axes {
		if a < 0 {
			a += int64(len(dims))
		}
		drop[a] = true
	}
	out := []int64{}
	for i, d := range dims {
		if given && !drop[int64(i)] || !given && d != 1 {
			out = append(out, d)
		}
	}
	return out, true
}
