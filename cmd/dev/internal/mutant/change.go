package mutant

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/x448/float16"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// alike are groups of ops that take the same inputs and give the same types.
var alike = [][]string{
	{"Add", "Sub", "Mul", "Div", "Max", "Min"},
	{"And", "Or", "Xor"},
	{"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"},
	{"Sin", "Cos", "Neg", "Abs", "Sqrt", "Tanh", "Sigmoid", "Reciprocal", "Identity"},
	{"Not", "Identity"},
	{"ReduceMean", "ReduceMax", "ReduceSum"},
}

// mostChanged is the number of elements up to which a constant is changed: larger
// ones are weights.
const mostChanged = 4096

// kinds are the ways of changing one place. Each says what it did, "" if nothing.
var kinds = []func(*onnx.Model, *rand.Rand) string{
	changeOp, changeInput, changeInput, swapInputs, skipNode, changeConstant, changeConstant, changeAttribute,
	changeConstantOfOne, changeInputOfOne, addReader, roundThrough,
}

// Change changes one place of a model, in some models two or three, and says which; false
// when it found none that can be changed.
func Change(m *onnx.Model, rng *rand.Rand) (string, bool) {
	places := []int{1, 1, 1, 1, 2, 3}[rng.IntN(6)]
	var done []string
	for range 100 {
		if what := pick(rng, kinds)(m, rng); what != "" {
			if done = append(done, what); len(done) == places {
				break
			}
		}
	}
	return strings.Join(done, "; "), len(done) > 0
}

func pick[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }

func name(n *onnx.Node) string { return fmt.Sprintf("%s (%s)", n.Name, n.OpType) }

func changeOp(m *onnx.Model, rng *rand.Rand) string {
	n := pick(rng, m.Graph.Nodes)
	for _, group := range alike {
		if n.Domain == "" && slices.Contains(group, n.OpType) {
			old := name(n)
			for was := n.OpType; n.OpType == was; {
				n.OpType = pick(rng, group)
			}
			return fmt.Sprintf("%s: %s in its place", old, n.OpType)
		}
	}
	return ""
}

// changeInput gives a node another value than one of its inputs, one that is made
// before it or a graph's input.
func changeInput(m *onnx.Model, rng *rand.Rand) string {
	at := rng.IntN(len(m.Graph.Nodes))
	n := m.Graph.Nodes[at]
	var values []string
	for _, v := range m.Graph.Inputs {
		values = append(values, v.Name)
	}
	// Near values are more often of a type and shape that fits.
	for _, before := range m.Graph.Nodes[max(0, at-40):at] {
		values = append(values, before.Outputs...)
	}
	values = slices.DeleteFunc(values, func(v string) bool { return v == "" || slices.Contains(n.Inputs, v) })
	if len(n.Inputs) == 0 || len(values) == 0 {
		return ""
	}
	i := rng.IntN(len(n.Inputs))
	was := n.Inputs[i]
	n.Inputs[i] = pick(rng, values)
	return fmt.Sprintf("%s: input %d is %q in place of %q", name(n), i, n.Inputs[i], was)
}

func swapInputs(m *onnx.Model, rng *rand.Rand) string {
	n := pick(rng, m.Graph.Nodes)
	if len(n.Inputs) < 2 {
		return ""
	}
	i := rng.IntN(len(n.Inputs) - 1)
	if n.Inputs[i] == n.Inputs[i+1] {
		return ""
	}
	n.Inputs[i], n.Inputs[i+1] = n.Inputs[i+1], n.Inputs[i]
	return fmt.Sprintf("%s: inputs %d and %d change places", name(n), i, i+1)
}

// skipNode gives who reads a node's output the node's first input.
func skipNode(m *onnx.Model, rng *rand.Rand) string {
	n := pick(rng, m.Graph.Nodes)
	if len(n.Inputs) == 0 || n.Inputs[0] == "" || len(n.Outputs) != 1 {
		return ""
	}
	if !redirect(m, n.Outputs[0], n.Inputs[0]) {
		return ""
	}
	return name(n) + ": skipped"
}

func changeConstant(m *onnx.Model, rng *rand.Rand) string {
	list := slices.Clone(m.Graph.Initializers)
	for _, n := range m.Graph.Nodes {
		if t := n.Tensor("value"); n.OpType == "Constant" && t != nil {
			list = append(list, t)
		}
	}
	if len(list) == 0 {
		return ""
	}
	t := pick(rng, list)
	changed, what := changedTensor(t, t.Name, rng)
	if changed == nil {
		return ""
	}
	put(m, t, changed)
	return what
}

// changedTensor is a tensor with one element or all of them changed; nil if it cannot be.
func changedTensor(t *onnx.Tensor, called string, rng *rand.Rand) (*onnx.Tensor, string) {
	raw, err := t.Bytes()
	if err != nil || t.Len() == 0 || t.Len() > mostChanged {
		return nil, ""
	}
	changed := slices.Clone(raw)
	size := t.Type.Size()
	from, to := 0, int(t.Len())
	if rng.IntN(2) == 0 { // one element
		from = rng.IntN(to)
		to = from + 1
	}
	kind := rng.IntN(4)
	for i := from; i < to; i++ {
		if !changeElement(changed[i*size:(i+1)*size], t.Type, kind) {
			return nil, ""
		}
	}
	if slices.Equal(raw, changed) {
		return nil, ""
	}
	return onnx.NewTensor(called, t.Type, t.Dims, changed), fmt.Sprintf("constant %q %v %v: elements %d to %d, change %d", t.Name, t.Type, t.Dims, from, to-1, kind)
}

// put replaces a constant of the model.
func put(m *onnx.Model, old, t *onnx.Tensor) {
	for i, each := range m.Graph.Initializers {
		if each == old {
			m.Graph.Initializers[i] = t
		}
	}
	for _, n := range m.Graph.Nodes {
		if n.OpType == "Constant" && n.Tensor("value") == old {
			n.SetAttribute(onnx.TensorAttr("value", t))
		}
	}
}

// changeElement changes one element in one of four ways; false for a type that it
// does not know.
func changeElement(b []byte, t onnx.DataType, kind int) bool {
	switch t {
	case onnx.Float:
		x := math.Float32frombits(binary.LittleEndian.Uint32(b))
		x = []float32{x * 2, x / 2, -x, x + 1}[kind]
		binary.LittleEndian.PutUint32(b, math.Float32bits(x))
	case onnx.Float16:
		x := float16.Frombits(binary.LittleEndian.Uint16(b)).Float32()
		x = []float32{x * 2, x / 2, -x, x + 1}[kind]
		binary.LittleEndian.PutUint16(b, float16.Fromfloat32(x).Bits())
	case onnx.Int32:
		x := int32(binary.LittleEndian.Uint32(b))
		x = []int32{x + 1, x - 1, -x, x * 2}[kind]
		binary.LittleEndian.PutUint32(b, uint32(x))
	case onnx.Int64:
		x := int64(binary.LittleEndian.Uint64(b))
		x = []int64{x + 1, x - 1, -x, x * 2}[kind]
		binary.LittleEndian.PutUint64(b, uint64(x))
	case onnx.Bool:
		b[0] ^= 1
	default:
		return false
	}
	return true
}

func changeAttribute(m *onnx.Model, rng *rand.Rand) string {
	n := pick(rng, m.Graph.Nodes)
	if len(n.Attributes) == 0 || n.OpType == "Constant" || n.OpType == "Cast" {
		return ""
	}
	a := pick(rng, n.Attributes)
	switch a.Type {
	case onnx.AttrInt:
		n.SetAttribute(onnx.IntAttr(a.Name, a.Int+pick(rng, []int64{-1, 1})))
	case onnx.AttrFloat:
		n.SetAttribute(onnx.FloatAttr(a.Name, a.Float*pick(rng, []float32{0.5, 2, -1})))
	case onnx.AttrInts:
		list := slices.Clone(a.Ints)
		if len(list) > 1 && rng.IntN(2) == 0 {
			i := rng.IntN(len(list) - 1)
			list[i], list[i+1] = list[i+1], list[i]
		} else if len(list) > 0 {
			list[rng.IntN(len(list))] += pick(rng, []int64{-1, 1})
		}
		n.SetAttribute(onnx.IntsAttr(a.Name, list...))
	default:
		return ""
	}
	return fmt.Sprintf("%s: attribute %s", name(n), a.Name)
}
