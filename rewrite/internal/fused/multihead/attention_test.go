package multihead_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/fusedtest"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/multihead"
)

func TestMain(m *testing.M) {
	testruntime.Examples()
	os.Exit(m.Run())
}

func node(attributes ...*onnx.Attribute) *onnx.Node {
	n := onnx.NewNode("MultiHeadAttention", []string{"query", "key", "value", "", "", "", "", ""}, []string{"y"}, attributes...)
	n.Domain = "com.microsoft"
	return n
}

// answers tells the shapes of what is fed.
func answers(feeds map[string]engine.Tensor) fused.Context {
	return fused.Context{
		Type: func(v string) onnx.DataType { return feeds[v].Type },
		Rank: func(v string) (int, bool) { f, ok := feeds[v]; return len(f.Dims), ok },
		Width: func(v string) (int64, bool) {
			f, ok := feeds[v]
			if !ok {
				return 0, false
			}
			return f.Dims[len(f.Dims)-1], true
		},
	}
}

type draws struct {
	t   *rapid.T
	rng *rand.Rand
}

func (d draws) size(name string, low, high int64) int64 {
	return rapid.Int64Range(low, high).Draw(d.t, name)
}
func (d draws) maybe(name string) bool { return rapid.Bool().Draw(d.t, name) }

func (d draws) normal(dims ...int64) engine.Tensor {
	x := make([]float32, engine.Elements(dims))
	for i := range x {
		x[i] = float32(d.rng.NormFloat64())
	}
	return engine.Float32s(x, dims...)
}

// mask leaves every query its first key.
func (d draws) mask(dims ...int64) engine.Tensor {
	last := dims[len(dims)-1]
	x := make([]int64, engine.Elements(dims))
	for i := range x {
		if x[i] = d.rng.Int64N(2); int64(i)%last == 0 {
			x[i] = 1
		}
	}
	out, _ := engine.Integers(onnx.Int32, x, dims...)
	return out
}

// The expansion gives what ONNX Runtime's kernel gives.
func TestAgainstKernel(t *testing.T) {
	testruntime.Require(t)
	rapid.Check(t, func(t *rapid.T) {
		d := draws{t, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))}
		batch, length, heads := d.size("batch", 1, 3), d.size("length", 1, 5), d.size("heads", 1, 4)
		size, valueSize := d.size("head size", 1, 9), d.size("value size", 1, 9)
		n := node(onnx.IntAttr("num_heads", heads))
		feeds := map[string]engine.Tensor{"query": d.normal(batch, length, heads*size)}
		keys := length
		switch rapid.SampledFrom([]string{"plain", "rank 4", "bias", "past", "present"}).Draw(t, "form") {
		case "plain":
			keys = d.size("keys", length, 7)
			feeds["key"], feeds["value"] = d.normal(batch, keys, heads*size), d.normal(batch, keys, heads*valueSize)
		case "rank 4":
			keys = d.size("keys", length, 7)
			feeds["key"], feeds["value"] = d.normal(batch, heads, keys, size), d.normal(batch, heads, keys, size)
		case "bias":
			n.Inputs[3] = "bias"
			feeds["key"], feeds["value"] = d.normal(batch, keys, heads*size), d.normal(batch, keys, heads*valueSize)
			feeds["bias"] = d.normal(heads * (2*size + valueSize))
		case "past":
			past := d.size("past", 0, 6)
			keys += past
			valueSize = size
			n.Inputs[6], n.Inputs[7], n.Outputs = "past_key", "past_value", []string{"y", "present_key", "present_value"}
			feeds["key"], feeds["value"] = d.normal(batch, length, heads*size), d.normal(batch, length, heads*size)
			feeds["past_key"], feeds["past_value"] = d.normal(batch, heads, past, size), d.normal(batch, heads, past, size)
		case "present":
			n.Outputs = []string{"y", "present_key", "present_value"}
			feeds["key"], feeds["value"] = d.normal(batch, length, heads*size), d.normal(batch, length, heads*valueSize)
		}
		switch rapid.SampledFrom([]string{"none", "rows", "table"}).Draw(t, "padding") {
		case "rows":
			n.Inputs[4], feeds["padding"] = "padding", d.mask(batch, keys)
		case "table":
			n.Inputs[4], feeds["padding"] = "padding", d.mask(batch, length, keys)
		}
		if d.maybe("attention bias") {
			dims := []int64{1, 1, length, keys}
			if d.maybe("of each row") {
				dims[0] = batch
			}
			if d.maybe("of each head") {
				dims[1] = heads
			}
			n.Inputs[5], feeds["attention_bias"] = "attention_bias", d.normal(dims...)
		}
		if d.maybe("unidirectional") {
			n.SetAttribute(onnx.IntAttr("unidirectional", 1))
		}
		if d.maybe("scale") {
			n.SetAttribute(onnx.FloatAttr("scale", 0.3))
		}
		if d.maybe("filter") {
			n.SetAttribute(onnx.FloatAttr("mask_filter_value", -7))
		}
		e, err := multihead.Adapter().Expand(n, answers(feeds))
		if err != nil {
			t.Fatal(err)
		}
		want := fusedtest.Evaluate(t, []*onnx.Node{n}, nil, feeds, n.Outputs...)
		got := fusedtest.Evaluate(t, e.Nodes, e.Constants, feeds, n.Outputs...)
		for _, name := range n.Outputs {
			if !slices.Equal(got[name].Dims, want[name].Dims) {
				t.Fatalf("%s has the shape %v, %v was expected", name, got[name].Dims, want[name].Dims)
			}
			y := got[name].Values()
			for i, w := range want[name].Values() {
				if off := math.Abs(y[i] - w); !(off <= 4e-6) {
					t.Fatalf("element %d of %s is %g, %g was expected", i, name, y[i], w)
				}
			}
		}
	})
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(n *onnx.Node, feeds map[string]engine.Tensor)
		want   string
	}{
		{"packed", func(n *onnx.Node, _ map[string]engine.Tensor) { n.Inputs = n.Inputs[:1] }, "packed into one input"},
		{"no heads", func(n *onnx.Node, _ map[string]engine.Tensor) { n.Attributes = nil }, "lacks its attribute num_heads"},
		{"absurd heads", func(n *onnx.Node, _ map[string]engine.Tensor) { n.SetAttribute(onnx.IntAttr("num_heads", 1<<40)) }, "num_heads is 1099511627776"},
		{"negative scale", func(n *onnx.Node, _ map[string]engine.Tensor) { n.SetAttribute(onnx.FloatAttr("scale", -1)) }, "scale is -1"},
		{"an unknown attribute", func(n *onnx.Node, _ map[string]engine.Tensor) { n.SetAttribute(onnx.IntAttr("surprise", 1)) }, "attribute surprise"},
		{"scores wanted", func(n *onnx.Node, _ map[string]engine.Tensor) { n.Outputs = []string{"y", "", "", "qk"} }, "outputs the product"},
		{"past key alone", func(n *onnx.Node, _ map[string]engine.Tensor) { n.Inputs[6] = "past" }, "only one of"},
		{"past without present", func(n *onnx.Node, _ map[string]engine.Tensor) { n.Inputs[6], n.Inputs[7] = "past", "past" }, "without present"},
		{"a length of the past", func(n *onnx.Node, _ map[string]engine.Tensor) { n.Inputs = append(n.Inputs, "length") }, "past_sequence_length"},
		{"key lengths", func(n *onnx.Node, feeds map[string]engine.Tensor) {
			n.Inputs[4], feeds["lengths"] = "lengths", engine.Int64s([]int64{1}, 1)
		}, "its key_padding_mask \"lengths\" has 1 dimensions"},
		{"unknown rank", func(n *onnx.Node, feeds map[string]engine.Tensor) { delete(feeds, "key") }, "how many dimensions its key"},
		{"packed key and value", func(n *onnx.Node, feeds map[string]engine.Tensor) {
			feeds["key"] = engine.Float32s(make([]float32, 8), 1, 1, 1, 2, 4)
		}, "its key \"key\" has 5 dimensions"},
	} {
		t.Run(c.name, func(t *testing.T) {
			feeds := map[string]engine.Tensor{}
			for _, name := range []string{"query", "key", "value"} {
				feeds[name] = engine.Float32s(make([]float32, 8), 1, 2, 4)
			}
			n := node(onnx.IntAttr("num_heads", 2))
			c.change(n, feeds)
			if _, err := multihead.Adapter().Expand(n, answers(feeds)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v; %q was expected", err, c.want)
			}
		})
	}
}

func ExampleAdapter() {
	feeds := map[string]engine.Tensor{}
	for _, name := range []string{"query", "key", "value"} {
		feeds[name] = engine.Float32s(make([]float32, 8), 1, 2, 4)
	}
	e, err := multihead.Adapter().Expand(node(onnx.IntAttr("num_heads", 2)), answers(feeds))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range e.Nodes {
		switch p.OpType {
		case "MatMul", "Mul", "Softmax":
			fmt.Println(p.OpType)
		}
	}
	// Output:
	// MatMul
	// Mul
	// Softmax
	// MatMul
}
