package onnxrotary_test

import (
	"fmt"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/fusedtest"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/onnxrotary"
)

func TestExpansion(t *testing.T) {
	for _, c := range fusedtest.Read(t, "testdata/cases.json") {
		t.Run(c.Name, func(t *testing.T) { c.Check(t, onnxrotary.Adapter()) })
	}
}

// context tells that values have as many dimensions as their name says.
func context() fused.Context {
	return fused.Context{
		Opset: 23,
		Rank: func(v string) (int, bool) {
			var rank int
			_, err := fmt.Sscanf(v, "x%d", &rank)
			return rank, err == nil
		},
		Type: func(string) onnx.DataType { return onnx.Float },
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name      string
		inputs    []string
		attribute *onnx.Attribute
		want      string
	}{
		{"no sine", []string{"x4", "cos"}, nil, "the node lacks its input 2"},
		{"unknown rank", []string{"y", "cos", "sin"}, nil, `the graph does not say how many dimensions its input "y" has`},
		{"5 dimensions", []string{"x5", "cos", "sin"}, nil, `its input "x5" has 5 dimensions, expected 3 or 4`},
		{"3 dimensions without heads", []string{"x3", "cos", "sin"}, nil, `its input "x3" has 3 dimensions, and num_heads is not given`},
		{"absurd heads", []string{"x3", "cos", "sin"}, onnx.IntAttr("num_heads", 1<<40), "its attribute num_heads is 1099511627776, which is outside 0 to 65536"},
		{"negative heads", []string{"x3", "cos", "sin"}, onnx.IntAttr("num_heads", -1), "its attribute num_heads is -1, which is outside 0 to 65536"},
		{"odd width", []string{"x4", "cos", "sin"}, onnx.IntAttr("rotary_embedding_dim", 3), "its rotary_embedding_dim 3 is odd"},
		{"interleaved by 2", []string{"x4", "cos", "sin"}, onnx.IntAttr("interleaved", 2), "its attribute interleaved is 2, which is outside 0 to 1"},
		{"an unknown attribute", []string{"x4", "cos", "sin"}, onnx.FloatAttr("scale", 2), "the node has the attribute scale, which is unknown for RotaryEmbedding"},
		{"five inputs", []string{"x4", "cos", "sin", "p", "q"}, nil, "the node has 5 inputs, 4 are known for RotaryEmbedding"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := onnx.NewNode("RotaryEmbedding", c.inputs, []string{"turned"})
			if c.attribute != nil {
				n.SetAttribute(c.attribute)
			}
			_, err := onnxrotary.Adapter().Expand(n, context())
			if err == nil || err.Error() != c.want {
				t.Errorf("the error is %v; %s was expected", err, c.want)
			}
		})
	}
}

func Example() {
	n := onnx.NewNode("RotaryEmbedding", []string{"x4", "cos", "sin"}, []string{"turned"})
	e, err := onnxrotary.Adapter().Expand(n, context())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range e.Nodes {
		fmt.Println(p.OpType)
	}
	// Output:
	// Unsqueeze
	// Unsqueeze
	// Split
	// Mul
	// Mul
	// Sub
	// Mul
	// Mul
	// Add
	// Concat
}
