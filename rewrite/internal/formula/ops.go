package formula

import (
	"math"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// op reads what a node gives. The ops below and those of places.go are all that are understood.
func (r *Reader) op(n *onnx.Node, v string, index []Form) (*term, error) {
	out, known := r.dims[v]
	switch {
	case !ir.Standard(n, n.OpType) || len(n.Outputs) != 1 || !known:
		return nil, r.not(n)
	case ir.Standard(n, places...):
		return r.place(n, index)
	}
	var in []*term
	for _, v := range n.Inputs {
		x, err := r.operand(v, out, index)
		if err != nil {
			return nil, err
		}
		in = append(in, x)
	}
	one := func(of func(f Form) (*term, error)) (*term, error) { return r.each(in[0], of) }
	two := func(of func(f, g Form) (*term, error)) (*term, error) { return r.both(in[0], in[1], of) }
	switch n.OpType {
	case "Identity":
		return in[0], nil
	case "Cast", "CastLike":
		return one(func(f Form) (*term, error) { return r.cast(f, r.piece.Graph.Element(v)) })
	case "Neg":
		return one(func(f Form) (*term, error) { return leaf(Form(nil).plus(f, -1)), nil })
	case "Abs":
		return one(func(f Form) (*term, error) { return r.chosen(asks(f, false), leaf(Form(nil).plus(f, -1)), leaf(f)) })
	case "Not":
		return r.chosen(in[0], no, yes)
	case "And":
		return r.chosen(in[0], in[1], no)
	case "Or":
		return r.chosen(in[0], yes, in[1])
	case "Xor":
		return two(func(f, g Form) (*term, error) { return truth(len(f) != len(g)), nil })
	case "Where":
		return r.chosen(in[0], in[1], in[2])
	case "Equal":
		return two(func(f, g Form) (*term, error) { return differ(f, g, true) })
	case "LessOrEqual":
		return two(func(f, g Form) (*term, error) { return differ(f, g, false) })
	case "GreaterOrEqual":
		return two(func(f, g Form) (*term, error) { return differ(g, f, false) })
	case "Less": // not the opposite
		x, err := two(func(f, g Form) (*term, error) { return differ(g, f, false) })
		if err != nil {
			return nil, err
		}
		return r.chosen(x, no, yes)
	case "Greater":
		x, err := two(func(f, g Form) (*term, error) { return differ(f, g, false) })
		if err != nil {
			return nil, err
		}
		return r.chosen(x, no, yes)
	case "Min", "Max":
		x, err := in[0], error(nil)
		for _, y := range in[1:] {
			if x, err = r.extreme(x, y, n.OpType == "Min"); err != nil {
				return nil, err
			}
		}
		return x, nil
	case "Add":
		return two(func(f, g Form) (*term, error) { return r.kept(f.plus(g, 1), v, f, g) })
	case "Sub":
		return two(func(f, g Form) (*term, error) { return r.kept(f.plus(g, -1), v, f, g) })
	case "Mul":
		return two(func(f, g Form) (*term, error) { return r.product(f, g, n) })
	case "Div":
		return two(func(f, g Form) (*term, error) {
			x, constant := g.constant()
			y, both := f.constant()
			switch integer := !ir.IsFloat(r.piece.Graph.Element(v)); {
			case !constant || x == 0 || integer && (!both || x < 0 || y < 0):
				return nil, r.not(n)
			case integer:
				return leaf(number(math.Floor(y / x))), nil
			}
			return r.kept(Form(nil).plus(f, 1/x), v, f)
		})
	case "Tanh": // of scores of zero
		return one(func(f Form) (*term, error) {
			if len(f) > 0 {
				return nil, r.not(n)
			}
			return no, nil
		})
	}
	return nil, r.not(n)
}

func (r *Reader) product(f, g Form, n *onnx.Node) (*term, error) {
	h, ok := f.times(g)
	if !ok {
		return nil, r.not(n)
	}
	return r.sound(h, n.Outputs[0])
}

// kept is a sum that every symbol of its parts is still in: one that cancels out may be so large that the rest is rounded.
func (r *Reader) kept(sum Form, v string, parts ...Form) (*term, error) {
	for _, f := range parts {
		if f.reads(func(s Variable) bool { return s >= opaque && !sum.reads(func(u Variable) bool { return u == s }) }) {
			return nil, unread("%q may be rounded", short.Name(v))
		}
	}
	return r.sound(sum, v)
}

// chosen is yes where a condition holds, no where it does not.
func (r *Reader) chosen(condition, yes, no *term) (*term, error) {
	return r.each(condition, func(f Form) (*term, error) {
		if len(f) > 0 {
			return yes, nil
		}
		return no, nil
	})
}

// extreme is the smaller of two numbers, or the larger one.
func (r *Reader) extreme(x, y *term, smaller bool) (*term, error) {
	return r.both(x, y, func(f, g Form) (*term, error) {
		below, err := differ(f, g, false)
		if err != nil {
			return nil, err
		}
		if smaller {
			return r.chosen(below, leaf(f), leaf(g))
		}
		return r.chosen(below, leaf(g), leaf(f))
	})
}

// differ asks whether f is at most g, or equal to it.
func differ(f, g Form, equal bool) (*term, error) {
	d := f.plus(g, -1)
	if _, constant := d.rest(); math.IsNaN(constant) {
		return nil, unread("infinities are compared")
	}
	return asks(d, equal), nil
}

// asks asks whether f is 0, or at most 0. Sizes and places are not below 0, which answers some questions.
func asks(f Form, equal bool) *term {
	variables, constant := f.rest()
	least, largest := constant, constant // as far as signs tell
	for _, p := range variables {
		known := !Form{p}.reads(func(v Variable) bool { return v >= opaque })
		if p.factor > 0 || !known {
			largest = math.Inf(1)
		}
		if p.factor < 0 || !known {
			least = math.Inf(-1)
		}
	}
	switch {
	case least > 0, equal && largest < 0:
		return no
	case !equal && largest <= 0, equal && least == 0 && largest == 0:
		return yes
	}
	return choice(test{form: f, equal: equal}, yes, no)
}

// cast is a number in another type, as far as that holds it exactly.
func (r *Reader) cast(f Form, to onnx.DataType) (*term, error) {
	x, constant := f.constant()
	integer := to == onnx.Int64 || to == onnx.Int32
	switch {
	case to == onnx.Bool:
		return r.chosen(asks(f, true), no, yes)
	case constant && (to == onnx.Float || ir.Is16Bit(to)):
		rounded := []float32{float32(x)}
		ir.Round(rounded, to)
		return leaf(number(float64(rounded[0]))), nil
	case to == onnx.Float, to == onnx.Double, ir.Is16Bit(to) && r.weighs(f), integer && !constant && f.exact(true), to == onnx.Int64 && x == math.Trunc(x) && constant:
		return leaf(f), nil
	case integer && constant && math.Abs(x) < math.MaxInt32:
		return leaf(number(math.Trunc(x))), nil
	}
	return nil, unread("a number is cast to %v", to)
}
