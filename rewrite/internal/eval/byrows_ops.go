package eval

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
)

// Single ops that need other nodes to compute chosen rows only (ByRows).

// elsewhere reports whether a node works along other axes than this one. Its axes are
// one of its inputs, which must be constant.
func (r *rowChooser) elsewhere(n *onnx.Node, input, axis, rank int) bool {
	if len(n.Inputs) <= input {
		return false
	}
	axes := r.piece.Graph.Integers(n.Inputs[input])
	return axes != nil && !slices.Contains(axes, int64(axis)) && !slices.Contains(axes, int64(axis-rank))
}

// triangle writes a Trilu of chosen rows: an element is kept where its column is at
// least (upper) or at most (lower) its row plus k.
func (r *rowChooser) triangle(n *onnx.Node, name string, axis int) error {
	x, err := r.rows(n.Inputs[0], axis)
	if err != nil {
		return err
	}
	add := func(op string, inputs ...string) string { return r.Add(op, inputs) }
	k := r.Ints(0)
	if len(n.Inputs) > 1 && n.Inputs[1] != "" {
		k = n.Inputs[1]
		if err := r.whole(k); err != nil {
			return err
		}
	}
	columns := add("Range", r.Int(0), r.Size(x, -1), r.Int(1))
	edge := add("Reshape", add("Add", RowsInput, k), r.Ints(-1, 1))
	compare := "LessOrEqual"
	if n.Int("upper", 1) != 0 {
		compare = "GreaterOrEqual"
	}
	stays := add(compare, columns, edge)
	if r.piece.element(n.Inputs[0]) == onnx.Bool {
		r.AddTo(name, "And", []string{stays, x})
		return nil
	}
	r.AddTo(name, "Where", []string{stays, x, add("CastLike", r.Float(0, onnx.Float), x)})
	return nil
}

// scattered writes the chosen rows of a ScatterND that writes every element of a value;
// an assignment to all of a tensor is exported so. Each row of indices must point to its
// own row of the value. For one that points to another row, the nodes make an index that
// is out of range, so that ONNX Runtime fails.
func (r *rowChooser) scattered(n *onnx.Node, name string, axis int) error {
	dims, indices := r.dims[n.Inputs[0]], r.dims[n.Inputs[1]]
	rank := len(dims)
	if len(indices) != rank+1 || !slices.Equal(indices[:rank], dims) || indices[rank] != dim.ConstantExtent(int64(rank)) ||
		n.Text("reduction", "none") != "none" {
		return r.gather(n.Outputs[0], name, axis)
	}
	var parts [3]string
	for i := range parts {
		var err error
		if parts[i], err = r.rows(n.Inputs[i], axis); err != nil {
			return err
		}
	}
	there, along := make([]int64, rank), slices.Repeat([]int64{1}, rank+1)
	there[axis], along[axis] = 1, -1
	add := func(op string, inputs ...string) string { return r.Add(op, inputs) }
	place := add("Range", r.Int(0), r.Size(RowsInput, 0), r.Int(1))
	shape := r.Ints(along...)
	column := func(list string) string { return add("Reshape", list, shape) }
	own := add("Equal", parts[1], column(RowsInput))
	row := add("Where", own, column(place), r.Int(1<<40))
	isRow := add("Greater", r.Ints(there...), r.Int(0))
	r.AddCopy(name, n, []string{parts[0], add("Where", isRow, row, parts[1]), parts[2]})
	return nil
}
