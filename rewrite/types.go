package rewrite

import (
	"github.com/rope-rewrite/rope-rewrite/internal/narrow"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// element returns the element type of a value.
func (g *graph) element(value string) onnx.DataType {
	if g.elements == nil {
		g.elements = map[string]onnx.DataType{}
		for name, v := range g.inputs {
			g.elements[name] = v.Type
		}
		for name, t := range g.constants {
			g.elements[name] = t.Type
		}
		for _, n := range g.nodes {
			for _, o := range n.Outputs {
				g.elements[o] = narrow.OutputType(n, g.elements)
			}
		}
	}
	return g.elements[value]
}

// precision returns the numbers of an element type; those of doubles are not
// told from float32's.
func precision(t onnx.DataType) rope.Precision {
	switch t {
	case onnx.Float16:
		return rope.Float16
	case onnx.BFloat16:
		return rope.BFloat16
	}
	return rope.Float32
}

// short reports whether numbers of the type have 16 bits.
func short(t onnx.DataType) bool { return precision(t) != rope.Float32 }

// round rounds values to an element type.
func round(values []float32, t onnx.DataType) {
	if short(t) {
		for i, x := range values {
			values[i] = float32(precision(t).Round(float64(x)))
		}
	}
}
