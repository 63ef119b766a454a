package graph

import (
	"github.com/rope-rewrite/rope-rewrite/internal/float16"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Element returns the element type of a value, as it follows from the types of inputs
// and constants; Undefined where it does not.
func (g *Graph) Element(value string) onnx.DataType { return g.elements[value] }

// readElements fills the element types of all values.
func (g *Graph) readElements() {
	g.elements = make(map[string]onnx.DataType, len(g.Producer)+len(g.Constants))
	for name, v := range g.Inputs {
		g.elements[name] = v.Type
	}
	for name, t := range g.Constants {
		g.elements[name] = t.Type
	}
	for _, n := range g.Nodes {
		for i, o := range n.Outputs {
			g.elements[o] = float16.OutputType(n, i, g.elements)
		}
	}
}
