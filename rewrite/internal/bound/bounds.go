package bound

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// maxTensor bounds the bytes of one tensor while probing. ONNX Runtime fails
// at once on terabytes, but allocates what a machine just has.
const maxTensor = 2 << 30

// ErrTooLarge says that evaluating would take more memory than is given to it.
var ErrTooLarge = errors.New("too large to be evaluated")

// Room returns the number of elements of a tensor that is to be fed, or an
// error when it exceeds maxTensor.
func Room(dims []int64) (int64, error) {
	n := int64(1)
	for _, d := range dims {
		if d < 0 {
			return 0, fmt.Errorf("a tensor of the shape %v would be needed", dims)
		}
		n = dim.Saturated(n, d)
	}
	if n > maxTensor/4 {
		return 0, fmt.Errorf("%w: a tensor of the shape %v would be needed, more than %d MB", ErrTooLarge, dims, maxTensor>>20)
	}
	return n, nil
}

// estimate follows the sizes of values through nodes without running them, so
// that a Range, Expand or ConstantOfShape of absurd size is refused before it
// is evaluated. It knows the ops that sizes are computed with and those that
// grow tensors; of other ops it knows nothing and says nothing.
type estimate struct {
	Dims   map[string][]int64   // of values whose shape is known
	values map[string][]float64 // contents of small values, in order
}

// maxFolded is the number of elements up to which contents are followed.
const maxFolded = 64

// Bounded returns an error naming the first node whose output would exceed
// maxTensor when nodes, in topological order, are run on feeds.
func Bounded(nodes []*onnx.Node, constants []*onnx.Tensor, feeds map[string]engine.Tensor) error {
	e := NewEstimate()
	for _, t := range constants {
		e.Constant(t.Name, t)
	}
	for name, t := range feeds {
		e.Dims[name] = t.Dims
		if t.Len() <= maxFolded {
			e.values[name] = t.Values()
		}
	}
	for _, n := range nodes {
		if len(n.Outputs) == 0 {
			continue
		}
		if t := ir.ConstantValue(n); t != nil {
			e.Constant(n.Outputs[0], t)
			continue
		}
		dims, ok := e.Follow(n)
		if !ok {
			continue
		}
		size := 4.0
		for _, d := range dims {
			if d < 0 {
				return fmt.Errorf("node %s would make a tensor of the shape %v", ir.Label(n), dims)
			}
			size *= float64(d)
		}
		if size > maxTensor {
			return fmt.Errorf("%w: node %s would make a tensor of the shape %v, about %.0f MB; at most %d MB are evaluated", ErrTooLarge, ir.Label(n), dims, size/(1<<20), maxTensor>>20)
		}
	}
	return nil
}

func NewEstimate() *estimate {
	return &estimate{Dims: map[string][]int64{}, values: map[string][]float64{}}
}

// Follow notes what is known of n's first output and returns its shape.
func (e *estimate) Follow(n *onnx.Node) (dims []int64, ok bool) {
	if dims, ok = e.shape(n); !ok {
		return nil, false
	}
	e.Dims[n.Outputs[0]] = dims
	if count := engine.Elements(dims); count >= 0 && count <= maxFolded {
		if v, ok := e.fold(n, int(count)); ok {
			e.values[n.Outputs[0]] = v
		}
	}
	return dims, true
}

func (e *estimate) Constant(name string, t *onnx.Tensor) {
	e.Dims[name] = t.Dims
	if t.Len() <= maxFolded {
		if v, err := t.Float64s(); err == nil {
			e.values[name] = v
		}
	}
}

// list returns input i as integers, if its contents are known.
func (e *estimate) list(n *onnx.Node, i int) ([]int64, bool) {
	if i >= len(n.Inputs) {
		return nil, false
	}
	v, ok := e.values[n.Inputs[i]]
	out := make([]int64, len(v))
	for k, x := range v {
		out[k] = int64(x)
	}
	return out, ok
}

// shape returns the shape of n's first output.
func (e *estimate) shape(n *onnx.Node) (dims []int64, ok bool) {
	in := func(i int) ([]int64, bool) {
		if i >= len(n.Inputs) {
			return nil, false
		}
		d, ok := e.Dims[n.Inputs[i]]
		return d, ok
	}
	first, known := in(0)
	switch {
	case ir.Standard(n, "Shape") && n.Attribute("start") == nil && n.Attribute("end") == nil:
		return []int64{int64(len(first))}, known
	case ir.Standard(n, "Range"):
		return e.rangeShape(n)
	case ir.Standard(n, "ConstantOfShape"):
		return e.list(n, 0)
	case ir.Standard(n, "Expand"):
		to, ok := e.list(n, 1)
		if !ok || !known {
			return to, ok
		}
		return broadcast(first, to)
	case ir.Standard(n, "Tile"):
		times, ok := e.list(n, 1)
		if !ok || !known || len(times) != len(first) {
			return nil, false
		}
		dims = slices.Clone(first)
		for i := range dims {
			dims[i] = dim.Saturated(dims[i], times[i])
		}
		return dims, true
	case ir.Standard(n, "Pad"):
		pads, ok := e.list(n, 1)
		if !ok || !known || len(n.Inputs) > 3 || len(pads) != 2*len(first) {
			return nil, false
		}
		dims = slices.Clone(first)
		for i := range dims {
			dims[i] += pads[i] + pads[i+len(dims)]
		}
		return dims, true
	case ir.Standard(n, "Reshape"):
		to, ok := e.list(n, 1)
		if ok && known && len(first) == 0 && len(to) == 1 {
			return []int64{1}, true
		}
		if !ok || slices.ContainsFunc(to, func(d int64) bool { return d <= 0 }) {
			return reshaped(first, to, ok && known)
		}
		return to, true
	case ir.Standard(n, "Unsqueeze"):
		axes, ok := e.axes(n)
		if !ok || !known {
			return nil, false
		}
		return unsqueezed(first, axes)
	case ir.Standard(n, "Squeeze"):
		axes, ok := e.axes(n)
		if !known {
			return nil, false
		}
		return squeezed(first, axes, ok)
	case ir.Standard(n, "Gather"):
		indices, ok := in(1)
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
		second, ok := in(1)
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
			d, ok := in(i)
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

func (e *estimate) rangeShape(n *onnx.Node) ([]int64, bool) {
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

func (e *estimate) concatShape(n *onnx.Node) ([]int64, bool) {
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

// axes returns the axes input or attribute of Unsqueeze and Squeeze.
func (e *estimate) axes(n *onnx.Node) ([]int64, bool) {
	if len(n.Inputs) > 1 {
		return e.list(n, 1)
	}
	a := n.Ints("axes")
	return a, a != nil
}

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

// reshaped resolves 0 (kept) and −1 (the rest) in a shape.
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
