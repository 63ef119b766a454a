package eval

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// reshaped goes back through a chain of reshapes to a value with the same dimensions,
// apart from those of size 1, and reshapes the chosen rows of that value instead. A
// Reshape of the dimensions before the rows alone (batch · heads to batch and heads) is
// written again for the chosen rows.
func (r *rowChooser) reshaped(v, name string, axis int) error {
	for x := v; ir.Standard(r.producer[x], "Unsqueeze", "Squeeze", "Reshape", "Flatten"); {
		x = r.producer[x].Inputs[0]
		from, ok := r.dims[x]
		if !ok || !slices.Equal(wide(from), wide(r.dims[v])) {
			continue
		}
		place := len(wide(r.dims[v][:axis])) // index among the dimensions that are not 1
		at := 0
		for ; at < len(from); at++ {
			if from[at] == dim.ConstantExtent(1) {
				continue
			}
			if place == 0 {
				break
			}
			place--
		}
		value, err := r.rows(x, at)
		if err != nil {
			return err
		}
		value = r.ones("Squeeze", value, from)
		value = r.ones("Unsqueeze", value, r.dims[v])
		r.AddTo(name, "Identity", []string{value})
		return nil
	}
	if n := r.producer[v]; ir.Standard(n, "Reshape") {
		from, behind := r.dims[n.Inputs[0]], r.dims[v][axis:]
		if at := len(from) - len(behind); at > 0 && slices.Equal(from[at:], behind) {
			value, err := r.rows(n.Inputs[0], at)
			if err != nil {
				return err
			}
			shape, err := r.shorter(n.Inputs[1], axis)
			if err != nil {
				return err
			}
			r.AddCopy(name, n, []string{value, shape})
			return nil
		}
	}
	return r.gather(v, name, axis)
}

// wide returns the dimensions that are not 1.
func wide(dims []dim.Extent) []dim.Extent {
	return slices.DeleteFunc(slices.Clone(dims), func(e dim.Extent) bool { return e == dim.ConstantExtent(1) })
}

// ones writes a Squeeze or Unsqueeze of the dimensions of size 1.
func (r *rowChooser) ones(op, value string, dims []dim.Extent) string {
	var axes []int64
	for i, e := range dims {
		if e == dim.ConstantExtent(1) {
			axes = append(axes, int64(i))
		}
	}
	if len(axes) == 0 {
		return value
	}
	if r.axesInput {
		return r.Add(op, []string{value, r.Ints(axes...)})
	}
	return r.Add(op, []string{value}, onnx.IntsAttr("axes", axes...))
}

// transposed writes a Transpose of the chosen rows.
func (r *rowChooser) transposed(n *onnx.Node, name string, axis int) error {
	perm := n.Ints("perm")
	at := len(r.dims[n.Outputs[0]]) - 1 - axis // without perm the dimensions are reversed
	if axis < len(perm) {
		at = int(perm[axis])
	}
	x, err := r.rows(n.Inputs[0], at)
	if err != nil {
		return err
	}
	r.AddCopy(name, n, []string{x})
	return nil
}

// expanded returns the inputs of an Expand to fewer rows.
func (r *rowChooser) expanded(n *onnx.Node, axis, rank int) ([]string, error) {
	x, err := r.aligned(n.Inputs[0], rank-axis)
	if err != nil {
		return nil, err
	}
	to := r.dims[n.Inputs[1]]
	if len(to) != 1 || !to[0].Constant() {
		return nil, fmt.Errorf("%q is expanded to an unknown number of dimensions", short.Name(n.Inputs[0]))
	}
	at := axis - rank + int(to[0].One)
	if at < 0 { // the shape says nothing of this dimension
		return []string{x, n.Inputs[1]}, r.whole(n.Inputs[1])
	}
	shape, err := r.shorter(n.Inputs[1], at)
	return []string{x, shape}, err
}

// tiled returns the inputs of a Tile to fewer rows.
func (r *rowChooser) tiled(n *onnx.Node, axis int) ([]string, error) {
	if dims := r.dims[n.Inputs[0]]; axis < len(dims) && dims[axis] == dim.LengthExtent {
		return r.rest(n, 0, axis)
	}
	if err := r.whole(n.Inputs[0]); err != nil {
		return nil, err
	}
	times, err := r.shorter(n.Inputs[1], axis)
	return []string{n.Inputs[0], times}, err
}

// shorter returns a shape whose element at is the number of chosen rows.
func (r *rowChooser) shorter(shape string, at int) (string, error) {
	if err := r.whole(shape); err != nil {
		return "", err
	}
	count := r.Add("Shape", []string{RowsInput})
	return r.Add("ScatterElements", []string{shape, r.Ints(int64(at)), count}, onnx.IntAttr("axis", 0)), nil
}
