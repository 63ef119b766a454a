package eval

import (
	"context"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// A model without a cache computes its mask for all pairs of tokens at once,
// which nobody can evaluate for 131,072 of them. So the exporter's graph is
// rewritten to compute chosen rows only (queries), each with all its keys:
// choosing rows is moved from the result back through the nodes that treat
// rows alike, up to where a value has but one row per token.

// RowsInput is the list of rows that a piece by rows computes.
const RowsInput = "rope-rewrite/rows"

// ByRows returns a piece that computes only the rows of p's one output that are
// listed in rowsInput; the cut, which has the same axes, is fed these rows.
func (l *Evaluator) ByRows(ctx context.Context, p *Piece, axis int) (*Piece, error) {
	dims, err := l.Dims(ctx, p)
	if err != nil {
		return nil, err
	}
	r := &rowChooser{piece: p, dims: dims, axis: axis, producer: map[string]*onnx.Node{}, kept: map[*onnx.Node]bool{}, memo: map[string]string{},
		axesInput: p.Graph.Model.Opset("") >= 13}
	for _, n := range p.Nodes {
		for _, o := range n.Outputs {
			r.producer[o] = n
		}
	}
	out, err := r.rows(p.Outputs[0], axis)
	if err != nil {
		return nil, err
	}
	q := *p
	q.Nodes, q.Outputs = r.nodes, []string{out}
	q.kinds = map[string]onnx.DataType{out: p.element(p.Outputs[0])}
	q.dims = map[string][]dim.Extent{out: l.Table.Dims[p.Outputs[0]]}
	q.Consts = append(slices.Clone(p.Consts), r.consts...)
	q.Typed = append(slices.Clone(p.Typed), &onnx.ValueInfo{Name: RowsInput, Type: onnx.Int64})
	return &q, nil
}

// rowChooser writes nodes that compute chosen rows.
type rowChooser struct {
	piece     *Piece
	dims      map[string][]dim.Extent
	axis      int // of the rows in the cut
	producer  map[string]*onnx.Node
	nodes     []*onnx.Node
	consts    []*onnx.Tensor
	kept      map[*onnx.Node]bool // nodes that stay as they are, written already
	memo      map[string]string
	axesInput bool // Unsqueeze and Squeeze read their axes (opset 13)
}

// Elementwise are ops whose output element depends on the input elements at
// the same place, with broadcasting.
var Elementwise = []string{"Identity", "Cast", "Not", "Neg", "Abs", "Sign", "Floor", "Ceil", "Round", "Sqrt", "Exp", "Log", "Tanh",
	"Sigmoid", "Relu", "Reciprocal", "IsNaN", "IsInf", "Clip", "Add", "Sub", "Mul", "Div", "Mod", "Pow", "Min", "Max",
	"And", "Or", "Xor", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Where"}

// rows returns the value that holds the chosen rows of v along axis.
func (r *rowChooser) rows(v string, axis int) (string, error) {
	dims, ok := r.dims[v]
	n := r.producer[v]
	switch {
	case !ok:
		return "", fmt.Errorf("the size of %q does not follow from batch and length", v)
	case axis < 0 || axis >= len(dims) || dims[axis] != dim.LengthExtent:
		return "", fmt.Errorf("%q has the shape %v, without rows at dimension %d", v, dims, axis)
	case slices.Contains(r.piece.Boundaries, v):
		if axis != r.axis {
			return "", fmt.Errorf("%q is read with its rows at dimension %d, %d was expected", v, axis, r.axis)
		}
		return v, nil
	}
	name := fmt.Sprintf("%s/rope-rewrite/rows%d", v, axis)
	if r.memo[name] != "" {
		return name, nil
	}
	r.memo[name] = name
	var inputs []string
	var err error
	switch {
	case n == nil || len(n.Outputs) != 1:
		return name, r.gather(v, name, axis)
	case ir.Standard(n, Elementwise...):
		for _, in := range n.Inputs {
			x, err := r.aligned(in, len(dims)-axis)
			if err != nil {
				return "", err
			}
			inputs = append(inputs, x)
		}
	case ir.Standard(n, "ReduceMax", "ReduceMin", "ReduceSum") && axis < len(dims)-1 && r.piece.Graph.OverLast(n, len(dims)):
		inputs, err = r.rest(n, 0, axis)
	case ir.Standard(n, "Unsqueeze", "Squeeze", "Reshape", "Flatten"):
		return name, r.reshaped(v, name, axis)
	case ir.Standard(n, "Transpose"):
		return name, r.transposed(n, name, axis)
	case ir.Standard(n, "Expand"):
		inputs, err = r.expanded(n, name, axis, len(dims))
	case ir.Standard(n, "Tile"):
		inputs, err = r.tiled(n, name, axis)
	case ir.Standard(n, "CumSum") && r.elsewhere(n, 1, axis, len(dims)):
		inputs, err = r.rest(n, 0, axis)
	case ir.Standard(n, "ScatterND"):
		return name, r.scattered(n, name, axis)
	case ir.Standard(n, "ConstantOfShape"):
		shape, err := r.shorter(n.Inputs[0], name, axis)
		if err != nil {
			return "", err
		}
		inputs = []string{shape}
	case ir.Standard(n, "Concat"):
		at := n.Int("axis", 0)
		if at < 0 {
			at += int64(len(dims))
		}
		if at == int64(axis) {
			return name, r.gather(v, name, axis)
		}
		for _, in := range n.Inputs {
			x, err := r.rows(in, axis)
			if err != nil {
				return "", err
			}
			inputs = append(inputs, x)
		}
	case ir.Standard(n, "Slice"):
		if dims[axis] != r.dims[n.Inputs[0]][axis] || !r.elsewhere(n, 3, axis, len(dims)) {
			return name, r.gather(v, name, axis)
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
	case ir.Standard(n, "Trilu") && axis == len(dims)-2:
		return name, r.triangle(n, name, axis)
	default:
		return name, r.gather(v, name, axis)
	}
	if err != nil {
		return "", err
	}
	r.like(n, inputs, name)
	return name, nil
}

// like writes a node that does what n does, beside n, which may stay as it is too.
func (r *rowChooser) like(n *onnx.Node, inputs []string, output string) {
	c := n.Clone()
	c.Name, c.Inputs, c.Outputs = "", inputs, []string{output}
	r.nodes = append(r.nodes, c)
}

// aligned returns an operand of a broadcasting op: its chosen rows, or all of
// it where one row serves for all. The rows stand fromEnd dimensions before
// the end.
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

// rest returns n's inputs with rows chosen in one of them.
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

// whole writes the nodes that make v as it is. A value with two dimensions of
// tokens is what must not be made.
func (r *rowChooser) whole(v string) error {
	lengths := 0
	for _, e := range r.dims[v] {
		if e.L != 0 || e.BL != 0 {
			lengths++
		}
	}
	if lengths > 1 {
		return fmt.Errorf("%q, of the shape %v, cannot be computed row by row", v, r.dims[v])
	}
	n := r.producer[v]
	if n == nil || r.kept[n] {
		return nil
	}
	r.kept[n] = true
	for u := range ir.Uses(n) {
		if _, ok := r.dims[u]; !ok && r.producer[u] != nil {
			return fmt.Errorf("the size of %q does not follow from batch and length", u)
		}
		if err := r.whole(u); err != nil {
			return err
		}
	}
	r.nodes = append(r.nodes, n)
	return nil
}

// gather makes all of v and picks the rows.
func (r *rowChooser) gather(v, name string, axis int) error {
	if err := r.whole(v); err != nil {
		return err
	}
	r.nodes = append(r.nodes, onnx.NewNode("Gather", []string{v, RowsInput}, []string{name}, onnx.IntAttr("axis", int64(axis))))
	return nil
}

// reshaped goes back through a chain of reshapes to where the value has the
// same dimensions but for those of size 1, and reshapes its rows instead.
func (r *rowChooser) reshaped(v, name string, axis int) error {
	for x := v; ir.Standard(r.producer[x], "Unsqueeze", "Squeeze", "Reshape", "Flatten"); {
		x = r.producer[x].Inputs[0]
		from, ok := r.dims[x]
		if !ok || !slices.Equal(wide(from), wide(r.dims[v])) {
			continue
		}
		place := len(wide(r.dims[v][:axis])) // among the wide ones
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
		value = r.ones("Squeeze", value, name+"/squeezed", from)
		value = r.ones("Unsqueeze", value, name+"/unsqueezed", r.dims[v])
		r.nodes = append(r.nodes, onnx.NewNode("Identity", []string{value}, []string{name}))
		return nil
	}
	return r.gather(v, name, axis)
}

// wide returns the dimensions that are not 1.
func wide(dims []dim.Extent) []dim.Extent {
	return slices.DeleteFunc(slices.Clone(dims), func(e dim.Extent) bool { return e == dim.ConstantExtent(1) })
}

// ones squeezes or unsqueezes the dimensions of size 1.
func (r *rowChooser) ones(op, value, name string, dims []dim.Extent) string {
	var axes []int64
	for i, e := range dims {
		if e == dim.ConstantExtent(1) {
			axes = append(axes, int64(i))
		}
	}
	if len(axes) == 0 {
		return value
	}
	n := onnx.NewNode(op, []string{value}, []string{name})
	if r.axesInput {
		n.Inputs = append(n.Inputs, r.list(name+"/axes", axes...))
	} else {
		n.SetAttribute(onnx.IntsAttr("axes", axes...))
	}
	r.nodes = append(r.nodes, n)
	return name
}

func (r *rowChooser) list(name string, values ...int64) string {
	r.consts = append(r.consts, ir.Int64Tensor(name, []int64{int64(len(values))}, values...))
	return name
}

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
	r.like(n, []string{x}, name)
	return nil
}
