package onnxattention_test

import (
	"fmt"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/fusedtest"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/onnxattention"
)

func TestExpansion(t *testing.T) {
	for _, c := range fusedtest.Read(t, "testdata/cases.json") {
		t.Run(c.Name, func(t *testing.T) { c.Check(t, onnxattention.Adapter()) })
	}
}

// context tells that every value is a float of 4 dimensions, the mask m a bool.
func context() fused.Context {
	return fused.Context{
		Opset: 23,
		Rank:  func(string) (int, bool) { return 4, true },
		Type: func(v string) onnx.DataType {
			if v == "m" {
				return onnx.Bool
			}
			return onnx.Float
		},
	}
}

func TestRefusals(t *testing.T) {
	q := []string{"q", "k", "v"}
	one := []string{"y"}
	three := []string{"y", "pk", "pv"}
	for _, c := range []struct {
		name            string
		inputs, outputs []string
		attribute       *onnx.Attribute
		want            string
	}{
		{"no value", q[:2], one, nil, "the node lacks its input 2"},
		{"absent value", []string{"q", "k", ""}, one, nil, "the node lacks its input 2"},
		{"no output", q, nil, nil, "its first output has no name"},
		{"product wanted", q, []string{"y", "", "", "qk"}, nil, "the node outputs the product of query and key (qk_matmul_output)"},
		{"a cache inside and outside", []string{"q", "k", "v", "", "p", "r", "n"}, three, nil, "the node has both past_key and nonpad_kv_seqlen, which is for a cache outside it"},
		{"past key alone", []string{"q", "k", "v", "", "p"}, three, nil, "the node has only one of past_key and past_value"},
		{"past without present", []string{"q", "k", "v", "", "p", "r"}, one, nil, "the node has past_key and past_value without present_key and present_value"},
		{"no heads", q, one, onnx.IntAttr("q_num_heads", 0), "its attribute q_num_heads is 0, which is outside 1 to 65536"},
		{"too many heads", q, one, onnx.IntAttr("kv_num_heads", 1<<40), "its attribute kv_num_heads is 1099511627776, which is outside 1 to 65536"},
		{"negative heads", q, one, onnx.IntAttr("q_num_heads", -4), "its attribute q_num_heads is -4, which is outside 1 to 65536"},
		{"heads of the query alone", q, one, onnx.IntAttr("q_num_heads", 4), "the node has only one of q_num_heads and kv_num_heads"},
		{"heads as a float", q, one, onnx.FloatAttr("q_num_heads", 4), "its attribute q_num_heads is not an integer"},
		{"scale of 0", q, one, onnx.FloatAttr("scale", 0), "its scale is 0"},
		{"negative scale", q, one, onnx.FloatAttr("scale", -1), "its scale is -1"},
		{"scale as an integer", q, one, onnx.IntAttr("scale", 1), "its attribute scale is not a float"},
		{"negative softcap", q, one, onnx.FloatAttr("softcap", -1), "its softcap is -1"},
		{"causal of 2", q, one, onnx.IntAttr("is_causal", 2), "its attribute is_causal is 2, which is outside 0 to 1"},
		{"softmax in float16", q, one, onnx.IntAttr("softmax_precision", int64(onnx.Float16)), "its softmax_precision 10 is less than float32"},
		{"a window", q, one, onnx.IntAttr("left_window_size", 4), "the node has the attribute left_window_size, which is unknown for Attention"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := onnx.NewNode("Attention", c.inputs, c.outputs)
			if c.attribute != nil {
				n.SetAttribute(c.attribute)
			}
			_, err := onnxattention.Adapter().Expand(n, context())
			if err == nil || err.Error() != c.want {
				t.Errorf("the error is %v; %s was expected", err, c.want)
			}
		})
	}
}

func Example() {
	n := onnx.NewNode("Attention", []string{"q", "k", "v", "m"}, []string{"y"}, onnx.FloatAttr("scale", 0.25))
	e, err := onnxattention.Adapter().Expand(n, context())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range e.Nodes {
		switch p.OpType {
		case "MatMul", "Mul", "Add", "Softmax":
			fmt.Println(p.OpType)
		}
	}
	// Output:
	// MatMul
	// Mul
	// Add
	// Softmax
	// MatMul
}
