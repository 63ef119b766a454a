package golden_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestGoldensCounted: exports of the GenAI builder, which count the tokens of
// their rows, against transformers and the eager reference of STRING.
func TestGoldensCounted(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	countedWays := map[string][]int64{
		"prefill":        {48},
		"two chunks":     {17, 31},
		"token by token": append([]int64{11}, slices.Repeat([]int64{1}, 37)...),
		"then decode":    append([]int64{32}, slices.Repeat([]int64{1}, 16)...),
	}
	worst := func(t *testing.T, path, key string) (off float64) {
		d, err := decoder.Open(context.Background(), kit.Local(t), path, decoder.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		for _, padded := range []bool{false, true} {
			g := kit.ReadGolden(t, "llama", key, padded)
			for way, chunks := range countedWays {
				s, back := g.RightPadded(chunks[0])
				logits, err := d.Chunks(context.Background(), s, chunks...)
				if err != nil {
					t.Fatal(err)
				}
				got := g.Distance(t, back(logits))
				t.Logf("%s, padded %v: off by %.2g", way, padded, got)
				off = math.Max(off, got)
			}
		}
		return off
	}
	shortError := sync.OnceValue(func() float64 { return worst(t, kit.Model("llama__genai-fp16"), "plain") })
	for _, m := range testsample.Of(t, []struct {
		golden string
		axis   rope.Axis
		method string
	}{
		{golden: "plain"},
		{"linear4", rope.ScalingAxis, "linear:factor=4"},
		{"yarn4", rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=16"},
		{"theta500k", rope.ScalingAxis, "theta:rope_theta=500000"},
		{"string", rope.PositionsAxis, "string:shift=16,window=4"},
	}, 2) {
		for _, precision := range []string{"fp32", "fp16"} {
			t.Run(precision+"/"+m.golden, func(t *testing.T) {
				var opts rewrite.Options
				if m.method != "" {
					opts.Edits = []rope.Spec{kit.Spec(t, m.axis, m.method)}
				}
				bound := 1e-4
				if precision == "fp16" { // twice what the model is off by before it is patched
					bound = 2 * shortError()
				}
				patched, _ := kit.Patch(t, kit.Model("llama__genai-"+precision), opts)
				if got := worst(t, patched, m.golden); !(got <= bound) {
					t.Errorf("off by %.2g, at most %.2g was expected", got, bound)
				}
			})
		}
	}
}

// TestQuantisedWeights: what an int4 model computes has no golden but itself. Its products
// round activations to 8 bits (accuracy_level 4), where the last bit of a number decides
// about a whole step: it is compared with itself in float32, and from that the patched model
// may be off by twice what the original is.
func TestQuantisedWeights(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	rounded := kit.Model("llama__genai-int4")
	original := inFloat32(t, rounded)
	patched, _ := kit.Patch(t, original, rewrite.Options{})
	s := kit.ReadGolden(t, "llama", "plain", false).Sequence
	exact := kit.Chunked(t, kit.Open(t, original), s, kit.ThenDecode)
	own := kit.Largest(kit.Chunked(t, kit.Open(t, rounded), s, kit.ThenDecode), exact)
	patchedRounded, _ := kit.Patch(t, rounded, rewrite.Options{})
	if off := kit.Largest(kit.Chunked(t, kit.Open(t, patchedRounded), s, kit.ThenDecode), exact); !(own > 1e-3 && off <= 2*own) {
		t.Errorf("with rounded activations off by %.2g, the original by %.2g", off, own)
	}
	result := kit.Validated(t, original, patched, 48)
	for _, c := range result.Cases {
		t.Logf("%s: %.1e of the range", c.Name, c.Share())
	}
	if !result.Same || len(result.Cases) != 3 {
		t.Errorf("%+v", result)
	}
	other, _ := kit.Patch(t, original, rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=2")}})
	if result = kit.Validated(t, original, other, 48); result.Same {
		t.Errorf("a model that is not the same passes: %+v", result)
	}
}

// inFloat32 is a model of 4-bit weights whose products leave activations in float32.
func inFloat32(t *testing.T, path string) string {
	t.Helper()
	m := kit.OpenModel(t, path)
	for n := range m.Graph.AllNodes() {
		if n.OpType == "MatMulNBits" {
			n.SetAttribute(onnx.IntAttr("accuracy_level", 1))
		}
	}
	data, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "model.onnx")
	config, err := os.ReadFile(filepath.Join(filepath.Dir(path), "config.json"))
	if err == nil {
		err = os.WriteFile(filepath.Join(filepath.Dir(to), "config.json"), config, 0o644)
	}
	if err == nil {
		err = os.WriteFile(to, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}
