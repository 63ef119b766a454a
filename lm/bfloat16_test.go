package lm_test

import (
	"context"
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Caches and logits of bfloat16, of which ONNX Runtime's CPU provider computes little more
// than this: the cache keeps each token twice, and the logits are the sum of the cache and
// the token by 1, 2, 3 and 4. All of it can be written in 8 bits.
func TestBFloat16(t *testing.T) {
	testruntime.Require(t)
	m := onnx.New()
	m.RequireIR(8)
	m.RequireOpset("", 17)
	g := m.Graph
	g.Name = "sums"
	batch, tokens := onnx.Dim{Param: "batch"}, onnx.Dim{Param: "tokens"}
	cache := func(name, rows string) *onnx.ValueInfo {
		return onnx.NewValueInfo(name, onnx.BFloat16, batch, onnx.Dim{Value: 1}, onnx.Dim{Param: rows}, onnx.Dim{Value: 2})
	}
	g.AddInput(onnx.NewValueInfo("input_ids", onnx.Int64, batch, tokens))
	g.AddOutput(onnx.NewValueInfo("logits", onnx.BFloat16, batch, tokens, onnx.Dim{Value: 4}))
	node := func(op string, inputs []string, output string, attrs ...*onnx.Attribute) {
		g.Nodes = append(g.Nodes, onnx.NewNode(op, inputs, []string{output}, attrs...))
	}
	to := func(x onnx.DataType) *onnx.Attribute { return onnx.IntAttr("to", int64(x)) }
	ints := func(name string, values ...int64) {
		var b []byte
		for _, v := range values {
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		}
		g.AddInitializer(onnx.NewTensor(name, onnx.Int64, []int64{int64(len(values))}, b))
	}
	var factors []byte
	for _, f := range []float32{1, 2, 3, 4} {
		factors = binary.LittleEndian.AppendUint32(factors, math.Float32bits(f))
	}
	g.AddInitializer(onnx.NewTensor("factors", onnx.Float, []int64{4}, factors))
	ints("rows", 0, 1, -1, 1)
	ints("last", 2) // axis
	node("Cast", []string{"input_ids"}, "numbers", to(onnx.Float))
	node("Reshape", []string{"numbers", "rows"}, "row")
	node("Concat", []string{"row", "row"}, "twice", onnx.IntAttr("axis", 3))
	node("Cast", []string{"twice"}, "new", to(onnx.BFloat16))
	for _, part := range []string{"key", "value"} {
		past, present := "past_key_values.0."+part, "present.0."+part
		g.AddInput(cache(past, "past"))
		g.AddOutput(cache(present, "total"))
		node("Concat", []string{past, "new"}, present, onnx.IntAttr("axis", 2))
	}
	node("Cast", []string{"present.0.key"}, "all", to(onnx.Float))
	node("ReduceSum", []string{"all"}, "sum", onnx.IntAttr("keepdims", 0))
	node("Unsqueeze", []string{"numbers", "last"}, "column")
	node("Mul", []string{"column", "factors"}, "scaled")
	node("Add", []string{"scaled", "sum"}, "scores")
	node("Cast", []string{"scores"}, "logits", to(onnx.BFloat16))
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := m.Save(path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	d := sequence(t, path, lm.Options{Threads: 1})
	if d.Decoder().TokenBytes() != 8 {
		t.Errorf("a token takes %d bytes", d.Decoder().TokenBytes())
	}
	for range 2 {
		logits, err := d.Prefill(context.Background(), lm.Row{Tokens: []int64{1, 2, 3}})
		if err != nil {
			t.Fatal(err)
		}
		if want := []float32{15, 18, 21, 24}; !slices.Equal(logits.Last(), want) { // 2·(1+2+3) + 3·n
			t.Errorf("%v, want %v", logits.Last(), want)
		}
		if logits, err = d.Forward(context.Background(), lm.Row{Tokens: []int64{2}}); err != nil {
			t.Fatal(err)
		}
		if want := []float32{18, 20, 22, 24}; !slices.Equal(logits.Last(), want) {
			t.Errorf("%v, want %v", logits.Last(), want)
		}
		if err := d.Truncate(0); err != nil {
			t.Fatal(err)
		}
	}
}
