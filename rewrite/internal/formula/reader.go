package formula

import (
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Unread says why a piece is not understood as a formula.
type Unread struct{ Why string }

func (e Unread) Error() string { return e.Why }

func unread(format string, args ...any) error { return Unread{fmt.Sprintf(format, args...)} }

// not says that a node is not understood, as it is used.
func (r *Reader) not(n *onnx.Node) error { return unread("%s is not understood", ir.Label(n)) }

// Reader reads elements of the values of a piece as terms. It is used by one goroutine.
type Reader struct {
	piece   *eval.Piece
	table   *eval.ShapeTable
	dims    map[string][]dim.Extent // shapes of the piece's values (eval.Evaluator.Dims)
	scores  string                  // the boundary that scores are fed to; "" for none
	padding string                  // the input that is the padding mask; "" for none

	memo    map[string]*term
	symbols []symbol // of the variables from opaque on
	named   map[string]Variable
	terms   int
	heads   int64 // of the scores

	sized, sums, turned              answers[error]
	constants, repeats, trigonometry answers[bool]
	numbers                          answers[counted]
}

// answers keeps what a question about a value was answered: a value may be read by many, and each of these by many, so
// that a walk over all paths would never end.
type answers[T any] map[string]T

// of asks about a value once. While that goes on, the answer is meanwhile.
func (a answers[T]) of(v string, meanwhile T, ask func(string) T) T {
	x, known := a[v]
	if !known {
		a[v] = meanwhile
		x = ask(v)
		a[v] = x
	}
	return x
}

// symbol is a number that is not looked into: an element of a constant or an input, or how many tokens there are.
type symbol struct {
	value string // the value that it is an element of; "" for others
	op    string // the op that it is made by; "" for others
	arg   []Form // the index in the value, or what the op is given
	input bool   // the value is fed
}

func (s symbol) String() string { return short.Name(s.value + s.op) }

// Reads reports whether the sizes of a model are those of a growing row: all are open, or a call has one token behind
// those that are cached.
func Reads(t *eval.ShapeTable) bool {
	return !t.Slotted() && (t.Static == (dim.Point{}) || single(t))
}

// single reports whether a call has one token and the cache grows. Its length and its place in the call are constants then.
func single(t *eval.ShapeTable) bool { return t.Past && t.Static == (dim.Point{L: 1}) }

// query is the place of a query in its call.
func (r *Reader) query() Form {
	if single(r.table) {
		return nil
	}
	return variable(Query)
}

// NewReader returns a reader of a piece. dims are the shapes of its values; scores is the boundary that scores are fed to,
// and padding the input that is the padding mask, "" for none.
func NewReader(p *eval.Piece, t *eval.ShapeTable, dims map[string][]dim.Extent, scores, padding string) *Reader {
	return &Reader{piece: p, table: t, dims: dims, scores: scores, padding: padding,
		memo: map[string]*term{}, named: map[string]Variable{},
		sized: answers[error]{}, sums: answers[error]{}, turned: answers[error]{},
		constants: answers[bool]{}, repeats: answers[bool]{}, trigonometry: answers[bool]{}, numbers: answers[counted]{}}
}

// at returns the element of a value at an index.
func (r *Reader) at(v string, index []Form) (*term, error) {
	key := fmt.Sprint(v, index)
	if x := r.memo[key]; x != nil {
		return x, nil
	}
	x, err := r.element(v, index)
	if err == nil {
		r.memo[key] = x
	}
	return x, err
}

func (r *Reader) element(v string, index []Form) (*term, error) {
	g := r.piece.Graph
	n := g.Producer[v]
	dims, known := r.shape(v)
	switch {
	case known && len(dims) != len(index):
		return nil, unread("%q has the shape %v", short.Name(v), dims)
	case v == r.scores: // of zero
		if k := len(index); k < 3 || !equal(index[k-2], r.query()) || !equal(index[k-1], variable(Key)) {
			return nil, unread("scores are read at another place")
		}
		return no, nil
	case g.Constants[v] != nil:
		return r.constant(g.Constants[v], v, index)
	case v == r.padding:
		if dims[0] != unit && !equal(index[0], variable(Row)) || !r.within(index[1], dims[1]) {
			return nil, unread("the padding mask is read at another place than a key's or a query's")
		}
		return choice(test{form: index[1], bit: true}, yes, no), nil
	case n == nil, slices.Contains(r.piece.Boundaries, v), slices.ContainsFunc(r.piece.Typed, func(t *onnx.ValueInfo) bool { return t.Name == v }):
		return r.symbol(symbol{value: v, arg: index, input: true}), nil
	case ir.Standard(n, "Shape", "Size"):
		return r.size(n, v, index)
	case g.IsData(v) && r.lessMost(n):
		return r.at(n.Inputs[0], index)
	case g.IsData(v) && !r.linear(n):
		return nil, unread("scores reach %s", ir.Label(n))
	}
	x, err := r.op(n, v, index)
	if err != nil && r.settled(v) && !slices.ContainsFunc(index, func(f Form) bool { return !r.still(f) }) {
		return r.symbol(symbol{value: v, arg: index}), nil
	}
	return x, err
}

// symbol returns a symbol: the same variable each time.
func (r *Reader) symbol(s symbol) *term {
	key := fmt.Sprint(s.input, s.op, " ", s.value, s.arg)
	v, ok := r.named[key]
	if !ok {
		v = opaque + Variable(len(r.symbols))
		r.symbols, r.named[key] = append(r.symbols, s), v
	}
	return leaf(variable(v))
}

// constant is an element of a constant. One of a table that is looked up stays a symbol.
func (r *Reader) constant(t *onnx.Tensor, v string, index []Form) (*term, error) {
	list, err := t.Float64s()
	if err != nil || len(list) == 0 {
		return nil, unread("%q cannot be read", short.Name(v))
	}
	at, fixed := int64(0), true
	for k, f := range index {
		x, ok := f.constant()
		fixed = fixed && ok
		at = at*t.Dims[k] + int64(x)
	}
	switch {
	case fixed && at >= 0 && at < int64(len(list)):
		return leaf(number(list[at])), nil
	case !slices.ContainsFunc(list, func(x float64) bool { return x != list[0] }):
		return leaf(number(list[0])), nil
	}
	return r.symbol(symbol{value: v, arg: index}), nil
}

// lessMost reports whether a node takes the largest number of a row of scores from all of them, which a softmax ignores.
func (r *Reader) lessMost(n *onnx.Node) bool {
	if !ir.Standard(n, "Sub") {
		return false
	}
	most := r.piece.Graph.Producer[n.Inputs[1]]
	return ir.Standard(most, "ReduceMax") && most.Inputs[0] == n.Inputs[0] && r.piece.Graph.OverLast(most, len(r.dims[n.Inputs[0]]))
}

// linear reports whether a node decides nothing by scores, and weighs them by constants alone.
func (r *Reader) linear(n *onnx.Node) bool {
	data := slices.DeleteFunc(slices.Clone(n.Inputs), func(v string) bool { return !r.piece.Graph.IsData(v) })
	switch {
	case r.scores == "":
		return false
	case ir.Standard(n, "Identity", "Cast", "Reshape", "Transpose", "Unsqueeze", "Squeeze", "Expand", "Concat", "Tanh"):
		return true
	case ir.Standard(n, "Mul", "Div") && !slices.ContainsFunc(n.Inputs, func(v string) bool { return v != data[0] && r.settled(v) }):
		return false
	case ir.Standard(n, "Where"):
		return len(data) == 1 && data[0] != n.Inputs[0]
	case ir.Standard(n, "Sub", "Div"):
		return len(data) == 1 && data[0] == n.Inputs[0]
	}
	return ir.Standard(n, "Add", "Mul") && len(data) == 1
}

// size is an element of what a Shape or Size node gives.
func (r *Reader) size(n *onnx.Node, v string, index []Form) (*term, error) {
	x, fixed := Form(slices.Concat(index...)).constant()
	extents := r.table.Sizes[v]
	if !fixed || x < 0 || int(x) >= len(extents) {
		return nil, unread("the size %q is not known", short.Name(v))
	}
	f, ok := extent(extents[int(x)])
	if !ok {
		return nil, unread("the size %q depends on another text", short.Name(v))
	}
	return leaf(f), r.Follows(n.Inputs[0])
}

// shape returns the shape of a value, as it follows from batch, length and past.
func (r *Reader) shape(v string) ([]dim.Extent, bool) {
	dims, ok := r.dims[v]
	if t := r.piece.Graph.Constants[v]; t != nil && !ok {
		for ok = true; len(dims) < len(t.Dims); {
			dims = append(dims, dim.ConstantExtent(t.Dims[len(dims)]))
		}
	}
	return dims, ok
}

// operand is an element of an input of a node that works element by element, with broadcasting.
func (r *Reader) operand(v string, out []dim.Extent, index []Form) (*term, error) {
	dims, ok := r.shape(v)
	skip := len(index) - len(dims)
	if !ok || skip < 0 || len(out) != len(index) {
		return nil, unread("the shape of %q is not known", short.Name(v))
	}
	own := slices.Clone(index[skip:])
	for k, e := range dims {
		switch {
		case e == unit:
			own[k] = nil
		case e != out[skip+k]:
			return nil, unread("%q, of the shape %v, is used as one of %v", short.Name(v), dims, out)
		}
	}
	return r.at(v, own)
}

// argument returns a number or a list of numbers that tells a node how to shape something. No condition decides it.
func (r *Reader) argument(v string) (list []Form, err error) {
	dims, ok := r.shape(v)
	index := make([]Form, len(dims))
	if !ok || len(dims) > 1 || len(dims) == 1 && !dims[0].Constant() {
		return nil, unread("the argument %q is no list of known length", short.Name(v))
	}
	for k := range append(dims, unit)[0].One {
		if len(dims) > 0 {
			index = []Form{number(float64(k))}
		}
		x, err := r.at(v, index)
		if err != nil {
			return nil, err
		}
		if x.test != nil || x.leaf.reads(func(v Variable) bool { return v > Past }) {
			return nil, unread("the argument %q is chosen by a condition", short.Name(v))
		}
		list = append(list, x.leaf)
	}
	return list, nil
}

// within reports whether an index is certainly one of a dimension.
func (r *Reader) within(f Form, e dim.Extent) bool {
	d, ok := extent(e)
	if x, constant := f.constant(); !ok || constant {
		return ok && x >= 0 && (x == 0 || e.Constant() && x < float64(e.One))
	}
	if row := (dim.Extent{L: e.BL, P: e.BP}); row != (dim.Extent{}) && e == (dim.Extent{BL: e.BL, BP: e.BP}) { // rows one behind the other
		size, _ := extent(row)
		quotient, rest := f.divided(size)
		return equal(quotient, variable(Row)) && r.within(rest, row)
	}
	total, _ := extent(r.table.WithStatic(eval.TotalOf(r.table)))
	for _, place := range []struct{ index, below Form }{
		{variable(Head), number(float64(r.heads))}, {variable(Row), variable(Batch)}, {r.query(), variable(Length)},
		{r.query().plus(variable(Past), 1), total}, {variable(Key), total},
	} {
		if equal(f, place.index) && equal(d, place.below) {
			return true
		}
	}
	return false
}

// sound refuses what the runtime may compute otherwise: numbers that are none, places, sizes and constants that it may
// round, and integers beyond those that a type has.
func (r *Reader) sound(f Form, v string) (*term, error) {
	x, constant := f.constant()
	t := r.piece.Graph.Element(v)
	switch integer := !ir.IsFloat(t); {
	case slices.ContainsFunc(f, func(p part) bool { return math.IsNaN(p.factor) || math.IsInf(p.factor, 0) && !constant }):
		return nil, unread("a number of %q is not finite", short.Name(v))
	case r.scores == "", !constant && r.weighs(f):
	case constant && integer && (math.Abs(x) > math.MaxInt32 || x < 0 && t != onnx.Int64 && t != onnx.Int32),
		constant && x != math.Trunc(x) && !math.IsInf(x, 0), !constant && !f.exact(integer):
		return nil, unread("%q may be rounded or wrap", short.Name(v))
	}
	return leaf(f), nil
}

// weighs reports whether every part of a form is a constant or has a factor that is not looked into: it is added to
// scores, and no question is about it.
func (r *Reader) weighs(f Form) bool {
	return !slices.ContainsFunc(f, func(p part) bool { return p.of != monomial{} && p.of[1] < opaque })
}
