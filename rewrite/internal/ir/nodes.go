package ir

import (
	"fmt"
	"iter"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Domain gives the standard domain one name.
func Domain(name string) string {
	if name == "ai.onnx" {
		return ""
	}
	return name
}

// Uses yields the values that a node reads, those its sub-graphs take from
// outside included.
func Uses(n *onnx.Node) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, v := range n.Inputs {
			if v != "" && !yield(v) {
				return
			}
		}
		for sub := range n.Subgraphs() {
			for v := range captured(sub) {
				if !yield(v) {
					return
				}
			}
		}
	}
}

// captured yields the values that a sub-graph reads and does not make.
func captured(g *onnx.Graph) iter.Seq[string] {
	return func(yield func(string) bool) {
		own := map[string]bool{}
		for _, v := range g.Inputs {
			own[v.Name] = true
		}
		for _, t := range g.Initializers {
			own[t.Name] = true
		}
		for _, n := range g.Nodes {
			for v := range Uses(n) {
				if !own[v] && !yield(v) {
					return
				}
			}
			for _, o := range n.Outputs {
				own[o] = true
			}
		}
		for _, o := range g.Outputs {
			if !own[o.Name] && !yield(o.Name) {
				return
			}
		}
	}
}

// Label names a node for people: its name, or what it makes.
func Label(n *onnx.Node) string {
	if n.Name != "" {
		return n.Name
	}
	if len(n.Outputs) > 0 {
		return fmt.Sprintf("%s making %q", n.OpType, n.Outputs[0])
	}
	return n.OpType
}

// Standard reports whether n is the standard op of that name.
func Standard(n *onnx.Node, ops ...string) bool {
	return n != nil && (n.Domain == "" || n.Domain == "ai.onnx") && slices.Contains(ops, n.OpType)
}

// MaxRank bounds what is handed to ONNX Runtime, which crashes on tensors of
// absurd rank; ONNX models use at most 6 or so.
const MaxRank = 16

// Function reports whether a node calls one of the model's own functions.
func Function(m *onnx.Model, n *onnx.Node) bool {
	return slices.ContainsFunc(m.Functions, func(f *onnx.Function) bool { return f.Name == n.OpType && Domain(f.Domain) == Domain(n.Domain) })
}

// FunctionCalls counts the nodes that call them and returns the first.
func FunctionCalls(m *onnx.Model) (first *onnx.Node, calls int) {
	for n := range m.Graph.AllNodes() {
		if Function(m, n) {
			if first == nil {
				first = n
			}
			calls++
		}
	}
	return first, calls
}

func Cast(from, to string, t onnx.DataType) *onnx.Node {
	return onnx.NewNode("Cast", []string{from}, []string{to}, onnx.IntAttr("to", int64(t)))
}

// Renamed returns the nodes with other names for some values.
func Renamed(nodes []*onnx.Node, names map[string]string) []*onnx.Node {
	if len(names) == 0 {
		return nodes
	}
	out := make([]*onnx.Node, len(nodes))
	for i, n := range nodes {
		out[i] = n.Clone()
		for _, list := range [][]string{out[i].Inputs, out[i].Outputs} {
			for k, v := range list {
				if s := names[v]; s != "" {
					list[k] = s
				}
			}
		}
	}
	return out
}

// EmptyModel returns a model with the opset imports of another and no nodes.
func EmptyModel(like *onnx.Model) *onnx.Model {
	m := onnx.New()
	m.RequireIR(max(like.IRVersion, 7))
	for _, o := range like.Opsets() {
		m.RequireOpset(o.Domain, o.Version)
	}
	m.Graph.Name = "piece"
	return m
}

// TorchScript writes the assignment of a slice, key[..., 16:] = rotated, as a
// ScatterND whose indices it computes for every element. They are larger than
// what they place, so that they are looked at for fewer tokens than other sizes.

// Scatters reports whether n writes elements into a larger value.
func Scatters(n *onnx.Node) bool { return Standard(n, "ScatterND") && len(n.Inputs) == 3 }

func Unique(list []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, v := range list {
		if !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	return out
}

// Zeros is a node that makes a tensor of zeros whose shape is a value.
func Zeros(t onnx.DataType, shape, output string) *onnx.Node {
	zero := onnx.NewTensor("", t, []int64{1}, make([]byte, t.Size()))
	return onnx.NewNode("ConstantOfShape", []string{shape}, []string{output}, onnx.TensorAttr("value", zero))
}

// Reads returns the values that a node reads, as upstream's visitors want them.
func Reads(n *onnx.Node) []string { return slices.Collect(Uses(n)) }
