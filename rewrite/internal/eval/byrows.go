package eval

import (
	"context"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// A model without a cache computes its mask for all pairs of tokens at once. That
// cannot be evaluated for 131,072 tokens. So the exporter's nodes are rewritten to
// compute chosen rows (queries) only, each with all its keys. A Gather of these rows is
// moved from the result back through nodes that treat every row in the same way, up to
// values that have one row for each token.

// RowsInput is the input of a piece by rows: the list of rows to compute, as int64.
const RowsInput = "rope-rewrite/rows"

// ByRows returns a piece that computes only the rows of p's one output that are listed
// in RowsInput. in is the boundary that is fed these rows only; fed and out are the
// dimensions of the rows in it and in the output. Other boundaries are fed whole. A mask that cannot be computed row by row is an error.
func (e *Evaluator) ByRows(ctx context.Context, p *Piece, in string, fed, out int) (*Piece, error) {
	dims, err := e.Dims(ctx, p)
	if err != nil {
		return nil, err
	}
	r := &rowChooser{piece: p, dims: dims, in: in, axis: fed, producer: map[string]*onnx.Node{}, kept: map[*onnx.Node]bool{}, memo: map[string]string{},
		Builder:   ir.Builder{Stem: "rope-rewrite/rows", Title: ir.Untitled},
		axesInput: p.Graph.Model.Opset("") >= 13}
	for _, n := range p.Nodes {
		for _, o := range n.Outputs {
			r.producer[o] = n
		}
	}
	chosen, err := r.rows(p.Outputs[0], out)
	if err != nil {
		return nil, err
	}
	q := *p
	q.Nodes, q.Outputs = r.Nodes, []string{chosen}
	q.elements = map[string]onnx.DataType{chosen: p.element(p.Outputs[0])}
	q.dims = map[string][]dim.Extent{chosen: e.Table.Dims[p.Outputs[0]]}
	q.Consts = append(slices.Clone(p.Consts), r.Constants...)
	q.Typed = append(slices.Clone(p.Typed), &onnx.ValueInfo{Name: RowsInput, Type: onnx.Int64})
	return &q, nil
}

// rowChooser writes nodes that compute chosen rows.
type rowChooser struct {
	ir.Builder
	piece     *Piece
	dims      map[string][]dim.Extent
	in        string // the boundary that is fed chosen rows
	axis      int    // of the rows in it
	producer  map[string]*onnx.Node
	kept      map[*onnx.Node]bool // nodes that stay as they are and are written already
	memo      map[string]string   // values of chosen rows that are written already
	axesInput bool                // Unsqueeze and Squeeze have their axes as an input (from opset 13)
}

// Elementwise lists the ops whose output elements depend only on the input elements at
// the same index, with broadcasting.
var Elementwise = []string{"Identity", "Cast", "Not", "Neg", "Abs", "Sign", "Floor", "Ceil", "Round", "Sqrt", "Exp", "Log", "Tanh",
	"Sigmoid", "Relu", "Reciprocal", "IsNaN", "IsInf", "Clip", "Add", "Sub", "Mul", "Div", "Mod", "Pow", "Min", "Max",
	"And", "Or", "Xor", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Where"}

// rows returns the value that holds the chosen rows of v along axis, and writes the
// nodes that make it.
func (r *rowChooser) rows(v string, axis int) (string, error) {
	dims, ok := r.dims[v]
	n := r.producer[v]
	switch {
	case !ok:
		return "", fmt.Errorf("the size of %q does not follow from batch and length", short.Name(v))
	case axis < 0 || axis >= len(dims) || dims[axis] != dim.LengthExtent:
		return "", fmt.Errorf("%q has the shape %v, without rows at dimension %d", short.Name(v), dims, axis)
	case v == r.in:
		if axis != r.axis {
			return "", fmt.Errorf("%q is read with its rows at dimension %d, expected %d", short.Name(v), axis, r.axis)
		}
		return v, nil
	}
	name := fmt.Sprintf("%s/rope-rewrite/rows%d", v, axis)
	if r.memo[name] != "" {
		return name, nil
	}
	r.memo[name] = name
	if n == nil || len(n.Outputs) != 1 {
		return name, r.gather(v, name, axis)
	}
	inputs, same, err := r.inputRows(n, axis)
	switch {
	case err != nil:
		return "", err
	case same:
		r.AddCopy(name, n, inputs)
		return name, nil
	}
	switch {
	case ir.Standard(n, "Unsqueeze", "Squeeze", "Reshape", "Flatten"):
		return name, r.reshaped(v, name, axis)
	case ir.Standard(n, "Transpose"):
		return name, r.transposed(n, name, axis)
	case ir.Standard(n, "ScatterND"):
		return name, r.scattered(n, name, axis)
	case ir.Standard(n, "Trilu") && axis == len(dims)-2:
		return name, r.triangle(n, name, axis)
	}
	return name, r.gather(v, name, axis)
}

// inputRows returns the inputs with which a node that does what n does makes the
// chosen rows of n's output. same is false where no such node does, and nothing has
// been written then.
func (r *rowChooser) inputRows(n *onnx.Node, axis int) (inputs []string, same bool, err error) {
	dims := r.dims[n.Outputs[0]]
	rank := len(dims)
	switch {
	case ir.Standard(n, Elementwise...):
		for _, in := range n.Inputs {
			x, err := r.aligned(in, rank-axis)
			if err != nil {
				return nil, false, err
			}
			inputs = append(inputs, x)
		}
	case ir.Standard(n, "ReduceMax", "ReduceMin", "ReduceSum") && axis < rank-1 && r.piece.Graph.OverLast(n, rank):
		inputs, err = r.rest(n, 0, axis)
	case ir.Standard(n, "Expand"):
		inputs, err = r.expanded(n, axis, rank)
	case ir.Standard(n, "Tile"):
		inputs, err = r.tiled(n, axis)
	case ir.Standard(n, "CumSum") && r.elsewhere(n, 1, axis, rank):
		inputs, err = r.rest(n, 0, axis)
	case ir.Standard(n, "ConstantOfShape"):
		shape, err := r.shorter(n.Inputs[0], axis)
		return []string{shape}, true, err
	case ir.Standard(n, "Concat"):
		at := n.Int("axis", 0)
		if at < 0 {
			at += int64(rank)
		}
		if at == int64(axis) {
			return nil, false, nil
		}
		for _, in := range n.Inputs {
			x, err := r.rows(in, axis)
			if err != nil {
				return nil, false, err
			}
			inputs = append(inputs, x)
		}
	case ir.Standard(n, "Slice"):
		if dims[axis] != r.dims[n.Inputs[0]][axis] || !r.elsewhere(n, 3, axis, rank) {
			return nil, false, nil
		}
		inputs, err = r.rest(n, 0, axis)
	case ir.Standard(n, "GatherND") && n.Int("batch_dims", 0) == 0 && axis < len(r.dims[n.Inputs[1]])-1:
		inputs, err = r.rest(n, 1, axis)
	case ir.Standard(n, "Gather"):
		at := int(n.Int("axis", 0))
		if at < 0 {
			at += len(r.dims[n.Inputs[0]])
		}
		switch ranks := len(r.dims[n.Inputs[1]]); {
		case axis < at:
			inputs, err = r.rest(n, 0, axis)
		case axis < at+ranks:
			inputs, err = r.rest(n, 1, axis-at)
		default:
			inputs, err = r.rest(n, 0, axis-ranks+1)
		}
	default:
		return nil, false, nil
	}
	return inputs, true, err
}

// aligned returns an operand of a broadcasting op: its chosen rows, or all of it where
// it has one row for all. The rows are fromEnd dimensions before the end.
func (r *rowChooser) aligned(v string, fromEnd int) (string, error) {
	dims, ok := r.dims[v]
	if v == "" || !ok {
		return v, r.whole(v)
	}
	if at := len(dims) - fromEnd; at >= 0 && dims[at] != dim.ConstantExtent(1) {
		return r.rows(v, at)
	}
	return v, r.whole(v)
}

// rest returns n's inputs, with chosen rows of one of them along axis.
func (r *rowChooser) rest(n *onnx.Node, chosen, axis int) ([]string, error) {
	inputs := slices.Clone(n.Inputs)
	for i, in := range n.Inputs {
		var err error
		if i == chosen {
			inputs[i], err = r.rows(in, axis)
		} else {
			err = r.whole(in)
		}
		if err != nil {
			return nil, err
		}
	}
	return inputs, nil
}

// gather makes all of v and then takes the chosen rows.
func (r *rowChooser) gather(v, name string, axis int) error {
	if err := r.whole(v); err != nil {
		return err
	}
	r.AddTo(name, "Gather", []string{v, RowsInput}, onnx.IntAttr("axis", int64(axis)))
	return nil
}

// whole writes the nodes that make all of v. It refuses values with two dimensions of
// tokens: these are what is too large.
func (r *rowChooser) whole(v string) error {
	lengths := 0
	for _, e := range r.dims[v] {
		if e.L != 0 || e.BL != 0 {
			lengths++
		}
	}
	if lengths > 1 {
		return fmt.Errorf("%q, of the shape %v, cannot be computed row by row", short.Name(v), r.dims[v])
	}
	n := r.producer[v]
	if n == nil || r.kept[n] {
		return nil
	}
	r.kept[n] = true
	for u := range ir.Uses(n) {
		if _, ok := r.dims[u]; !ok && r.producer[u] != nil {
			return fmt.Errorf("the size of %q does not follow from batch and length", short.Name(u))
		}
		if err := r.whole(u); err != nil {
			return err
		}
	}
	r.Nodes = append(r.Nodes, n)
	return nil
}
