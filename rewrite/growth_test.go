package rewrite

import (
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/largemodel"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// grown returns a small decoder of some layers in whose graph something is many.
func grown(t *testing.T, layers int64, crowd largemodel.Crowd) *onnx.Model {
	t.Helper()
	size := largemodel.Llama{Layers: layers, Heads: 4, KVHeads: 2, HeadSize: 8, Intermediate: 16, Vocabulary: 32, Theta: 10000, Crowd: crowd}
	path, _, err := size.Write(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	return open(t, path)
}

// TestGrowsWithTheGraph: what is allocated to read a graph, and to find, delimit
// and compare its attentions, grows as the graph does and not with its square.
func TestGrowsWithTheGraph(t *testing.T) {
	for name, model := range map[string]func(n int64) *onnx.Model{
		"nodes":     func(n int64) *onnx.Model { return grown(t, 2, largemodel.Crowd{Plain: 10 * n}) },
		"softmaxes": func(n int64) *onnx.Model { return grown(t, 2, largemodel.Crowd{Softmaxes: 10 * n}) },
		"softmaxes of one product": func(n int64) *onnx.Model {
			return grown(t, 2, largemodel.Crowd{Probabilities: 10 * n})
		},
		"layers of many angle nodes": func(n int64) *onnx.Model { return grown(t, n, largemodel.Crowd{Angles: 50 * n}) },
		"layers of many mask nodes":  func(n int64) *onnx.Model { return grown(t, n, largemodel.Crowd{MaskProducts: 50 * n}) },
	} {
		count := func(n int64) float64 {
			m := model(n)
			return testing.AllocsPerRun(1, func() {
				parts, err := scopes(m)
				if err != nil {
					t.Fatal(err)
				}
				shared := map[string][32]byte{}
				for _, f := range parts[0].delimit(&Report{}) {
					f.site.hash(parts[0].view, &shapeTable{}, shared)
				}
			})
		}
		if small, large := count(20), count(80); large > 6*small {
			t.Errorf("%s: four times as many take %.0f allocations instead of %.0f", name, large, small)
		}
	}
}
