package float16_test

import (
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/float16"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// The outputs of one node may have several types, and the first input does not always tell them.
func TestOutputType(t *testing.T) {
	types := map[string]onnx.DataType{"x": onnx.Float, "k": onnx.Int64, "places": onnx.Int64, "depth": onnx.Int32, "values": onnx.Float16}
	topK := onnx.NewNode("TopK", []string{"x", "k"}, []string{"largest", "places"})
	oneHot := onnx.NewNode("OneHot", []string{"places", "depth", "values"}, []string{"rows"})
	for _, c := range []struct {
		node *onnx.Node
		i    int
		want onnx.DataType
	}{{topK, 0, onnx.Float}, {topK, 1, onnx.Int64}, {oneHot, 0, onnx.Float16}} {
		if got := float16.OutputType(c.node, c.i, types); got != c.want {
			t.Errorf("output %d of %s is %v, %v was expected", c.i, c.node.OpType, got, c.want)
		}
	}
}
