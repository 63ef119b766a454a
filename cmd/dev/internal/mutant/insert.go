package mutant

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Layers that are alike share measurements and verifications, so one of them alone is changed here: its
// constant, what it makes of a graph's input, a value that nothing else reads.

// changeConstantOfOne gives one reader of a constant a changed one; the others keep it.
func changeConstantOfOne(m *onnx.Model, rng *rand.Rand) string {
	n := pick(rng, m.Graph.Nodes)
	if len(n.Inputs) == 0 {
		return ""
	}
	i := rng.IntN(len(n.Inputs))
	t := m.Graph.Initializer(n.Inputs[i])
	if t == nil {
		for _, made := range m.Graph.Nodes {
			if made.OpType == "Constant" && slices.Contains(made.Outputs, n.Inputs[i]) {
				t = made.Tensor("value")
			}
		}
	}
	if t == nil {
		return ""
	}
	changed, what := changedTensor(t, names(m).Fresh("mutant"), rng)
	if changed == nil {
		return ""
	}
	m.Graph.AddInitializer(changed)
	n.Inputs[i] = changed.Name
	return fmt.Sprintf("%s alone: %s", name(n), what)
}

// changeInputOfOne puts arithmetic between a graph's integer input and one of its readers: other
// positions, another mask, other tokens.
func changeInputOfOne(m *onnx.Model, rng *rand.Rand) string {
	in := pick(rng, m.Graph.Inputs)
	if in.Type != onnx.Int64 && in.Type != onnx.Int32 {
		return ""
	}
	var readers []*onnx.Node
	for _, n := range m.Graph.Nodes {
		if slices.Contains(n.Inputs, in.Name) {
			readers = append(readers, n)
		}
	}
	if len(readers) == 0 {
		return ""
	}
	n := pick(rng, readers)
	free := names(m)
	one := onnx.NewTensor(free.Fresh("mutant"), in.Type, nil, binary.LittleEndian.AppendUint64(nil, 1)[:in.Type.Size()])
	m.Graph.AddInitializer(one)
	op := pick(rng, []string{"Add", "Sub", "Mul", "Max", "Min"})
	second := pick(rng, []string{one.Name, one.Name, in.Name})
	out := free.Fresh("mutant")
	m.Graph.InsertNode(n, onnx.NewNode(op, []string{in.Name, second}, []string{out}))
	n.Inputs[slices.Index(n.Inputs, in.Name)] = out
	return fmt.Sprintf("%s reads %s(%s, %s)", name(n), op, in.Name, second)
}

// addReader adds a part of one value to another that a node of the same kind makes, which has its
// shape more often than not.
func addReader(m *onnx.Model, rng *rand.Rand) string {
	at := rng.IntN(len(m.Graph.Nodes))
	n := m.Graph.Nodes[at]
	var others []string
	for _, before := range m.Graph.Nodes[:at] {
		if before.OpType == n.OpType && len(before.Outputs) == 1 {
			others = append(others, before.Outputs[0])
		}
	}
	if len(n.Outputs) != 1 || len(others) == 0 {
		return ""
	}
	free := names(m)
	other, part, sum := pick(rng, others), free.Fresh("mutant"), free.Fresh("mutant")
	half := onnx.NewTensor(free.Fresh("mutant"), onnx.Float, nil, binary.LittleEndian.AppendUint32(nil, math.Float32bits(0.5)))
	if !redirect(m, n.Outputs[0], sum) {
		return ""
	}
	m.Graph.AddInitializer(half)
	after := next(m, at)
	m.Graph.InsertNode(after, onnx.NewNode("Mul", []string{other, half.Name}, []string{part}))
	m.Graph.InsertNode(after, onnx.NewNode("Add", []string{n.Outputs[0], part}, []string{sum}))
	return fmt.Sprintf("%s: half of %q is added to it", name(n), other)
}

// roundThrough rounds a value to 16 bits, or cuts it to an integer.
func roundThrough(m *onnx.Model, rng *rand.Rand) string {
	at := rng.IntN(len(m.Graph.Nodes))
	n := m.Graph.Nodes[at]
	if len(n.Outputs) != 1 {
		return ""
	}
	to := pick(rng, []onnx.DataType{onnx.Float16, onnx.Float16, onnx.Int32})
	free := names(m)
	short, back := free.Fresh("mutant"), free.Fresh("mutant")
	if !redirect(m, n.Outputs[0], back) {
		return ""
	}
	after := next(m, at)
	m.Graph.InsertNode(after, onnx.NewNode("Cast", []string{n.Outputs[0]}, []string{short}, onnx.IntAttr("to", int64(to))))
	m.Graph.InsertNode(after, onnx.NewNode("Cast", []string{short}, []string{back}, onnx.IntAttr("to", int64(onnx.Float))))
	return fmt.Sprintf("%s: through %v", name(n), to)
}

// redirect lets all readers of one value read another; false if there are none.
func redirect(m *onnx.Model, from, to string) (read bool) {
	for n := range m.Graph.AllNodes() {
		for i, v := range n.Inputs {
			if v == from {
				n.Inputs[i], read = to, true
			}
		}
	}
	return read
}

// next is the node behind the one at an index, nil behind the last.
func next(m *onnx.Model, at int) *onnx.Node {
	if at+1 < len(m.Graph.Nodes) {
		return m.Graph.Nodes[at+1]
	}
	return nil
}

// names are those of a model, for new ones.
func names(m *onnx.Model) onnx.Names {
	list := onnx.Names{}
	list.Note(m.Graph)
	return list
}
