package formula

import (
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// The shape table knows sizes from a few calls. They are the same sums of batch, length and past in every call where
// no node on the way from the inputs shapes anything by a condition. These lists say which nodes do not.
var (
	// shaped gives a shape that follows from those of the inputs and from attributes.
	shaped = slices.Concat(eval.Elementwise, []string{"CastLike", "Constant", "Transpose", "Concat", "Gather", "GatherND", "GatherElements", "Shape", "Size", "MatMul", "Gemm",
		"Einsum", "Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization", "Cos", "Sin", "Erf", "Gelu", "Swish", "Trilu", "CumSum",
		"Flatten", "Attention", "RotaryEmbedding",
		"DynamicQuantizeLinear", "DequantizeLinear", "QuantizeLinear", "MatMulInteger", "QLinearMatMul", "ScatterND", "ScatterElements"})
	// told has inputs behind the first that tell the shape.
	told = []string{"Reshape", "Expand", "ConstantOfShape", "Tile", "TopK", "Unsqueeze", "Squeeze",
		"ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum"}
	// fused are those of com.microsoft.
	fused = []string{"MatMulNBits", "FusedMatMul", "BiasGelu", "FastGelu", "QuickGelu", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization",
		"SimplifiedLayerNormalization", "RotaryEmbedding", "GroupQueryAttention", "MultiHeadAttention", "Attention", "DynamicQuantizeMatMul", "MatMulIntegerToFloat"}
	// sums are the nodes between sizes and an argument that tells a shape.
	sums = []string{"Identity", "Cast", "Gather", "Unsqueeze", "Squeeze", "Concat", "Reshape", "Slice", "Add", "Mul"}
)

// Follows refuses a value whose shape may hang on a condition.
func (r *Reader) Follows(v string) error { return r.sized.of(v, nil, r.follow) }

func (r *Reader) follow(v string) error {
	g := r.piece.Graph
	n := g.Producer[v]
	if n == nil || g.Classes[v] == graph.ConstantClass {
		return nil
	}
	inputs := n.Inputs
	switch {
	case ir.Standard(n, "Split"):
		inputs = n.Inputs[:1]
		if len(n.Inputs) > 1 && g.Classes[n.Inputs[1]] != graph.ConstantClass {
			return unread("the size of %q is chosen at %s", short.Name(v), ir.Label(n))
		}
	case ir.Standard(n, "Slice"):
		if inputs = n.Inputs[:1]; !r.cuts(n) {
			return unread("%s cuts tokens off", ir.Label(n))
		}
	case ir.Standard(n, "Range"):
		inputs = nil
		first, ok := r.count(n.Inputs[0])
		end, known := r.count(n.Inputs[1])
		if tokens := end.plus(first, -1); !ok || !known || !slices.Equal(g.Integers(n.Inputs[2]), []int64{1}) || !tokens.rises() {
			return unread("%s may have no elements", ir.Label(n))
		}
	case ir.Standard(n, told...):
		arguments := n.Inputs[1:]
		if inputs = n.Inputs[:1]; ir.Standard(n, "ConstantOfShape") {
			inputs, arguments = nil, n.Inputs
		}
		for _, a := range arguments {
			if err := r.sum(a); err != nil {
				return err
			}
		}
	case ir.Standard(n, shaped...), n.Domain == "com.microsoft" && slices.Contains(fused, n.OpType), n.Domain == "" && slices.Contains(fused, n.OpType):
	default:
		return unread("%s is not known to keep sizes", ir.Label(n))
	}
	for _, in := range inputs {
		if err := r.Follows(in); in != "" && err != nil {
			return err
		}
	}
	return nil
}

// counted is a number as a form of sizes, where it is known as one.
type counted struct {
	form  Form
	known bool
}

// count returns a number as a form of sizes.
func (r *Reader) count(v string) (Form, bool) {
	x := r.numbers.of(v, counted{}, r.counting)
	return x.form, x.known
}

func (r *Reader) counting(v string) (x counted) {
	g := r.piece.Graph
	if !integers(g.Element(v)) {
		return counted{}
	}
	if list := g.Integers(v); len(list) == 1 {
		return counted{number(float64(list[0])), true}
	}
	if list, ok := r.sizes(v); ok && len(list) == 1 {
		x.form, x.known = extent(list[0])
		return x
	}
	n := g.Producer[v]
	switch {
	case ir.Standard(n, "Identity", "Cast", "Squeeze", "Unsqueeze", "Reshape"):
		x.form, x.known = r.count(n.Inputs[0])
	case ir.Standard(n, "Add", "Sub", "Mul"):
		a, ok := r.count(n.Inputs[0])
		b, known := r.count(n.Inputs[1])
		switch n.OpType {
		case "Add":
			x.form = a.plus(b, 1)
		case "Sub":
			x.form = a.plus(b, -1)
		case "Mul":
			var product bool
			x.form, product = a.times(b)
			ok = ok && product && g.Element(v) == onnx.Int64 // a batch of long rows may have 2³¹ tokens
		}
		wraps := slices.ContainsFunc(x.form, func(p part) bool { return math.Abs(p.factor) > math.MaxInt32 })
		x.known = ok && known && !wraps
	}
	return x
}

// integers reports whether a type has every size.
func integers(t onnx.DataType) bool { return t == onnx.Int64 || t == onnx.Int32 }

// counts reports whether a constant is certainly not below 0: sums with others may be, and then mean something else.
func (r *Reader) counts(v string) bool {
	if _, ok := r.sizes(v); ok {
		return true
	}
	list := r.piece.Graph.Integers(v)
	return len(list) > 0 && slices.Min(list) >= 0 && slices.Max(list) <= math.MaxInt32
}

// cuts reports whether a Slice takes a part that there is in every call: what begins or ends beyond a dimension would be
// cut to it, and shorter calls be other ones.
func (r *Reader) cuts(n *onnx.Node) bool {
	g := r.piece.Graph
	dims, ok := r.shape(n.Inputs[0])
	if !ok {
		dims, ok = r.table.Dims[n.Inputs[0]]
	}
	if !ok || len(n.Inputs) < 4 || g.Integers(n.Inputs[3]) == nil || len(n.Inputs) > 4 && !r.settled(n.Inputs[4]) {
		return false
	}
	for k, at := range axes(g.Integers(n.Inputs[3]), len(dims)) {
		if at < 0 || at >= len(dims) {
			return false
		}
		whole, _ := extent(dims[at])
		end := func(v string) (f Form, ok bool) {
			if list := g.Integers(v); list != nil {
				f, ok = number(float64(list[k])), true
			} else if k == 0 {
				f, ok = r.count(v)
			}
			if x, constant := f.constant(); constant && x < 0 {
				f = f.plus(whole, 1)
			} else if constant && x >= math.MaxInt32 {
				f = whole
			}
			return f, ok
		}
		first, known := end(n.Inputs[1])
		last, ok := end(n.Inputs[2])
		within := known && ok && first.rises() && last.plus(first, -1).rises() && whole.plus(last, -1).rises()
		if !within && (!dims[at].Constant() || !r.settled(n.Inputs[1]) || !r.settled(n.Inputs[2])) {
			return false
		}
	}
	return true
}

// rises reports whether a form of sizes is certainly not below 0.
func (f Form) rises() bool {
	return !slices.ContainsFunc(f, func(p part) bool { return p.factor < 0 })
}

// sum refuses an argument that is more than a sum of sizes with constant factors.
func (r *Reader) sum(v string) error { return r.sums.of(v, nil, r.adds) }

func (r *Reader) adds(v string) error {
	g := r.piece.Graph
	n := g.Producer[v]
	f, counted := r.count(v)
	switch {
	case r.settled(v), counted && f.rises():
		return nil
	case n == nil:
		return unread("the input %q tells a size", short.Name(v))
	case ir.Standard(n, "Shape", "Size"):
		return r.Follows(n.Inputs[0])
	case ir.Standard(n, "Where") && r.never(g.Producer[n.Inputs[0]]): // as torch writes Expand
		return r.sum(n.Inputs[2])
	case !integers(g.Element(v)), !ir.Standard(n, sums...), ir.Standard(n, "Mul") && !r.settled(n.Inputs[0]) && !r.settled(n.Inputs[1]),
		ir.Standard(n, "Add", "Mul") && slices.ContainsFunc(n.Inputs, func(v string) bool { return r.settled(v) && !r.counts(v) }):
		return unread("a size is computed at %s", ir.Label(n))
	}
	for _, in := range n.Inputs {
		if err := r.sum(in); err != nil {
			return err
		}
	}
	return nil
}

// settled reports whether a value is certainly a constant: it is computed from constants and sizes that are constants.
func (r *Reader) settled(v string) bool { return r.constants.of(v, false, r.settle) }

func (r *Reader) settle(v string) bool {
	g := r.piece.Graph
	n := g.Producer[v]
	switch {
	case v == "" || g.Classes[v] == graph.ConstantClass:
		return true
	case n == nil || g.Classes[v] != graph.ShapeClass:
		return false
	}
	if sizes, ok := r.sizes(v); ok {
		return !slices.ContainsFunc(sizes, func(e dim.Extent) bool { return !e.Constant() })
	}
	own := 0 // inputs that are not those of a graph within the node
	for _, in := range n.Inputs {
		if in != "" {
			own++
		}
		if !r.settled(in) {
			return false
		}
	}
	return own == len(slices.Collect(ir.Uses(n)))
}

// sizes returns the sizes that a value lists, where it is an excerpt of what a Shape node gives.
func (r *Reader) sizes(v string) (list []dim.Extent, ok bool) {
	g := r.piece.Graph
	n := g.Producer[v]
	if n == nil {
		return nil, false
	}
	switch n.OpType {
	case "Shape", "Size":
		list, ok = r.table.Sizes[v]
		return list, ok && r.Follows(n.Inputs[0]) == nil
	case "Identity", "Cast", "Squeeze", "Unsqueeze":
		if !integers(g.Element(v)) {
			return nil, false
		}
		return r.sizes(n.Inputs[0])
	case "Gather", "Slice":
		if list, ok = r.sizes(n.Inputs[0]); !ok {
			return nil, false
		}
	default:
		return nil, false
	}
	places := g.Integers(n.Inputs[1])
	if n.OpType == "Slice" {
		first, end := axes(places, len(list)), g.Integers(n.Inputs[2])
		if len(first) != 1 || len(end) != 1 || len(n.Inputs) > 4 && !slices.Equal(g.Integers(n.Inputs[4]), []int64{1}) {
			return nil, false
		}
		places = nil
		for at := int64(max(first[0], 0)); at < min(int64(axes(end, len(list))[0]), int64(len(list))); at++ {
			places = append(places, at)
		}
	}
	var chosen []dim.Extent
	for _, at := range axes(places, len(list)) {
		if at < 0 || at >= len(list) {
			return nil, false
		}
		chosen = append(chosen, list[at])
	}
	return chosen, len(chosen) > 0
}

// never reports whether a node asks whether sizes are −1.
func (r *Reader) never(n *onnx.Node) bool {
	if !ir.Standard(n, "Equal") {
		return false
	}
	g := r.piece.Graph
	if r.sum(n.Inputs[0]) != nil {
		return false
	}
	m := g.Producer[n.Inputs[1]]
	ones := func(v string) bool {
		made := g.Producer[v]
		if !ir.Standard(made, "ConstantOfShape") || made.Attribute("value") == nil || made.Attribute("value").Tensor == nil {
			return false
		}
		x, err := made.Attribute("value").Tensor.Int64s()
		return err == nil && slices.Equal(x, []int64{1})
	}
	if list := g.Integers(n.Inputs[1]); len(list) > 0 {
		return !slices.ContainsFunc(list, func(x int64) bool { return x >= 0 })
	}
	return ir.Standard(m, "Mul") && ones(m.Inputs[0]) && slices.Equal(g.Integers(m.Inputs[1]), []int64{-1})
}
