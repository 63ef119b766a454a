package opset

import (
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// fact is what is known of a value without running anything.
type fact struct {
	element onnx.DataType // Undefined where it is not known
	ranked  bool          // that the rank is known
	axes    int           // the rank
	sized   bool          // that it is a list whose length is known
	length  int64         // of the list
	tensor  *onnx.Tensor  // of a constant
}

// ofRank is the fact of a rank.
func ofRank(rank int) fact { return fact{ranked: true, axes: rank} }

// with gives a fact an element type.
func (f fact) with(t onnx.DataType) fact {
	f.element = t
	return f
}

func ofTensor(t *onnx.Tensor) fact {
	f := ofRank(len(t.Dims)).with(t.Type)
	f.tensor = t
	if len(t.Dims) == 1 {
		f.sized, f.length = true, t.Dims[0]
	}
	return f
}

func ofValue(v *onnx.ValueInfo) fact {
	f := fact{element: v.Type}
	if v.HasShape {
		f.ranked, f.axes = true, len(v.Shape)
		if len(v.Shape) == 1 && v.Shape[0].Known() {
			f.sized, f.length = true, v.Shape[0].Value
		}
	}
	return f
}

// facts are those of a graph's values. What the graphs around it know is known in it.
type facts struct {
	known  map[string]fact
	around *facts // nil for the model's graph and for functions
}

func newFacts(around *facts) *facts { return &facts{known: map[string]fact{}, around: around} }

func (f *facts) of(value string) fact {
	for ; f != nil; f = f.around {
		if found, ok := f.known[value]; ok {
			return found
		}
	}
	return fact{}
}

// declare takes over what a graph says of its values. Only what a runtime holds a model to
// is believed: element types, and ranks of what the model is fed with. An initializer that
// is an input too may be given another content.
func (f *facts) declare(g *onnx.Graph) {
	for _, v := range slices.Concat(g.ValueInfo, g.Outputs) {
		f.known[v.Name] = fact{element: v.Type}
	}
	for _, t := range g.Initializers {
		f.known[t.Name] = ofTensor(t)
	}
	for _, v := range g.Inputs {
		if f.known[v.Name] = ofValue(v); f.around != nil { // a graph inside a node
			f.known[v.Name] = fact{element: v.Type}
		}
	}
}

// learn adds what follows for a node's outputs.
func (f *facts) learn(n *onnx.Node) {
	for i, out := range n.Outputs {
		if out == "" || !standard(n.Domain) || i > 0 && n.OpType != "Split" {
			continue
		}
		found := f.follow(n)
		if declared := f.of(out).element; declared != onnx.Undefined {
			found.element = declared
		}
		f.known[out] = found
	}
}

// Operators by what follows from their inputs for every output.
const (
	likeFirst = " Abs BatchNormalization Ceil Clip CumSum Dropout Elu Erf Exp Floor Hardmax HardSigmoid Identity LayerNormalization LeakyRelu Log LogSoftmax Neg Pad " +
		"Reciprocal Relu Round ScatterElements ScatterND Selu Sigmoid Sign Slice Softmax Softplus Split Sqrt Tanh Tile Trilu Cos Sin "
	broadcast   = " Add Div Max Mean Min Mod Mul Pow Sub Sum "
	comparisons = " And Equal Greater GreaterOrEqual Less LessOrEqual Or Xor "
)

// follow returns what is known of a node's first output.
func (f *facts) follow(n *onnx.Node) fact {
	in := func(i int) fact {
		if i >= len(n.Inputs) {
			return fact{}
		}
		return f.of(n.Inputs[i])
	}
	same := func() fact {
		of := in(0)
		return fact{element: of.element, ranked: of.ranked, axes: of.axes}
	}
	op := " " + n.OpType + " "
	switch {
	case strings.Contains(likeFirst, op):
		return same()
	case strings.Contains(broadcast, op):
		return f.widest(n.Inputs).with(in(0).element)
	case strings.Contains(comparisons, op):
		return f.widest(n.Inputs).with(onnx.Bool)
	}
	if strings.HasPrefix(n.OpType, "Reduce") && n.Int("keepdims", 1) == 1 {
		return same()
	}
	switch n.OpType {
	case "Where":
		return f.widest(n.Inputs).with(in(1).element)
	case "Not", "IsNaN", "IsInf":
		return same().with(onnx.Bool)
	case "Cast":
		return same().with(onnx.DataType(n.Int("to", 0)))
	case "Transpose":
		if perm := n.Ints("perm"); len(perm) > 0 {
			return ofRank(len(perm)).with(in(0).element)
		}
		return same()
	case "MatMul":
		if out := f.widest(n.Inputs); out.axes >= 2 && f.atLeast(n.Inputs, 2) {
			return out.with(in(0).element)
		}
		return fact{element: in(0).element}
	case "Gemm", "Flatten":
		return ofRank(2).with(in(0).element)
	case "Gather":
		data, at := in(0), in(1)
		return fact{element: data.element, ranked: data.ranked && at.ranked, axes: data.axes + at.axes - 1}
	case "Shape":
		of := ofRank(1).with(onnx.Int64)
		of.sized, of.length = in(0).ranked && len(n.Attributes) == 0, int64(in(0).axes)
		return of
	case "Range":
		return ofRank(1).with(in(0).element)
	case "ConstantOfShape":
		return fact{ranked: in(0).sized, axes: int(in(0).length)}
	case "Constant":
		if t := n.Tensor("value"); t != nil {
			return ofTensor(t)
		}
	case "Concat":
		return f.joined(n, same())
	case "Unsqueeze", "Squeeze":
		return f.moreOrLess(n, same())
	case "Reshape":
		of := fact{element: in(0).element, ranked: in(1).sized, axes: int(in(1).length)}
		of.sized, of.length = of.ranked && of.axes == 1 && in(0).sized, in(0).length
		return of
	case "Expand":
		out := ofRank(max(in(0).axes, int(in(1).length))).with(in(0).element)
		out.ranked = in(0).ranked && in(1).sized
		return out
	}
	return fact{}
}

// widest is the rank that values have when they are broadcast. A list of several elements
// keeps their number.
func (f *facts) widest(values []string) fact {
	out := ofRank(0)
	for _, v := range values {
		of := f.of(v)
		out.ranked = out.ranked && of.ranked
		out.axes = max(out.axes, of.axes)
		if of.sized && of.length > 1 {
			out.sized, out.length = true, of.length
		}
	}
	out.sized = out.sized && out.ranked && out.axes == 1
	return out
}

func (f *facts) atLeast(values []string, rank int) bool {
	return !slices.ContainsFunc(values, func(v string) bool { return f.of(v).axes < rank })
}

// joined is the fact of a Concat: lists make a list.
func (f *facts) joined(n *onnx.Node, out fact) fact {
	if !out.ranked || out.axes != 1 {
		return out
	}
	out.sized = true
	for _, v := range n.Inputs {
		of := f.of(v)
		out.sized = out.sized && of.sized
		out.length += of.length
	}
	return out
}

// moreOrLess is the fact of an Unsqueeze or a Squeeze.
func (f *facts) moreOrLess(n *onnx.Node, out fact) fact {
	count := int64(len(n.Ints("axes")))
	if count == 0 && len(n.Inputs) > 1 {
		count = f.of(n.Inputs[1]).length
	}
	if count == 0 || !out.ranked {
		return fact{element: out.element}
	}
	if n.OpType == "Squeeze" {
		out.axes -= int(count)
		return out
	}
	out.axes += int(count)
	out.sized, out.length = out.axes == 1, 1
	return out
}
