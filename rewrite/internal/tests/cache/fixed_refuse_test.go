package cache_test

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// What would read the length of the past from a buffer of fixed capacity is
// refused with its name; what reads another size of it is none of that.
func TestFixedCacheReaders(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	const past = "past_key_values.0.key"
	index := func(g *onnx.Graph, i int64) string {
		g.AddInitializer(onnx.NewTensor("axis", onnx.Int64, []int64{}, binary.LittleEndian.AppendUint64(nil, uint64(i))))
		return "axis"
	}
	// give adds nodes, the last of which makes an output.
	give := func(g *onnx.Graph, shape []onnx.Dim, of onnx.DataType, nodes ...*onnx.Node) {
		for _, n := range nodes {
			n.Name = "reader of " + n.Inputs[0]
			g.InsertNode(nil, n)
		}
		g.AddOutput(onnx.NewValueInfo(nodes[len(nodes)-1].Outputs[0], of, shape...))
	}
	shape := func(of string, attributes ...*onnx.Attribute) *onnx.Node {
		return onnx.NewNode("Shape", []string{of}, []string{"sizes"}, attributes...)
	}
	gather := func(i string) *onnx.Node { return onnx.NewNode("Gather", []string{"sizes", i}, []string{"size"}) }
	list := func(n int64) []onnx.Dim { return []onnx.Dim{{Value: n}} }
	for _, c := range testsample.Of(t, []struct {
		name   string
		change func(*onnx.Graph)
		want   string // of the error; empty for none
	}{
		{"the past's length", func(g *onnx.Graph) { give(g, nil, onnx.Int64, shape(past), gather(index(g, 2))) }, `node reader of past_key_values.0.key (Shape) also reads "past_key_values.0.key"`},
		{"counted from the end", func(g *onnx.Graph) { give(g, nil, onnx.Int64, shape(past), gather(index(g, -2))) }, "node reader of past_key_values.0.key"},
		{"the past's batch", func(g *onnx.Graph) { give(g, nil, onnx.Int64, shape(past), gather(index(g, 0))) }, ""},
		{"the past's head size", func(g *onnx.Graph) { give(g, nil, onnx.Int64, shape(past), gather(index(g, -1))) }, ""},
		{"all its sizes", func(g *onnx.Graph) { give(g, list(4), onnx.Int64, shape(past)) }, "node reader of past_key_values.0.key"},
		{"its first sizes", func(g *onnx.Graph) { give(g, list(2), onnx.Int64, shape(past, onnx.IntAttr("end", 2))) }, ""},
		{"its last sizes", func(g *onnx.Graph) { give(g, list(2), onnx.Int64, shape(past, onnx.IntAttr("start", -2))) }, "node reader of past_key_values.0.key"},
		{"the present's length", func(g *onnx.Graph) { give(g, nil, onnx.Int64, shape("present.1.value"), gather(index(g, 2))) }, `also reads "present.1.value"`},
		{"its contents", func(g *onnx.Graph) {
			give(g, nil, onnx.Float, onnx.NewNode("ReduceMax", []string{past}, []string{"largest"}, onnx.IntAttr("keepdims", 0)))
		}, "(ReduceMax) also reads"},
		{"the mask's width", func(g *onnx.Graph) { give(g, nil, onnx.Int64, shape("attention_mask"), gather(index(g, 1))) }, `node reader of attention_mask (Shape) also reads the mask "attention_mask"`},
		{"the mask's batch", func(g *onnx.Graph) { give(g, nil, onnx.Int64, shape("attention_mask"), gather(index(g, 0))) }, ""},
	}, 4) {
		m, err := onnx.Open(kit.Model("llama__optimum"))
		if err != nil {
			t.Fatal(err)
		}
		c.change(m.Graph)
		_, err = kit.Rewrite(context.Background(), m, rewrite.Options{Cache: rewrite.Cache{Capacity: 8}})
		m.Close()
		switch unfit := (*rewrite.EditError)(nil); {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (!errors.As(err, &unfit) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v lacks %q", c.name, err, c.want)
		}
	}
}
