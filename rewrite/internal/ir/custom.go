package ir

import (
	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// ToCustom returns a node of a graph by its parts.
func ToCustom(n *onnx.Node) customop.Node {
	node := customop.Node{Name: n.Name, OpType: n.OpType, Domain: n.Domain, Inputs: n.Inputs, Outputs: n.Outputs}
	for _, a := range n.Attributes {
		of := customop.NodeAttribute{Name: a.Name, Int: a.Int, Float: a.Float, Text: string(a.Bytes), Ints: a.Ints, Floats: a.Floats}
		switch a.Type {
		case onnx.AttrInt:
			of.Kind = customop.Int
		case onnx.AttrFloat:
			of.Kind = customop.Float
		case onnx.AttrString:
			of.Kind = customop.Text
		case onnx.AttrInts:
			of.Kind = customop.Ints
		case onnx.AttrFloats:
			of.Kind = customop.Floats
		}
		node.Attributes = append(node.Attributes, of)
	}
	return node
}

// FromCustom returns a node by its parts as a node of a graph.
func FromCustom(n customop.Node) *onnx.Node {
	out := onnx.NewNode(n.OpType, n.Inputs, n.Outputs)
	out.Name, out.Domain = n.Name, n.Domain
	for _, a := range n.Attributes {
		switch a.Kind {
		case customop.Int:
			out.Attributes = append(out.Attributes, onnx.IntAttr(a.Name, a.Int))
		case customop.Float:
			out.Attributes = append(out.Attributes, onnx.FloatAttr(a.Name, a.Float))
		case customop.Text:
			out.Attributes = append(out.Attributes, onnx.StringAttr(a.Name, a.Text))
		case customop.Ints:
			out.Attributes = append(out.Attributes, onnx.IntsAttr(a.Name, a.Ints...))
		case customop.Floats:
			out.Attributes = append(out.Attributes, onnx.FloatsAttr(a.Name, a.Floats...))
		}
	}
	return out
}
