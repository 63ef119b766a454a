package msrotary_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testmodel"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/msrotary"
)

func TestMain(m *testing.M) {
	testruntime.Examples()
	os.Exit(m.Run())
}

const rows = 50 // of the tables

// tables are constants of random numbers: the op does not ask for a rotation.
func tables(columns int64, rng *rand.Rand) []*onnx.Tensor {
	var list []*onnx.Tensor
	for _, name := range []string{"cos", "sin"} {
		raw := []byte{}
		for range rows * columns {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(rng.NormFloat64())))
		}
		list = append(list, onnx.NewTensor(name, onnx.Float, []int64{rows, columns}, raw))
	}
	return list
}

func answers(ranks map[string]int, constants []*onnx.Tensor) fused.Context {
	return fused.Context{
		Type:  func(string) onnx.DataType { return onnx.Float },
		Rank:  func(v string) (int, bool) { r, ok := ranks[v]; return r, ok },
		Width: func(string) (int64, bool) { return 0, false },
		Constant: func(v string) *onnx.Tensor {
			for _, t := range constants {
				if t.Name == v {
					return t
				}
			}
			return nil
		},
	}
}

func node(attributes ...*onnx.Attribute) *onnx.Node {
	n := onnx.NewNode("RotaryEmbedding", []string{"x", "positions", "cos", "sin"}, []string{"y"}, attributes...)
	n.Domain = "com.microsoft"
	return n
}

func evaluate(t testruntime.TB, nodes []*onnx.Node, constants []*onnx.Tensor, feeds map[string]engine.Tensor) engine.Tensor {
	t.Helper()
	m := onnx.New()
	m.RequireIR(10)
	m.RequireOpset("", 21)
	m.RequireOpset("com.microsoft", 1)
	m.Graph.Name, m.Graph.Nodes, m.Graph.Initializers = "test", nodes, constants
	for name, f := range feeds {
		m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: name, Type: f.Type})
	}
	m.Graph.Outputs = []*onnx.ValueInfo{{Name: "y"}}
	out, err := testmodel.Run(m, feeds, "y")
	if err != nil {
		t.Fatal(err)
	}
	return out["y"]
}

// The expansion gives what ONNX Runtime's kernel gives.
func TestAgainstKernel(t *testing.T) {
	testruntime.Require(t)
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		batch, length := rapid.Int64Range(1, 3).Draw(t, "batch"), rapid.Int64Range(1, 5).Draw(t, "length")
		heads, size := rapid.Int64Range(1, 3).Draw(t, "heads"), rapid.SampledFrom([]int64{8, 16}).Draw(t, "head size")
		columns := size / 2
		attributes := []*onnx.Attribute{onnx.IntAttr("interleaved", rapid.Int64Range(0, 1).Draw(t, "interleaved"))}
		if rapid.Bool().Draw(t, "partial") {
			columns = size / 4
			attributes = append(attributes, onnx.IntAttr("rotary_embedding_dim", 2*columns), onnx.IntAttr("num_heads", heads))
		} else if rapid.Bool().Draw(t, "num_heads") {
			attributes = append(attributes, onnx.IntAttr("num_heads", heads))
		}
		dims, ranks := []int64{batch, heads, length, size}, map[string]int{"x": 4, "positions": 2}
		if rapid.Bool().Draw(t, "flat") {
			dims, ranks["x"] = []int64{batch, length, heads * size}, 3
		}
		x := make([]float32, engine.Elements(dims))
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		positions := make([]int64, batch*length)
		for i := range positions {
			positions[i] = rng.Int64N(rows)
		}
		feeds := map[string]engine.Tensor{"x": engine.Float32s(x, dims...), "positions": engine.Int64s(positions, batch, length)}
		if rapid.Bool().Draw(t, "offset") {
			ranks["positions"] = 1
			feeds["positions"] = engine.Int64s([]int64{rng.Int64N(rows - length + 1)}, 1)
		}
		n, constants := node(attributes...), tables(columns, rng)
		e, err := msrotary.Adapter().Expand(n, answers(ranks, constants))
		if err != nil {
			t.Fatal(err)
		}
		want := evaluate(t, []*onnx.Node{n}, constants, feeds)
		got := evaluate(t, e.Nodes, append(e.Constants, constants...), feeds)
		if fmt.Sprint(got.Dims) != fmt.Sprint(want.Dims) {
			t.Fatalf("the shape is %v, %v was expected", got.Dims, want.Dims)
		}
		y := got.Values()
		for i, w := range want.Values() {
			if d := math.Abs(y[i] - w); !(d <= 2e-6) {
				t.Fatalf("element %d is off by %g", i, d)
			}
		}
	})
}

func TestRefusals(t *testing.T) {
	flat := onnx.NewTensor("flat", onnx.Float, []int64{8}, make([]byte, 32))
	for _, c := range []struct {
		name   string
		change func(n *onnx.Node, ranks map[string]int)
		want   string
	}{
		{"a scale", func(n *onnx.Node, _ map[string]int) { n.SetAttribute(onnx.FloatAttr("scale", 2)) }, "scale is 2"},
		{"packed rows", func(n *onnx.Node, _ map[string]int) { n.SetAttribute(onnx.IntAttr("is_packed_batching", 1)) }, "is_packed_batching is 1"},
		{"absurd heads", func(n *onnx.Node, _ map[string]int) { n.SetAttribute(onnx.IntAttr("num_heads", 1<<40)) }, "num_heads is 1099511627776"},
		{"a table of one dimension", func(n *onnx.Node, _ map[string]int) { n.Inputs[2] = "flat" }, "has the shape [8]"},
		{"a computed table of unknown shape", func(n *onnx.Node, _ map[string]int) { n.Inputs[3] = "other" }, "does not say its shape"},
		{"another width", func(n *onnx.Node, _ map[string]int) {
			n.SetAttribute(onnx.IntAttr("num_heads", 2))
			n.SetAttribute(onnx.IntAttr("rotary_embedding_dim", 4))
		}, "its tables rotate 8 channels"},
		{"a width without heads", func(n *onnx.Node, _ map[string]int) { n.SetAttribute(onnx.IntAttr("rotary_embedding_dim", 8)) }, "without num_heads"},
		{"no tables", func(n *onnx.Node, _ map[string]int) { n.Inputs = n.Inputs[:2] }, "the node lacks its input 2"},
		{"unknown rank", func(_ *onnx.Node, r map[string]int) { delete(r, "x") }, "how many dimensions"},
		{"unknown positions", func(_ *onnx.Node, r map[string]int) { delete(r, "positions") }, "one dimension or two"},
		{"an unknown attribute", func(n *onnx.Node, _ map[string]int) { n.SetAttribute(onnx.IntAttr("surprise", 1)) }, "attribute surprise"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, ranks := node(), map[string]int{"x": 4, "positions": 2}
			c.change(n, ranks)
			constants := append(tables(4, rand.New(rand.NewPCG(1, 2))), flat)
			if _, err := msrotary.Adapter().Expand(n, answers(ranks, constants)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v; %q was expected", err, c.want)
			}
		})
	}
}

func ExampleAdapter() {
	constants := tables(4, rand.New(rand.NewPCG(1, 2)))
	e, err := msrotary.Adapter().Expand(node(), answers(map[string]int{"x": 4, "positions": 2}, constants))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range e.Nodes {
		fmt.Print(p.OpType, " ")
	}
	// Output: Gather Unsqueeze Gather Unsqueeze Slice Slice Mul Mul Sub Mul Mul Add Concat Identity
}
