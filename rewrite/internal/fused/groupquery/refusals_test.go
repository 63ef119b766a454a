package groupquery_test

import (
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/groupquery"
)

// What newer builders write, and what would read a node as another if it were not refused.
func TestRefusals(t *testing.T) {
	attribute := func(a ...*onnx.Attribute) func(n *onnx.Node) {
		return func(n *onnx.Node) {
			for _, a := range a {
				n.SetAttribute(a)
			}
		}
	}
	input := func(at int) func(n *onnx.Node) {
		return func(n *onnx.Node) {
			for len(n.Inputs) <= at {
				n.Inputs = append(n.Inputs, "")
			}
			n.Inputs[at] = "more"
		}
	}
	for _, c := range []struct {
		name   string
		change func(n *onnx.Node)
		want   string
	}{
		{"a cache of the window alone", attribute(onnx.IntAttr("local_window_size", 4), onnx.IntAttr("sliding_window_cache", 1)), "sliding_window_cache"},
		{"all keys shown", attribute(onnx.IntAttr("causal", 0)), "causal=0"},
		{"a cache of 8 bits", attribute(onnx.StringAttr("k_quant_type", "PER_TENSOR"), onnx.StringAttr("v_quant_type", "PER_TENSOR"), onnx.IntAttr("kv_cache_bit_width", 8)), "quantised cache"},
		{"values of 4 bits", attribute(onnx.StringAttr("v_quant_type", "PER_CHANNEL"), onnx.IntAttr("kv_cache_bit_width", 4)), "quantised cache"},
		{"a number of bits alone", attribute(onnx.IntAttr("kv_cache_bit_width", 8)), "quantised cache"},
		{"scales of a cache", input(12), "quantised cache"},
		{"positions", input(9), "position_ids"},
		{"a bias", input(10), "attention_bias"},
		{"weights of a norm", input(14), "q_norm_weight"},
		{"padding on the right", input(16), "query_seqlens"},
		{"an input of a later version", input(17), "the node has 18 inputs, 17 are known"},
		{"scores given away", attribute(onnx.IntAttr("qk_output", 1)), "qk_output is 1"},
		{"a key without a value", func(n *onnx.Node) { n.Inputs[2] = "" }, "only one of key and value"},
		{"neither key nor value, and a query alone", func(n *onnx.Node) { n.Inputs[1], n.Inputs[2] = "", "" }, "the node has neither key nor value"},
		{"an empty key", func(n *onnx.Node) { n.Inputs[1], n.Inputs[2] = "empty", "empty" }, "its key and value are empty"},
		{"no cache", func(n *onnx.Node) { n.Inputs[3], n.Inputs[4] = "", "" }, "without a key-value cache"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := onnx.NewNode("GroupQueryAttention",
				[]string{"query", "key", "value", "past_key", "past_value", "last", "total"}, []string{"out", "present_key", "present_value"},
				onnx.IntAttr("num_heads", 4), onnx.IntAttr("kv_num_heads", 2))
			c.change(n)
			context := fused.Context{
				Type: func(string) onnx.DataType { return onnx.Float },
				Width: func(name string) (int64, bool) {
					w, ok := map[string]int64{"query": 4 * 16, "past_key": 16}[name]
					return w, ok
				},
				Constant: func(name string) *onnx.Tensor {
					if name == "empty" {
						return onnx.NewTensor(name, onnx.Float, []int64{1, 0, 2 * 16}, nil)
					}
					return nil
				},
			}
			if _, err := groupquery.Adapter().Expand(n, context); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v; %q was expected", err, c.want)
			}
		})
	}
}
