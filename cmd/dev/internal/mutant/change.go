package mutant

import (
	"fmt"
	"slices"

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

func changeOp(s *subject, at place) string {
	n := at.node
	for _, group := range alike {
		if n.Domain == "" && slices.Contains(group, n.OpType) {
			old := name(n)
			for was := n.OpType; n.OpType == was; {
				n.OpType = pick(s.rng, group)
			}
			return fmt.Sprintf("%s: %s in its place", old, n.OpType)
		}
	}
	return ""
}

// changeInput gives a node another value than one of its inputs, one that is made
// before it or a graph's input. Mostly it has the type of the value that it replaces.
func changeInput(s *subject, at place) string {
	n := at.node
	if len(n.Inputs) == 0 {
		return ""
	}
	var values []string
	for _, v := range s.model.Graph.Inputs {
		values = append(values, v.Name)
	}
	// Near values are more often of a shape that fits.
	i := slices.Index(at.graph.Nodes, n)
	for _, before := range at.graph.Nodes[max(0, i-40):i] {
		values = append(values, before.Outputs...)
	}
	k := s.rng.IntN(len(n.Inputs))
	anyType := s.rng.IntN(10) == 0
	values = slices.DeleteFunc(values, func(v string) bool {
		return v == "" || slices.Contains(n.Inputs, v) || !anyType && s.typeOf(at, v) != s.typeOf(at, n.Inputs[k])
	})
	if len(values) == 0 {
		return ""
	}
	was := n.Inputs[k]
	n.Inputs[k] = pick(s.rng, values)
	return fmt.Sprintf("%s: input %d is %q in place of %q", name(n), k, n.Inputs[k], was)
}

func swapInputs(s *subject, at place) string {
	n := at.node
	if len(n.Inputs) < 2 {
		return ""
	}
	i := s.rng.IntN(len(n.Inputs) - 1)
	if n.Inputs[i] == n.Inputs[i+1] {
		return ""
	}
	n.Inputs[i], n.Inputs[i+1] = n.Inputs[i+1], n.Inputs[i]
	return fmt.Sprintf("%s: inputs %d and %d change places", name(n), i, i+1)
}

// skipNode gives who reads a node's output the node's first input.
func skipNode(s *subject, at place) string {
	n := at.node
	if len(n.Inputs) == 0 || n.Inputs[0] == "" || len(n.Outputs) != 1 {
		return ""
	}
	if !redirect(at.graph, n.Outputs[0], n.Inputs[0]) {
		return ""
	}
	return name(n) + ": skipped"
}

func changeAttribute(s *subject, at place) string {
	n, rng := at.node, s.rng
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

// redirect lets all readers of a graph's value read another; false if there are none.
func redirect(g *onnx.Graph, from, to string) (read bool) {
	for n := range g.AllNodes() {
		for i, v := range n.Inputs {
			if v == from {
				n.Inputs[i], read = to, true
			}
		}
	}
	return read
}
