package contrib_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/contrib"
)

// A model of one op becomes a model of one GroupQueryAttention.
func Example() {
	op := customop.RotaryAttention{
		Query: "query", Key: "key", Value: "value", Output: "output", NumHeads: 4, KVNumHeads: 2, PastKey: "past_key", PastValue: "past_value", Causal: 1, Window: 128,
		Frequencies: []float32{1, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003}, Gain: 1,
	}
	fmt.Println(contrib.Refused(op, contrib.Node{}, 22))
	fmt.Println("needs ONNX Runtime", contrib.Needs(op, contrib.Node{}))

	m := onnx.New()
	m.RequireIR(8)
	m.RequireOpset("", 17)
	m.RequireOpset(customop.Domain, 1)
	n := onnx.NewNode("RotaryAttention", []string{"query", "key", "value"}, []string{"output"},
		onnx.IntAttr("spec_version", 1), onnx.IntAttr("num_heads", 4), onnx.IntAttr("kv_num_heads", 2), onnx.IntAttr("causal", 1), onnx.IntAttr("window", 128),
		onnx.FloatsAttr("frequencies", op.Frequencies...))
	n.Domain, n.Name = customop.Domain, "attention"
	m.Graph.Nodes = []*onnx.Node{n}
	if err := contrib.Replace(m, map[*onnx.Node]contrib.Node{n: {Element: onnx.Float, HeadSize: 16, Rows: 2048}}, 0); err != nil {
		fmt.Println(err)
		return
	}
	for n := range m.Graph.AllNodes() {
		if n.Domain != "" {
			fmt.Println(n.Domain, n.OpType, n.Int("local_window_size", 0))
		}
	}
	for _, t := range m.Graph.Initializers {
		if len(t.Dims) == 2 {
			fmt.Println("a table", t.Dims)
		}
	}
	// Output:
	// it has a window of this size only from ONNX Runtime 1.24 on, and 1.22 was asked for
	// needs ONNX Runtime 1.24
	// com.microsoft GroupQueryAttention 128
	// a table [2048 8]
	// a table [2048 8]
}
