package rmsnorm_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testmodel"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/fusedtest"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/rmsnorm"
)

func TestMain(m *testing.M) {
	testruntime.Examples()
	os.Exit(m.Run())
}

func node(attributes ...*onnx.Attribute) *onnx.Node {
	return onnx.NewNode("SimplifiedLayerNormalization", []string{"x", "scale"}, []string{"y"}, attributes...)
}

func context(rank int, opset int64) fused.Context {
	return fused.Context{
		Opset: opset,
		Type:  func(string) onnx.DataType { return onnx.Float },
		Rank:  func(string) (int, bool) { return rank, rank > 0 },
	}
}

// The expansion gives what ONNX Runtime's kernel gives.
func TestAgainstKernel(t *testing.T) {
	testruntime.Require(t)
	rng := rand.New(rand.NewPCG(1, 2))
	normal := func(dims ...int64) engine.Tensor {
		x := make([]float32, engine.Elements(dims))
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		return engine.Float32s(x, dims...)
	}
	for name, c := range map[string]struct {
		dims []int64
		attr []*onnx.Attribute
	}{
		"heads":         {[]int64{2, 3, 4, 8}, nil},
		"the last axis": {[]int64{2, 3, 5}, []*onnx.Attribute{onnx.IntAttr("axis", 2), onnx.FloatAttr("epsilon", 0.25)}},
		"from behind":   {[]int64{7, 6}, []*onnx.Attribute{onnx.IntAttr("axis", -1), onnx.IntAttr("stash_type", 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			n := node(c.attr...)
			e, err := rmsnorm.Simplified().Expand(n, context(len(c.dims), 21))
			if err != nil {
				t.Fatal(err)
			}
			feeds := map[string]engine.Tensor{"x": normal(c.dims...), "scale": normal(c.dims[len(c.dims)-1])}
			fusedtest.Agree(t, n, e, feeds, "y", 4e-6)
		})
	}
}

// RMSNormalization of opset 23, in float32 and in float16, whose root is of float32.
func TestStandardAgainstKernel(t *testing.T) {
	testruntime.Require(t)
	rng := rand.New(rand.NewPCG(3, 4))
	for _, element := range []onnx.DataType{onnx.Float, onnx.Float16} {
		n := onnx.NewNode("RMSNormalization", []string{"x", "scale"}, []string{"y"}, onnx.FloatAttr("epsilon", 1e-6))
		c := context(3, 23)
		c.Type = func(string) onnx.DataType { return element }
		e, err := rmsnorm.Standard().Expand(n, c)
		if err != nil {
			t.Fatal(err)
		}
		values := func(dims ...int64) engine.Tensor {
			x := make([]float32, engine.Elements(dims))
			for i := range x {
				x[i] = float32(rng.IntN(64)-32) / 8 // float16 has them
			}
			return engine.Float32s(x, dims...)
		}
		feeds := map[string]engine.Tensor{"x": values(2, 5, 8), "scale": values(8)}
		run := func(nodes []*onnx.Node, constants []*onnx.Tensor) []float64 {
			m := onnx.New()
			m.RequireIR(10)
			m.RequireOpset("", 23)
			m.Graph.Name, m.Graph.Initializers = "norm", constants
			cast := func(from, to string, as onnx.DataType) *onnx.Node {
				return onnx.NewNode("Cast", []string{from}, []string{to}, onnx.IntAttr("to", int64(as)))
			}
			m.Graph.Nodes = append([]*onnx.Node{cast("x32", "x", element), cast("scale32", "scale", element)}, nodes...)
			m.Graph.Nodes = append(m.Graph.Nodes, cast("y", "y32", onnx.Float))
			for name := range feeds {
				m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: name + "32", Type: onnx.Float})
			}
			m.Graph.Outputs = []*onnx.ValueInfo{{Name: "y32"}}
			out, err := testmodel.Run(m, map[string]engine.Tensor{"x32": feeds["x"], "scale32": feeds["scale"]}, "y32")
			if err != nil {
				t.Fatal(err)
			}
			return out["y32"].Values()
		}
		want, got := run([]*onnx.Node{n}, nil), run(e.Nodes, e.Constants)
		slack := map[onnx.DataType]float64{onnx.Float: 4e-6, onnx.Float16: 1.0 / 64}[element]
		for i, w := range want {
			if d := math.Abs(got[i] - w); !(d <= slack) {
				t.Errorf("%v: element %d is off by %g", element, i, d)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		change func(n *onnx.Node)
		rank   int
		want   string
	}{
		"no scale":           {func(n *onnx.Node) { n.Inputs = n.Inputs[:1] }, 4, "lacks its input 1"},
		"a bias":             {func(n *onnx.Node) { n.Inputs = append(n.Inputs, "bias") }, 4, "the node has 3 inputs"},
		"another precision":  {func(n *onnx.Node) { n.SetAttribute(onnx.IntAttr("stash_type", 10)) }, 4, "stash_type is 10"},
		"an axis beyond all": {func(n *onnx.Node) { n.SetAttribute(onnx.IntAttr("axis", 4)) }, 4, "its axis is 4"},
		"unknown rank":       {func(n *onnx.Node) { n.SetAttribute(onnx.IntAttr("axis", 3)) }, 0, "how many dimensions"},
		"other attributes":   {func(n *onnx.Node) { n.SetAttribute(onnx.IntAttr("centred", 1)) }, 4, "attribute centred"},
	} {
		t.Run(name, func(t *testing.T) {
			n := node()
			c.change(n)
			if _, err := rmsnorm.Simplified().Expand(n, context(c.rank, 17)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v; %q was expected", err, c.want)
			}
		})
	}
}

func ExampleSimplified() {
	e, err := rmsnorm.Simplified().Expand(node(), context(4, 17))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range e.Nodes {
		fmt.Println(p.OpType)
	}
	// Output:
	// Mul
	// ReduceMean
	// Add
	// Sqrt
	// Div
	// Mul
}
