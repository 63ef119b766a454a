package onnx

import (
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// A dimension that is named by digits has that size; other names stay names.
func TestDimensionsNamedByDigits(t *testing.T) {
	for name, want := range map[string]Dim{
		"2": {Value: 2}, "16": {Value: 16}, "s10": {Param: "s10"}, "-1": {Param: "-1"}, "2.0": {Param: "2.0"}, "99999999999": {Param: "99999999999"}, "": {Value: UnknownDim},
	} {
		p := &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: name}}
		if got := dimOf(p); got != want {
			t.Errorf("%q is %v, want %v", name, got, want)
		}
	}
}
