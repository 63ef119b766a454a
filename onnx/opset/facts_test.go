package opset

import (
	"path/filepath"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testmodel"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// What is known of the values of real exports without running them is what ONNX Runtime
// sees when it runs them, and much is known.
func TestFacts(t *testing.T) {
	testruntime.Require(t)
	for export, share := range map[string]float64{"llama__ts17": 1, "gptj__ts17": 0.8, "llama__dynamo18-nocache": 0.4} {
		t.Run(export, func(t *testing.T) {
			m, err := onnx.Open(filepath.Join("..", "..", "testdata", "models", export, "model.onnx"))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			f := newFacts(nil)
			f.declare(m.Graph)
			var values []string
			made, known := 0, 0
			for _, n := range m.Graph.Nodes {
				f.learn(n)
				for _, v := range n.Outputs {
					made++
					if !f.of(v).ranked {
						continue
					}
					known++
					if f.of(v).axes > 0 { // the tests read no scalars
						values = append(values, v)
					}
				}
			}
			if float64(known) < share*float64(made) {
				t.Errorf("the ranks of %d of %d values are known", known, made)
			}
			for name, got := range outputs(t, m, values) {
				of := f.of(name)
				if of.axes != len(got.Dims) || of.sized && of.length != got.Dims[0] || of.element != onnx.Undefined && of.element != got.Type {
					t.Errorf("%s is %v %v, and %+v was believed", name, got.Type, got.Dims, of)
				}
			}
		})
	}
}

// outputs runs a model without a cache and returns values inside it.
func outputs(t *testing.T, m *onnx.Model, values []string) map[string]engine.Tensor {
	t.Helper()
	feeds := map[string]engine.Tensor{}
	for _, v := range m.Graph.Inputs {
		feeds[v.Name] = engine.Int64s([]int64{1, 1, 1, 1, 1, 1}, 2, 3)
	}
	m.Graph.Outputs = nil
	for _, v := range values {
		m.Graph.AddOutput(&onnx.ValueInfo{Name: v})
	}
	out, err := testmodel.Run(m, feeds, values...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
