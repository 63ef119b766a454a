package msmatmul_test

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
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/msmatmul"
)

func TestMain(m *testing.M) {
	testruntime.Examples()
	os.Exit(m.Run())
}

func node(attributes ...*onnx.Attribute) *onnx.Node {
	n := onnx.NewNode("FusedMatMul", []string{"a", "b"}, []string{"y"}, attributes...)
	n.Domain = "com.microsoft"
	return n
}

func context(rank int) fused.Context {
	return fused.Context{
		Type: func(string) onnx.DataType { return onnx.Float },
		Rank: func(string) (int, bool) { return rank, rank > 0 },
	}
}

func normal(rng *rand.Rand, dims []int64) engine.Tensor {
	x := make([]float32, engine.Elements(dims))
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return engine.Float32s(x, dims...)
}

// before returns the dims of an operand that becomes [batch…, rows, columns].
func before(batch []int64, rows, columns int64, swap, first bool) []int64 {
	if swap {
		rows, columns = columns, rows
	}
	if first {
		return slices.Concat([]int64{rows}, batch, []int64{columns})
	}
	return slices.Concat(batch, []int64{rows, columns})
}

// The expansion gives what ONNX Runtime's kernel gives.
func TestAgainstKernel(t *testing.T) {
	testruntime.Require(t)
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		size := rapid.Int64Range(1, 5)
		batch := rapid.SliceOfN(size, 0, 2).Draw(t, "batch")
		rows, inner, columns := size.Draw(t, "rows"), size.Draw(t, "inner"), size.Draw(t, "columns")
		bit := rapid.Int64Range(0, 1)
		transA, transB := bit.Draw(t, "transA"), bit.Draw(t, "transB")
		batchA, batchB := bit.Draw(t, "transBatchA"), bit.Draw(t, "transBatchB")
		if len(batch) == 0 {
			batchA, batchB = 0, 0
		}
		n := node(onnx.IntAttr("transA", transA), onnx.IntAttr("transB", transB), onnx.IntAttr("transBatchA", batchA), onnx.IntAttr("transBatchB", batchB),
			onnx.FloatAttr("alpha", rapid.SampledFrom([]float32{1, 0.25, -3}).Draw(t, "alpha")))
		feeds := map[string]engine.Tensor{
			"a": normal(rng, before(batch, rows, inner, transA == 1, batchA == 1)),
			"b": normal(rng, before(batch, inner, columns, transB == 1, batchB == 1)),
		}
		e, err := msmatmul.Adapter().Expand(n, context(len(batch)+2))
		if err != nil {
			t.Fatal(err)
		}
		fusedtest.Agree(t, n, e, feeds, "y", 4e-6)
	})
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(n *onnx.Node)
		rank   int
		want   string
	}{
		{"unknown rank", func(*onnx.Node) {}, 0, "how many dimensions"},
		{"a vector", func(*onnx.Node) {}, 1, "at least 2"},
		{"transB of 2", func(n *onnx.Node) { n.SetAttribute(onnx.IntAttr("transB", 2)) }, 4, "transB is 2"},
		{"alpha as an integer", func(n *onnx.Node) { n.SetAttribute(onnx.IntAttr("alpha", 2)) }, 4, "alpha is not a float"},
		{"infinite alpha", func(n *onnx.Node) { n.SetAttribute(onnx.FloatAttr("alpha", float32(math.Inf(1)))) }, 4, "alpha is +Inf"},
		{"one operand", func(n *onnx.Node) { n.Inputs = n.Inputs[:1] }, 4, "lacks its input 1"},
		{"a bias", func(n *onnx.Node) { n.Inputs = append(n.Inputs, "c") }, 4, "the node has 3 inputs"},
		{"an activation", func(n *onnx.Node) { n.SetAttribute(onnx.StringAttr("activation", "Relu")) }, 4, "attribute activation"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := node(onnx.IntAttr("transB", 1))
			c.change(n)
			if _, err := msmatmul.Adapter().Expand(n, context(c.rank)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v; %q was expected", err, c.want)
			}
		})
	}
}

func ExampleAdapter() {
	e, err := msmatmul.Adapter().Expand(node(onnx.IntAttr("transB", 1), onnx.FloatAttr("alpha", 0.25)), context(4))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range e.Nodes {
		fmt.Println(p.OpType)
	}
	// Output:
	// Transpose
	// MatMul
	// Mul
}
