package formula

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

var (
	// moving are the nodes that a rotation may be made of beside products and sums: they move hidden states.
	moving = []string{"Identity", "Cast", "Reshape", "Flatten", "Transpose", "Unsqueeze", "Squeeze", "Slice", "Split", "Expand", "Concat", "Gather"}
	// weighing are products and sums.
	weighing = []string{"Mul", "Add", "Sub", "Neg", "Div"}
)

// Turns returns nil where hidden states of the piece meet nothing but constants, and cosines and sines of one position
// for each token times a constant, or rows of tables at it: then what happens to a token is the same in every call.
func (r *Reader) Turns() error {
	r.rounds = true
	g := r.piece.Graph
	for _, n := range r.piece.Nodes {
		if !slices.ContainsFunc(n.Inputs, g.IsData) {
			continue
		}
		switch {
		case ir.Standard(n, weighing...):
			if ir.Standard(n, "Mul", "Div") && !slices.ContainsFunc(n.Inputs, func(v string) bool { return !g.IsData(v) || r.table.Scales[v] }) || ir.Standard(n, "Div") && g.IsData(n.Inputs[1]) {
				return unread("hidden states are multiplied at %s", ir.Label(n))
			}
			for _, v := range n.Inputs {
				if !g.IsData(v) {
					if err := r.turned(v); err != nil {
						return err
					}
				}
			}
		case ir.Standard(n, moving...):
			if err := r.moved(n); err != nil {
				return err
			}
		case r.fused(n), ir.Standard(n, "IsNaN"):
		case ir.Standard(n, "Where") && ir.Standard(g.Producer[n.Inputs[0]], "IsNaN") && g.Producer[n.Inputs[0]].Inputs[0] == n.Inputs[2] && r.settled(n.Inputs[1]):
		default:
			return unread("hidden states reach %s", ir.Label(n))
		}
	}
	return nil
}

// fused reports whether a node multiplies by a constant alone.
func (r *Reader) fused(n *onnx.Node) bool {
	g := r.piece.Graph
	return ir.Standard(n, "MatMul") && slices.ContainsFunc(n.Inputs, func(v string) bool { return !g.IsData(v) && r.settled(v) })
}

// moved refuses a node that is told by a condition how to move hidden states.
func (r *Reader) moved(n *onnx.Node) error {
	g := r.piece.Graph
	if ir.Standard(n, "Slice") && !r.cuts(n) {
		return unread("%s cuts tokens off", ir.Label(n))
	}
	for k, v := range n.Inputs {
		switch {
		case v == "" || g.IsData(v):
		case k == 0 || ir.Standard(n, "Concat"):
			if err := r.turned(v); err != nil {
				return err
			}
		default:
			if err := r.sum(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// turned refuses a factor that is more than cosines and sines, or rows of tables, of positions.
func (r *Reader) turned(v string) error {
	if r.settled(v) {
		return nil
	}
	dims, ok := r.dims[v]
	if !ok {
		return unread("the shape of %q is not known", short.Name(v))
	}
	index := make([]Form, len(dims))
	channels := []Variable{Channel, Head}
	for k := len(dims) - 1; k >= 0; k-- {
		switch e := dims[k]; {
		case e == unit:
		case e == dim.BatchExtent:
			index[k] = variable(Row)
		case e == dim.LengthExtent:
			index[k] = variable(Query)
		case e == dim.TotalExtent:
			index[k] = variable(Key)
		case e.Constant() && len(channels) > 0:
			index[k], channels = variable(channels[0]), channels[1:]
		default:
			return unread("%q has the shape %v", short.Name(v), dims)
		}
	}
	x, err := r.at(v, index)
	if err != nil {
		return err
	}
	for t := range x.tests {
		if t.bit || !r.still(t.form) {
			return unread("a condition about %s changes the rotation", r.text(t.form))
		}
	}
	for f := range x.leaves {
		for _, p := range f {
			for _, u := range p.of {
				if u != one && !r.turning(u) {
					return unread("the rotation is computed of %s", r.text(f))
				}
			}
		}
	}
	return nil
}

// turning reports whether a variable is a constant, or a cosine or sine or a table's row of a position.
func (r *Reader) turning(v Variable) bool {
	if v < opaque {
		return false
	}
	s := r.symbols[v-opaque]
	if s.input || s.op != "" && s.op != "Cos" && s.op != "Sin" {
		return r.still(variable(v))
	}
	return !slices.ContainsFunc(s.arg, func(f Form) bool { return !r.still(f) && !r.position(f) })
}

// still reports whether a form is of constants, heads and channels alone.
func (r *Reader) still(f Form) bool {
	return !f.reads(func(v Variable) bool {
		if v < opaque {
			return v != Head && v != Channel
		}
		s := r.symbols[v-opaque]
		return s.input || slices.ContainsFunc(s.arg, func(f Form) bool { return !r.still(f) })
	})
}

// position reports whether a form is the position of a token, times constants, and a constant. A position is what an
// input has for the token, or the token's place.
func (r *Reader) position(f Form) bool {
	variables, _ := f.rest()
	places := map[Variable][]Form{} // what each place is multiplied by
	for _, p := range variables {
		at := p.of[1]
		other := Form{{monomial{one, p.of[0]}, p.factor}}
		if p.of[0] == one {
			other = number(p.factor)
		}
		if r.still(variable(at)) {
			at, other = p.of[0], Form{{monomial{one, p.of[1]}, p.factor}}
		}
		if at == one || !r.still(other) {
			return false
		}
		places[at] = append(places[at], other)
	}
	if past, query := places[Past], places[Query]; len(places) == 2 && past != nil && slices.EqualFunc(past, query, equal) {
		return true
	}
	for v := range places {
		if v == Query && r.table.Past || v != Query && v != Key && (v < opaque || !r.given(v)) {
			return false
		}
	}
	return len(places) == 1
}

// given reports whether a variable is what an input has for the token.
func (r *Reader) given(v Variable) bool {
	s := r.symbols[v-opaque]
	last := len(s.arg) - 1
	return s.input && last >= 0 && equal(s.arg[last], variable(Query)) && !slices.ContainsFunc(s.arg[:last], func(f Form) bool { return !equal(f, variable(Row)) && !r.still(f) })
}

// Counts returns nil where a value with one element for each token is, of tokens that are no padding, their place or
// the number of such tokens up to it, plus a constant, or what an input tells.
func (r *Reader) Counts(v string) error {
	dims := r.dims[v]
	index := make([]Form, len(dims))
	place := variable(Query)
	for k, e := range dims {
		switch e {
		case dim.BatchExtent:
			index[k] = variable(Row)
		case dim.LengthExtent:
			index[k] = variable(Query)
		case dim.TotalExtent:
			index[k] = variable(Key)
			place = variable(Key)
		}
	}
	if r.table.Past && equal(place, variable(Query)) {
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
