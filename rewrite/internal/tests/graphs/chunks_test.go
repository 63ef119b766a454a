package graphs_test

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// chunked puts a layer between the embeddings and the first attention layer that adds to each token the sum
// of those before it in a chunk of eight. As exporters write a Mamba layer whose example filled its
// last chunk, it runs at multiples of eight tokens alone.
func chunked(p *patient, size int64) {
	gathers := p.All("Gather")
	embeddings := gathers[slices.IndexFunc(gathers, func(n *onnx.Node) bool { return n.Inputs[1] == "input_ids" })]
	p.After(embeddings.Outputs[0], func(x string) string {
		const width = 64
		weights := make([]float32, width*width)
		for i := range weights {
			weights[i] = float32(math.Sin(float64(i*i))) / 8
		}
		h := p.Op("Reshape", p.Op("MatMul", x, p.Floats([]int64{width, width}, weights...)), p.Ints(0, -1, size, width))
		return p.Op("Add", x, p.Op("Reshape", p.Op("CumSum", h, p.Int(2)), p.Ints(0, -1, width)))
	})
}

// TestChunks: where a model runs, the rewritten one does and gives the same.
func TestChunks(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, name := range []string{"llama__ts17", "llama__dynamo18-nocache"} { // the second gives padded tokens something else than the op
		t.Run(name, func(t *testing.T) { testChunks(t, name) })
	}
}

func testChunks(t *testing.T, name string) {
	p := newPatient(t, name)
	chunked(p, 8)
	original := p.Saved()
	m := kit.OpenModel(t, original)
	if report, err := kit.Rewrite(t.Context(), m, rewrite.Options{}); err != nil || report.Rewritten() != 2 {
		t.Fatalf("%d layers are rewritten, error %v, %+v", report.Rewritten(), err, report.Sites)
	}
	patched := filepath.Join(t.TempDir(), "patched.onnx")
	if err := m.Save(patched, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	eng := kit.Local(t)
	double, path := kit.InDouble(t, p.Model)
	exact := kit.Load(t, eng, double, path, false, nil)
	runs := []*kit.Runnable{kit.Load(t, eng, p.Model, original, true, nil), kit.Load(t, eng, m, patched, true, nil)}
	for _, length := range []int64{8, 24} {
		s := kit.NewSequence(length, 0)
		want := exact.Run(t, s, []int64{length})[0]["logits"].Values()
		var off [2]float64
		for i, r := range runs {
			for k, v := range r.Run(t, s, []int64{length})[0]["logits"].Values() {
				if token := k / (len(want) / len(s.Mask)); s.Mask[token] == 1 {
					off[i] = math.Max(off[i], math.Abs(v-want[k]))
				}
			}
		}
		if !(off[1] <= 2*off[0]) || off[0] == 0 {
			t.Errorf("%d tokens: the rewritten model is off by %g, the original by %g", length, off[1], off[0])
		}
	}
}
