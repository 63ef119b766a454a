package ir

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Named returns a value by its name, nil where there is none.
func Named(list []*onnx.ValueInfo, name string) *onnx.ValueInfo {
	if i := slices.IndexFunc(list, func(v *onnx.ValueInfo) bool { return v.Name == name }); i >= 0 {
		return list[i]
	}
	return nil
}

// RetypeCaches gives inputs and outputs, those whose names are chosen, another element type.
func RetypeCaches(g *onnx.Graph, chosen func(name string) bool, to onnx.DataType) {
	for _, list := range [][]*onnx.ValueInfo{g.Inputs, g.Outputs} {
		for i, v := range list {
			if chosen(v.Name) {
				v = v.Clone()
				v.Type = to
				list[i] = v
			}
		}
	}
}

// ResizeCaches gives inputs and outputs [batch, kv heads, tokens, head size], those
// which have one by their name, another number of tokens.
func ResizeCaches(g *onnx.Graph, tokens func(name string) (onnx.Dim, bool)) {
	for _, list := range [][]*onnx.ValueInfo{g.Inputs, g.Outputs} {
		for i, v := range list {
			if rows, chosen := tokens(v.Name); chosen && len(v.Shape) == 4 {
				v = v.Clone()
				v.Shape[2] = rows
				list[i] = v
			}
		}
	}
}
