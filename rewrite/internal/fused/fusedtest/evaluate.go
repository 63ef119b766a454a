package fusedtest

import (
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testmodel"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
)

// Evaluate runs nodes of opset 21 and com.microsoft ones on feeds; outputs names
// what is returned.
func Evaluate(t testruntime.TB, nodes []*onnx.Node, constants []*onnx.Tensor, feeds map[string]engine.Tensor, outputs ...string) map[string]engine.Tensor {
	t.Helper()
	out, err := Run(nodes, constants, feeds, outputs...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Agree fails where a node's expansion computes another shape than the node, or
// an element that is off by more than bound.
func Agree(t testruntime.TB, n *onnx.Node, e *fused.Expansion, feeds map[string]engine.Tensor, output string, bound float64) {
	t.Helper()
	want := Evaluate(t, []*onnx.Node{n}, nil, feeds, output)[output]
	got := Evaluate(t, e.Nodes, e.Constants, feeds, output)[output]
	if !slices.Equal(got.Dims, want.Dims) {
		t.Fatal(fmt.Sprintf("the shape is %v, %v was expected", got.Dims, want.Dims))
	}
	y := got.Values()
	for i, w := range want.Values() {
		if d := math.Abs(y[i] - w); !(d <= bound) {
			t.Fatal(fmt.Sprintf("element %d is off by %g", i, d))
		}
	}
}

// Run is Evaluate for nodes that may not run.
func Run(nodes []*onnx.Node, constants []*onnx.Tensor, feeds map[string]engine.Tensor, outputs ...string) (map[string]engine.Tensor, error) {
	m := onnx.New()
	m.RequireIR(10)
	m.RequireOpset("", 21)
	m.RequireOpset("com.microsoft", 1)
	m.Graph.Name, m.Graph.Nodes, m.Graph.Initializers = "test", nodes, constants
	for name, f := range feeds {
		m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: name, Type: f.Type})
	}
	for _, name := range outputs {
		m.Graph.Outputs = append(m.Graph.Outputs, &onnx.ValueInfo{Name: name})
	}
	return testmodel.Run(m, feeds, outputs...)
}
