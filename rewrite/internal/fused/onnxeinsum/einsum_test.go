package onnxeinsum_test

import (
	"fmt"
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
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/onnxeinsum"
)

func TestMain(m *testing.M) {
	testruntime.Examples()
	os.Exit(m.Run())
}

func node(equation string) *onnx.Node {
	return onnx.NewNode("Einsum", []string{"a", "b"}, []string{"y"}, onnx.StringAttr("equation", equation))
}

// The expansion gives what ONNX Runtime's kernel gives, whatever the order of
// dimensions.
func TestAgainstKernel(t *testing.T) {
	testruntime.Require(t)
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		common := "bhg"[:rapid.IntRange(0, 3).Draw(t, "common")]
		shuffled := func(letters, name string) string {
			return string(rapid.Permutation([]rune(letters)).Draw(t, name))
		}
		first, second := shuffled(common+"id", "first"), shuffled(common+"jd", "second")
		n := node(first + "," + second + " -> " + shuffled(common+"ij", "out"))
		sizes := map[rune]int64{}
		for _, r := range "bhgijd" {
			sizes[r] = rapid.Int64Range(1, 4).Draw(t, string(r))
		}
		normal := func(letters string) engine.Tensor {
			var dims []int64
			for _, r := range letters {
				dims = append(dims, sizes[r])
			}
			x := make([]float32, engine.Elements(dims))
			for i := range x {
				x[i] = float32(rng.NormFloat64())
			}
			return engine.Float32s(x, dims...)
		}
		feeds := map[string]engine.Tensor{"a": normal(first), "b": normal(second)}
		e, err := onnxeinsum.Adapter().Expand(n, fused.Context{})
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(e.Nodes, func(n *onnx.Node) bool { return n.OpType == "Einsum" }) {
			t.Fatalf("%s stays as it is", n.Text("equation", ""))
		}
		fusedtest.Agree(t, n, e, feeds, "y", 4e-6)
	})
}

// What is no product of matrices is evaluated as it stands.
func TestOthersStay(t *testing.T) {
	for _, equation := range []string{"i,j->ij", "bi,bj->bij", "bid,bjd->b", "bid,bjd", "...id,...jd->...ij", "iid,ijd->ij", "iid,jd->ij", "id,jjd->ij", "bid,bjd,bkd->bij",
		"bijd,bjd->bij", "bide,bjde->bij", "bigd,bjd->bigj", "bid,bjdk->bij", "bid,bjd->bijk"} {
		n := node(equation)
		for len(n.Inputs) < 1+strings.Count(equation, ",") {
			n.Inputs = append(n.Inputs, "c")
		}
		e, err := onnxeinsum.Adapter().Expand(n, fused.Context{})
		if err != nil || len(e.Nodes) != 1 || e.Nodes[0] != n {
			t.Errorf("%q becomes %v, %v", equation, e, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(n *onnx.Node)
		want   string
	}{
		{"an attribute of a later version", func(n *onnx.Node) { n.SetAttribute(onnx.FloatAttr("alpha", 2)) }, "attribute alpha"},
		{"an operand too many", func(n *onnx.Node) { n.Inputs = append(n.Inputs, "c") }, "the node has 3 inputs, 2 are known"},
		{"an operand too few", func(n *onnx.Node) { n.Inputs = n.Inputs[:1] }, "lacks its input 1"},
		{"two results", func(n *onnx.Node) { n.Outputs = append(n.Outputs, "z") }, "the node has 2 outputs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := node("bhid,bhjd->bhij")
			c.change(n)
			if _, err := onnxeinsum.Adapter().Expand(n, fused.Context{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v; %q was expected", err, c.want)
			}
		})
	}
}

func ExampleAdapter() {
	e, err := onnxeinsum.Adapter().Expand(node("bihd,bjhd->bhij"), fused.Context{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range e.Nodes {
		fmt.Println(p.OpType, p.Ints("perm"))
	}
	// Output:
	// Transpose [0 2 1 3]
	// Transpose [0 2 3 1]
	// MatMul []
}
