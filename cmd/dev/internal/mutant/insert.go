package mutant

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/x448/float16"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// number is a constant without dimensions, in a type that arithmetic is done in.
func (s *subject) number(t onnx.DataType, x float64) string {
	var raw []byte
	switch t {
	case onnx.Float:
		raw = binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(x)))
	case onnx.Float16:
		raw = binary.LittleEndian.AppendUint16(nil, float16.Fromfloat32(float32(x)).Bits())
	case onnx.Double:
		raw = binary.LittleEndian.AppendUint64(nil, math.Float64bits(x))
	default:
		raw = binary.LittleEndian.AppendUint64(nil, uint64(int64(x)))[:t.Size()]
	}
	c := onnx.NewTensor(s.fresh(), t, nil, raw)
	s.add(c)
	return c.Name
}

// shift makes a whole number 1 more or less, and a truth value the other one.
func shift(s *subject, at place) string {
	n := at.node
	var op string
	var more []string
	switch {
	case s.makes(at, isInteger):
		op, more = pick(s.rng, []string{"Add", "Sub"}), []string{s.number(s.made(at), 1)}
	case s.makes(at, func(t onnx.DataType) bool { return t == onnx.Bool }):
		op = "Not"
	default:
		return ""
	}
	readers := s.behind(at, func(from, to string) []*onnx.Node {
		return []*onnx.Node{onnx.NewNode(op, append([]string{from}, more...), []string{to})}
	})
	if readers == "" {
		return ""
	}
	return fmt.Sprintf("%s: %s behind it for %s", name(n), op, readers)
}

// scale makes a real number half as large or twice, or turns its sign.
func scale(s *subject, at place) string {
	n := at.node
	if !s.makes(at, isFloat) {
		return ""
	}
	factor := pick(s.rng, []float64{0.5, 2, -1})
	other := s.number(s.made(at), factor)
	readers := s.behind(at, func(from, to string) []*onnx.Node {
		return []*onnx.Node{onnx.NewNode("Mul", []string{from, other}, []string{to})}
	})
	if readers == "" {
		return ""
	}
	return fmt.Sprintf("%s: times %g for %s", name(n), factor, readers)
}

// changeInputOfOne puts arithmetic between a graph's integer input and one of its readers: other
// positions, another mask, other tokens.
func changeInputOfOne(s *subject, at place) string {
	n := at.node
	var values []int
	for i, v := range n.Inputs {
		if isInteger(s.typeOf(at, v)) && slices.ContainsFunc(s.model.Graph.Inputs, func(in *onnx.ValueInfo) bool { return in.Name == v }) {
			values = append(values, i)
		}
	}
	if len(values) == 0 {
		return ""
	}
	i := pick(s.rng, values)
	in := n.Inputs[i]
	op := pick(s.rng, []string{"Add", "Sub", "Mul", "Max", "Min"})
	second := in
	if s.rng.IntN(3) > 0 {
		second = s.number(s.typeOf(at, in), 1)
	}
	out := s.fresh()
	s.scopes[at.graph].types[out] = s.typeOf(at, in)
	at.graph.InsertNode(n, onnx.NewNode(op, []string{in, second}, []string{out}))
	n.Inputs[i] = out
	return fmt.Sprintf("%s reads %s(%s, %s)", name(n), op, in, second)
}

// addReader adds a part of one value to another that a node of the same kind makes, which has its
// shape more often than not.
func addReader(s *subject, at place) string {
	n := at.node
	if !s.makes(at, isFloat) {
		return ""
	}
	var others []string
	for _, before := range at.graph.Nodes[:slices.Index(at.graph.Nodes, n)] {
		if before.OpType == n.OpType && len(before.Outputs) == 1 {
			others = append(others, before.Outputs[0])
		}
	}
	if len(others) == 0 {
		return ""
	}
	other, half := pick(s.rng, others), s.number(s.made(at), 0.5)
	readers := s.behind(at, func(from, to string) []*onnx.Node {
		part := to + "/part"
		return []*onnx.Node{
			onnx.NewNode("Mul", []string{other, half}, []string{part}),
			onnx.NewNode("Add", []string{from, part}, []string{to}),
		}
	})
	if readers == "" {
		return ""
	}
	return fmt.Sprintf("%s: half of %q is added to it for %s", name(n), other, readers)
}

// roundThrough rounds a value to 16 bits, or cuts it to an integer.
func roundThrough(s *subject, at place) string {
	n := at.node
	if !s.makes(at, isFloat) {
		return ""
	}
	through := pick(s.rng, []onnx.DataType{onnx.Float16, onnx.Float16, onnx.Int32})
	back := s.made(at)
	readers := s.behind(at, func(from, to string) []*onnx.Node {
		short := to + "/short"
		return []*onnx.Node{
			onnx.NewNode("Cast", []string{from}, []string{short}, onnx.IntAttr("to", int64(through))),
			onnx.NewNode("Cast", []string{short}, []string{to}, onnx.IntAttr("to", int64(back))),
		}
	})
	if readers == "" {
		return ""
	}
	return fmt.Sprintf("%s: through %v for %s", name(n), through, readers)
}
