package eval

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// How single ops compute chosen rows only (byRows).

// expanded returns the inputs of an Expand to fewer rows.
func (r *rowChooser) expanded(n *onnx.Node, name string, axis, rank int) ([]string, error) {
	x, err := r.aligned(n.Inputs[0], rank-axis)
	if err != nil {
		return nil, err
	}
	to := r.dims[n.Inputs[1]]
	if len(to) != 1 || !to[0].Constant() {
		return nil, fmt.Errorf("%q is expanded to an unknown number of dimensions", n.Inputs[0])
	}
	at := axis - rank + int(to[0].One)
	if at < 0 { // the shape says nothing of this dimension
		return []string{x, n.Inputs[1]}, r.whole(n.Inputs[1])
	}
	shape, err := r.shorter(n.Inputs[1], name, at)
	return []string{x, shape}, err
}

// tiled returns the inputs of a Tile to fewer rows.
func (r *rowChooser) tiled(n *onnx.Node, name string, axis int) ([]string, error) {
	if dims := r.dims[n.Inputs[0]]; axis < len(dims) && dims[axis] == dim.LengthExtent {
		return r.rest(n, 0, axis)
	}
	if err := r.whole(n.Inputs[0]); err != nil {
		return nil, err
	}
	times, err := r.shorter(n.Inputs[1], name, axis)
	return []string{n.Inputs[0], times}, err
}

// shorter returns a shape with the number of chosen rows at a place.
func (r *rowChooser) shorter(shape, name string, at int) (string, error) {
	if err := r.whole(shape); err != nil {
		return "", err
	}
	count, out := name+"/count", name+"/shape"
	r.nodes = append(r.nodes,
		onnx.NewNode("Shape", []string{RowsInput}, []string{count}),
		onnx.NewNode("ScatterElements", []string{shape, r.list(name+"/at", int64(at)), count}, []string{out}, onnx.IntAttr("axis", 0)))
	return out, nil
}

// elsewhere reports whether a node leaves one axis alone; the axes that it works
// along, one of its inputs, must be constant.
func (r *rowChooser) elsewhere(n *onnx.Node, input, axis, rank int) bool {
	if len(n.Inputs) <= input {
		return false
	}
	axes := r.piece.Graph.Integers(n.Inputs[input])
	return axes != nil && !slices.Contains(axes, int64(axis)) && !slices.Contains(axes, int64(axis-rank))
}

// triangle writes Trilu on chosen rows: an element stays where its column is
// at least (upper) or at most (lower) its row plus k.
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

// step writes a node on the way to a value and returns its output.
func (r *rowChooser) step(name, op string, inputs ...string) string {
	out := fmt.Sprintf("%s/%d", name, len(r.nodes))
	r.nodes = append(r.nodes, onnx.NewNode(op, inputs, []string{out}))
	return out
}

// scalar makes a constant of one integer.
func (r *rowChooser) scalar(name string, v int64) string {
	r.consts = append(r.consts, ir.Int64Tensor(name, []int64{}, v))
	return name
}

// scattered writes chosen rows of a ScatterND that writes every element of a
// value, as an assignment to all of a tensor is exported: each row of indices must
// name its own row of the value. Where one names another, ONNX Runtime is given an
// index that it refuses.
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
