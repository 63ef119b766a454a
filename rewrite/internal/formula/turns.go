package formula

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

var (
	// moving are the nodes that move values, told by constants and sizes.
	moving = []string{"Identity", "Cast", "Reshape", "Flatten", "Transpose", "Unsqueeze", "Squeeze", "Slice", "Split", "Expand", "Tile", "Concat", "Gather"}
	// weighing are products and sums.
	weighing = []string{"Mul", "Add", "Sub", "Neg", "Div", "MatMul", "Einsum"}
)

// mostProducts is how many products with cosines are added up in one hidden state. Sums of many cosines, and products of
// some, may be what was measured at all positions but one.
const mostProducts = 2

// Turns returns nil where hidden states of the piece meet nothing but constants and what is computed of one position for
// each token: its products with constants, their cosines and sines, and rows of tables. Nothing decides there, so that
// what happens to a token is the same in every call.
func (r *Reader) Turns() error {
	g := r.piece.Graph
	products := map[string]int{}
	for _, n := range r.piece.Nodes {
		if !slices.ContainsFunc(n.Inputs, g.IsData) {
			continue
		}
		count := 0
		for _, v := range n.Inputs {
			if count = max(count, products[v]); ir.Standard(n, "Add", "Sub") && v != n.Inputs[0] {
				count = products[n.Inputs[0]] + products[v]
			}
		}
		if turns := ir.Standard(n, "Mul") && slices.ContainsFunc(n.Inputs, func(v string) bool { return !g.IsData(v) && !r.repeated(v) }); turns {
			if count++; count > 1 {
				return unread("hidden states are turned once more at %s", ir.Label(n))
			}
		}
		if count > mostProducts || count > 0 && ir.Standard(n, "MatMul", "Einsum") {
			return unread("hidden states are turned by many angles at %s", ir.Label(n))
		}
		for _, v := range n.Outputs {
			products[v] = count
		}
		scale := func(v string) bool { return !g.IsData(v) || r.table.Scales[v] }
		switch {
		case ir.Standard(n, "Mul", "Div", "MatMul") && !slices.ContainsFunc(n.Inputs, scale), ir.Standard(n, "Div") && g.IsData(n.Inputs[1]):
			return unread("hidden states are multiplied at %s", ir.Label(n))
		case ir.Standard(n, weighing...), ir.Standard(n, "Concat"):
		case ir.Standard(n, moving...):
			if err := r.moves(n); err != nil {
				return err
			}
			continue
		case ir.Standard(n, "IsNaN"), ir.Standard(n, "Where") && ir.Standard(g.Producer[n.Inputs[0]], "IsNaN") && g.Producer[n.Inputs[0]].Inputs[0] == n.Inputs[2]:
			continue // probabilities of queries without keys
		default:
			return unread("hidden states reach %s", ir.Label(n))
		}
		for _, v := range n.Inputs {
			if err := r.single(v); err != nil && !g.IsData(v) {
				return err
			}
		}
	}
	return nil
}

// moves refuses a node that is told by more than constants and sizes how to move its first input.
func (r *Reader) moves(n *onnx.Node) error {
	if ir.Standard(n, "Slice") && !r.cuts(n) {
		return unread("%s cuts tokens off", ir.Label(n))
	}
	for _, v := range n.Inputs[1:] {
		if err := r.sum(v); err != nil {
			return err
		}
	}
	return nil
}

// single refuses a value that is computed of more than constants and one position for each token, or is chosen.
func (r *Reader) single(v string) error { return r.turned.of(v, nil, r.turn) }

func (r *Reader) turn(v string) error {
	g := r.piece.Graph
	n := g.Producer[v]
	open := 0 // operands that are no constants
	if n != nil {
		open = len(slices.DeleteFunc(slices.Clone(n.Inputs), func(v string) bool {
			_, size := r.count(v) // the number of cached tokens in front: another sum would show in small calls
			return r.repeated(v) || size && ir.Standard(n, "Add")
		}))
	}
	switch {
	case r.repeated(v), n == nil, slices.ContainsFunc(r.piece.Typed, func(t *onnx.ValueInfo) bool { return t.Name == v }):
		return nil // a constant, or a position
	case ir.Standard(n, "Range"):
		return r.follow(v)
	case ir.Standard(n, "Cos", "Sin", "MatMul", "Einsum", "Add", "Sub") && slices.ContainsFunc(n.Inputs, r.turning):
		return unread("cosines are added up at %s", ir.Label(n))
	case ir.Standard(n, "Cos", "Sin"), ir.Standard(n, weighing...) && open == 1, ir.Standard(n, "Concat"):
	case ir.Standard(n, "Gather") && r.repeated(n.Inputs[0]): // rows of a table, which are all compared
		if dims, ok := r.shape(n.Inputs[0]); !ok || len(dims) == 0 || !dims[0].Constant() || dims[0].One >= ir.TopPosition {
			return unread("the table of %s has too many rows", ir.Label(n))
		}
	case ir.Standard(n, moving...):
		if err := r.moves(n); err != nil {
			return err
		}
		return r.single(n.Inputs[0])
	default:
		return unread("the rotation is computed at %s", ir.Label(n))
	}
	for _, in := range n.Inputs {
		if _, size := r.count(in); size {
			continue
		}
		if err := r.single(in); err != nil {
			return err
		}
	}
	return nil
}

// turning reports whether a value is made of cosines, sines or rows of a table.
func (r *Reader) turning(v string) bool {
	return r.trigonometry.of(v, false, func(v string) bool {
		n := r.piece.Graph.Producer[v]
		switch {
		case n == nil || r.repeated(v), ir.Standard(n, "Range"):
			return false
		case ir.Standard(n, "Cos", "Sin"), ir.Standard(n, "Gather") && r.repeated(n.Inputs[0]):
			return true
		case ir.Standard(n, moving...) && !ir.Standard(n, "Concat"):
			return r.turning(n.Inputs[0])
		}
		return slices.ContainsFunc(n.Inputs, r.turning)
	})
}

// repeated reports whether a value is a constant, in whatever shape.
func (r *Reader) repeated(v string) bool {
	return r.repeats.of(v, false, func(v string) bool {
		n := r.piece.Graph.Producer[v]
		return r.settled(v) || n != nil && len(n.Inputs) > 0 && ir.Standard(n, moving...) && !ir.Standard(n, "Concat", "Gather") && r.moves(n) == nil && r.repeated(n.Inputs[0])
	})
}

// given reports whether a variable is what an input has for the token.
func (r *Reader) given(v Variable) bool {
	s := r.symbols[v-opaque]
	last := len(s.arg) - 1
	return s.input && last >= 0 && equal(s.arg[last], r.query()) && !slices.ContainsFunc(s.arg[:last], func(f Form) bool { return len(f) > 0 && !equal(f, variable(Row)) })
}

// still reports whether a form is of constants and heads alone.
func (r *Reader) still(f Form) bool {
	return !f.reads(func(v Variable) bool {
		if v < opaque {
			return v != Head
		}
		s := r.symbols[v-opaque]
		return s.input || slices.ContainsFunc(s.arg, func(f Form) bool { return !r.still(f) })
	})
}

// Counts returns nil where a value with one element for each token is, of tokens that are no padding, their place or
// the number of such tokens up to it, plus a constant, or what an input tells.
func (r *Reader) Counts(v string) error {
	dims := r.dims[v]
	index := make([]Form, len(dims))
	place := r.query()
	for k, e := range dims {
		switch e {
		case dim.BatchExtent:
			index[k] = variable(Row)
		case dim.LengthExtent:
			index[k] = r.query()
		case dim.TotalExtent:
			index[k] = variable(Key)
			place = variable(Key)
		}
	}
	if r.table.Past && equal(place, r.query()) {
		place = place.plus(variable(Past), 1)
	}
	x, err := r.at(v, index)
	if err != nil {
		return err
	}
	for t := range x.tests {
		if !t.bit || !equal(t.form, place) {
			return unread("positions depend on %s", r.text(t.form))
		}
	}
	f := x.at(func(*test) bool { return true })
	variables, _ := f.rest()
	if !r.table.Past { // a number that all tokens of a call have more makes no difference
		variables = slices.DeleteFunc(slices.Clone(variables), func(p part) bool { return p.of == monomial{one, Length} })
	}
	switch {
	case equal(variables, place):
		return nil
	case len(variables) == 1 && variables[0].factor == 1 && variables[0].of[0] == one && variables[0].of[1] >= opaque:
		s := r.symbols[variables[0].of[1]-opaque]
		if s.op == "CumSum" && equal(s.arg[0], place) || r.given(variables[0].of[1]) {
			return nil
		}
	}
	return unread("positions are %s", r.text(f))
}

// Lengths returns nil where a value has, for each row, one less than the number of tokens that the padding mask shows.
func (r *Reader) Lengths(v string) error {
	index := make([]Form, len(r.dims[v]))
	for k, e := range r.dims[v] {
		if e == dim.BatchExtent {
			index[k] = variable(Row)
		}
	}
	x, err := r.at(v, index)
	if err != nil {
		return err
	}
	if all := r.symbol(symbol{op: "ReduceSum"}).leaf; x.test != nil || !equal(x.leaf, all.plus(number(1), -1)) {
		return unread("lengths are %s", r.text(x.leaf))
	}
	return nil
}
