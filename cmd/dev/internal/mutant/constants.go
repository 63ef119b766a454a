package mutant

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/x448/float16"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// mostChanged is the number of elements up to which a constant is changed: larger
// ones are weights.
const mostChanged = 4096

// changeConstant changes a constant that a node reads, or is, for all of its readers.
func changeConstant(s *subject, at place) string {
	t, _ := s.constantOf(at)
	if t == nil {
		return ""
	}
	changed, what := changedTensor(t, t.Name, s.rng, 4)
	if changed == nil {
		return ""
	}
	put(s.model, t, changed)
	return name(at.node) + ": " + what
}

// changeConstantOfOne gives one reader of a constant a changed one; the others keep it.
func changeConstantOfOne(s *subject, at place) string { return changeOne(s, at, 4) }

// stepConstant gives one reader of a whole number one that is 1 more or less, of a constant truth the other one.
func stepConstant(s *subject, at place) string {
	if t, _ := s.constantOf(at); t == nil || isFloat(t.Type) {
		return ""
	}
	return changeOne(s, at, 2)
}

// Layers that are alike share measurements and verifications, so one reader alone is changed in some mutants.
func changeOne(s *subject, at place, ways int) string {
	t, i := s.constantOf(at)
	if t == nil || i < 0 {
		return ""
	}
	changed, what := changedTensor(t, s.fresh(), s.rng, ways)
	if changed == nil {
		return ""
	}
	s.add(changed)
	at.node.Inputs[i] = changed.Name
	return fmt.Sprintf("%s alone: %s", name(at.node), what)
}

// constantOf is a constant that a node reads and the place of that input; -1 where it is the constant itself.
func (s *subject) constantOf(at place) (*onnx.Tensor, int) {
	n := at.node
	if t := n.Tensor("value"); n.OpType == "Constant" && t != nil {
		return t, -1
	}
	if len(n.Inputs) == 0 {
		return nil, -1
	}
	first := s.rng.IntN(len(n.Inputs))
	for k := range n.Inputs {
		i := (first + k) % len(n.Inputs)
		for _, g := range []*onnx.Graph{at.graph, s.model.Graph} {
			if t := g.Initializer(n.Inputs[i]); t != nil && t.Len() <= mostChanged {
				return t, i
			}
			for _, made := range g.Nodes {
				if made.OpType == "Constant" && slices.Contains(made.Outputs, n.Inputs[i]) {
					return made.Tensor("value"), i
				}
			}
		}
	}
	return nil, -1
}

// changedTensor is a tensor with one element or all of them changed in one of the first ways of
// changeElement; nil if it cannot be.
func changedTensor(t *onnx.Tensor, called string, rng *rand.Rand, ways int) (*onnx.Tensor, string) {
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
	way := rng.IntN(ways)
	for i := from; i < to; i++ {
		if !changeElement(changed[i*size:(i+1)*size], t.Type, way) {
			return nil, ""
		}
	}
	if slices.Equal(raw, changed) {
		return nil, ""
	}
	return onnx.NewTensor(called, t.Type, t.Dims, changed), fmt.Sprintf("constant %q %v %v: elements %d to %d, change %d", t.Name, t.Type, t.Dims, from, to-1, way)
}

// put replaces a constant of the model.
func put(m *onnx.Model, old, t *onnx.Tensor) {
	for g := range m.Graph.AllGraphs() {
		for i, each := range g.Initializers {
			if each == old {
				g.Initializers[i] = t
			}
		}
		for _, n := range g.Nodes {
			if n.OpType == "Constant" && n.Tensor("value") == old {
				n.SetAttribute(onnx.TensorAttr("value", t))
			}
		}
	}
}

// changeElement changes one element in one of four ways; false for a type that it
// does not know.
func changeElement(b []byte, t onnx.DataType, way int) bool {
	switch t {
	case onnx.Float:
		x := math.Float32frombits(binary.LittleEndian.Uint32(b))
		x = []float32{x * 2, x / 2, -x, x + 1}[way]
		binary.LittleEndian.PutUint32(b, math.Float32bits(x))
	case onnx.Float16:
		x := float16.Frombits(binary.LittleEndian.Uint16(b)).Float32()
		x = []float32{x * 2, x / 2, -x, x + 1}[way]
		binary.LittleEndian.PutUint16(b, float16.Fromfloat32(x).Bits())
	case onnx.Int32:
		x := int32(binary.LittleEndian.Uint32(b))
		x = []int32{x + 1, x - 1, -x, x * 2}[way]
		binary.LittleEndian.PutUint32(b, uint32(x))
	case onnx.Int64:
		x := int64(binary.LittleEndian.Uint64(b))
		x = []int64{x + 1, x - 1, -x, x * 2}[way]
		binary.LittleEndian.PutUint64(b, uint64(x))
	case onnx.Bool:
		b[0] ^= 1
	default:
		return false
	}
	return true
}
