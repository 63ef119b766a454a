package site

import (
	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
)

// IsOp reports whether a node is the fused op, which an earlier rewrite put into the model.
func IsOp(n *onnx.Node) bool { return n.Domain == customop.Domain && !IsRotary(n) }

// IsRotary reports whether a node is the op Rotary. Other programs put it into models too.
func IsRotary(n *onnx.Node) bool {
	spec, known := customop.SpecOf(n.OpType)
	return n.Domain == customop.Domain && known && spec.Name == customop.RotarySpec.Name
}

// WrittenRotary returns the site of an op Rotary that an earlier rewrite put into the model.
func WrittenRotary(g *graph.Graph, n *onnx.Node, query string) *Sized {
	return &Sized{Site: Site{Graph: g, Query: Branch{Boundary: n.Inputs[0], Operand: query}, output: query, Replaced: []*onnx.Node{n}}}
}

// Written returns the site of such an op, which replaces that node alone. normed says of
// query and key whether a norm was between their rotation and the scores.
func Written(g *graph.Graph, n *onnx.Node, op customop.RotaryAttention, normed [2]bool) *Sized {
	branch := func(value, past, present string, normed bool) Branch {
		b := Branch{Boundary: value, Operand: value}
		if present != "" {
			b.Cache = &CacheUpdate{Concat: n, Past: past, NewRows: value, Present: present}
		}
		if normed {
			b.Scales = []TokenScale{{Node: n, Norm: true}}
		}
		return b
	}
	return &Sized{Site: Site{
		Graph:    g,
		Query:    branch(op.Query, "", "", normed[0]),
		Key:      branch(op.Key, op.PastKey, op.PresentKey, normed[1]),
		Value:    branch(op.Value, op.PastValue, op.PresentValue, false),
		output:   op.Output,
		Replaced: []*onnx.Node{n},
	}}
}
