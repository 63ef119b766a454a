package ir

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

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

// Function reports whether a node calls one of the model's own functions.
func Function(m *onnx.Model, n *onnx.Node) bool {
	return slices.ContainsFunc(m.Functions, func(f *onnx.Function) bool { return f.Name == n.OpType && Domain(f.Domain) == Domain(n.Domain) })
}

// FunctionCalls counts the nodes that call the model's own functions, and returns
// the first one.
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
