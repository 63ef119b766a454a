package eval

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
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
	step := func(op string, inputs ...string) string { return r.step(name, op, inputs...) }
	k := r.list(name+"/k", 0)
	if len(n.Inputs) > 1 && n.Inputs[1] != "" {
		k = n.Inputs[1]
		if err := r.whole(k); err != nil {
			return err
		}
	}
	width := step("Gather", step("Shape", x), r.scalar(name+"/last", -1))
	columns := step("Range", r.scalar(name+"/zero", 0), width, r.scalar(name+"/one", 1))
	edge := step("Reshape", step("Add", RowsInput, k), r.list(name+"/column", -1, 1))
	compare := "LessOrEqual"
	if n.Int("upper", 1) != 0 {
		compare = "GreaterOrEqual"
	}
	stays := step(compare, columns, edge)
	if r.piece.element(n.Inputs[0]) == onnx.Bool {
		r.nodes = append(r.nodes, onnx.NewNode("And", []string{stays, x}, []string{name}))
		return nil
	}
	zero := name + "/nothing"
	r.consts = append(r.consts, ir.Float32Tensor(zero, []int64{}, 0))
	r.nodes = append(r.nodes, onnx.NewNode("Where", []string{stays, x, step("CastLike", zero, x)}, []string{name}))
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
	count := r.step(name, "Gather", r.step(name, "Shape", RowsInput), r.scalar(name+"/first", 0))
	place := r.step(name, "Range", r.scalar(name+"/zero", 0), count, r.scalar(name+"/one", 1))
	shape := r.list(name+"/along", along...)
	column := func(list string) string { return r.step(name, "Reshape", list, shape) }
	own := r.step(name, "Equal", parts[1], column(RowsInput))
	row := r.step(name, "Where", own, column(place), r.scalar(name+"/nowhere", 1<<40))
	isRow := r.step(name, "Greater", r.list(name+"/there", there...), r.scalar(name+"/none", 0))
	r.like(n, []string{parts[0], r.step(name, "Where", isRow, row, parts[1]), parts[2]}, name)
	return nil
}
