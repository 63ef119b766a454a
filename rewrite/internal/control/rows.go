package control

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// RowsApart reports whether each row of a batch of the piece's output certainly depends on the same row of its
// inputs alone, beside what all rows share. dims are the shapes of its values (eval.Evaluator.Dims).
func RowsApart(p *eval.Piece, dims map[string][]dim.Extent) bool {
	r := rows{dims: dims, piece: p, axis: map[string]int{}}
	for _, v := range p.Inputs {
		r.axis[v.Name] = r.batchOf(v.Name)
	}
	for _, v := range p.Boundaries {
		r.axis[v] = r.batchOf(v)
	}
	for _, n := range p.Nodes {
		at, ok := r.node(n)
		if !ok {
			return false
		}
		for _, o := range n.Outputs {
			r.axis[o] = at
		}
	}
	return !slices.ContainsFunc(p.Outputs, func(v string) bool { return r.of(v) == shared })
}

// shared is the axis of a value that does not depend on the contents of the batch.
const shared = -1

// rows holds, for each value, the dimension along which its rows depend on those of the inputs.
type rows struct {
	piece *eval.Piece
	dims  map[string][]dim.Extent
	axis  map[string]int
}

// of is the axis of a value; constants and sizes are shared.
func (r *rows) of(v string) int {
	if at, ok := r.axis[v]; ok {
		return at
	}
	return shared
}

// batchOf returns the dimension of a value that the batch is, or the batch and its heads.
func (r *rows) batchOf(v string) int {
	return slices.IndexFunc(r.dims[v], func(e dim.Extent) bool { return e.B > 0 && e == dim.Extent{B: e.B} })
}

// node returns the axis of what a node gives; ok is false where it may mix rows.
func (r *rows) node(n *onnx.Node) (axis int, ok bool) {
	own := slices.DeleteFunc(slices.Clone(n.Inputs), func(v string) bool { return v == "" || r.of(v) == shared })
	if len(own) == 0 || ir.Standard(n, "Shape", "Size") {
		return shared, !slices.ContainsFunc(n.Attributes, func(a *onnx.Attribute) bool { return a.Graph != nil })
	}
	out, known := r.dims[n.Outputs[0]]
	if !known {
		return shared, false
	}
	switch {
	case ir.Standard(n, eval.Elementwise...), ir.Standard(n, "CastLike"):
		axis = -1
		for _, v := range own { // dimensions are the same from the end on
			at := len(out) - len(r.dims[v]) + r.of(v)
			if axis >= 0 && at != axis {
				return shared, false
			}
			axis = at
		}
		return axis, true
	case len(own) > 1 && !ir.Standard(n, "Concat"):
		return shared, false
	case ir.Standard(n, "GatherND"):
		axis = r.batchOf(n.Outputs[0])
		return axis, n.Inputs[0] == own[0] && r.of(own[0]) == 0 && n.Int("batch_dims", 0) == 0 && axis >= 0 && r.leads(n.Outputs[0], axis) && r.tellsRow(n.Inputs[1])
	}
	from := own[0]
	at, rank := r.of(from), len(r.dims[from])
	elsewhere := func(axes []int64) bool {
		return axes != nil && !slices.Contains(axes, int64(at)) && !slices.Contains(axes, int64(at-rank))
	}
	constant := func(input int) []int64 {
		if len(n.Inputs) <= input {
			return nil
		}
		return r.piece.Graph.Integers(n.Inputs[input])
	}
	switch {
	case ir.Standard(n, "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Expand"):
		axis = r.batchOf(n.Outputs[0])
		if ir.Standard(n, "Expand") {
			return len(out) - rank + at, n.Inputs[0] == from
		}
		return axis, n.Inputs[0] == from && axis >= 0 && r.leads(from, at) && r.leads(n.Outputs[0], axis) && r.dims[from][at].B == out[axis].B
	case ir.Standard(n, "Transpose"):
		return slices.Index(n.Ints("perm"), int64(at)), n.Ints("perm") != nil
	case ir.Standard(n, "Concat"):
		for _, v := range own {
			if r.of(v) != at {
				return shared, false
			}
		}
		return at, elsewhere([]int64{n.Int("axis", 0)})
	case ir.Standard(n, "Slice"):
		return at, n.Inputs[0] == from && elsewhere(constant(3))
	case ir.Standard(n, "CumSum"):
		return at, n.Inputs[0] == from && elsewhere(constant(1))
	case ir.Standard(n, "Trilu"):
		return at, at < rank-2
	case ir.Standard(n, "ReduceMax", "ReduceMin", "ReduceSum") && n.Int("keepdims", 1) == 1:
		return at, n.Inputs[0] == from && elsewhere(r.piece.Graph.Axes(n))
	case ir.Standard(n, "Gather") && n.Inputs[0] == from:
		along := n.Int("axis", 0)
		if along < 0 {
			along += int64(rank)
		}
		if at > int(along) {
			at += len(r.dims[n.Inputs[1]]) - 1
		}
		return at, elsewhere([]int64{along})
	case ir.Standard(n, "Gather"):
		along := n.Int("axis", 0)
		if along < 0 {
			along += int64(len(r.dims[n.Inputs[0]]))
		}
		return at + int(along), true
	}
	return shared, false
}

// tellsRow reports whether the first of each index in a list of indices is that of the row of the batch which the
// list has it for.
func (r *rows) tellsRow(indices string) bool {
	g := r.piece.Graph
	n := g.Producer[indices]
	if !ir.Standard(n, "Concat") || !ir.LastAxis(n.Int("axis", 0), len(r.dims[indices])) {
		return false
	}
	v := n.Inputs[0]
	if r.dims[v] == nil || r.dims[v][len(r.dims[v])-1] != dim.ConstantExtent(1) {
		return false
	}
	for {
		at := r.batchOf(v)
		if at < 0 || !r.leads(v, at) || r.dims[v][at] != dim.BatchExtent {
			return false
		}
		n = g.Producer[v]
		if !ir.Standard(n, "Unsqueeze", "Squeeze", "Reshape", "Expand", "Cast", "Identity") {
			break
		}
		v = n.Inputs[0]
	}
	return ir.Standard(n, "Range") && slices.Equal(g.Integers(n.Inputs[0]), []int64{0}) && slices.Equal(g.Integers(n.Inputs[2]), []int64{1})
}

// leads reports whether all dimensions before one have one element.
func (r *rows) leads(v string, at int) bool {
	return !slices.ContainsFunc(r.dims[v][:at], func(e dim.Extent) bool { return e != dim.ConstantExtent(1) })
}
