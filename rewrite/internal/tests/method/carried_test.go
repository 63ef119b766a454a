package method_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestCarriedScaling: a scaling on a model that carries one gives what
// transformers gives with it alone (base=original) or with both
// (base=carried), and is refused where it does not say which.
func TestCarriedScaling(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	const (
		yarn   = "yarn:factor=2,original_max_position_embeddings=16"
		yarn4  = "yarn:factor=4,original_max_position_embeddings=16"
		llama3 = "llama3:factor=4,original_max_position_embeddings=16,low_freq_factor=1,high_freq_factor=4"
		linear = "linear:factor=2"
	)
	for _, c := range testsample.Of(t, []struct{ export, carried, spec, golden string }{
		{"llama__dynamo18", yarn, yarn4 + ",base=original", "yarn4"},
		{"llama__dynamo18-nocache", yarn, yarn4 + ",base=original", "yarn4"}, // its gain is a part of the scale
		{"gpt_neox__optimum", yarn, yarn4 + ",base=original", "yarn4"},       // a part of each head is turned
		{"llama__genai-fp32", yarn, "linear:factor=4,base=original", "linear4"},
		{"qwen3__dynamo23", linear, yarn4 + ",base=original", "yarn4"},
		{"llama__optimum", llama3, "theta:rope_theta=500000,base=original", "theta500k"},
		{"llama__dynamo18", linear, linear + ",base=carried", "linear4"},
	}, 2) {
		t.Run(c.export+"/"+c.carried+"/"+c.spec, func(t *testing.T) {
			architecture, _, _ := strings.Cut(c.export, "__")
			carrying, _ := kit.Patch(t, kit.Model(c.export), rewrite.Options{Target: rewrite.PlainONNX, Context: rope.Context{Length: 64}, Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, c.carried)}})
			carrying = withoutRecord(t, carrying) // as an exporter writes it
			for _, target := range []rewrite.Target{rewrite.Ops, rewrite.PlainONNX} {
				opts := rewrite.Options{Target: target, Context: rope.Context{Length: 64}, LayerEdits: []rewrite.LayerEdit{rewrite.AllLayers(kit.Spec(t, rope.ScalingAxis, c.spec))}}
				path, report := kit.Patch(t, carrying, opts)
				if s := report.Sites[0]; s.Scaling != c.carried || s.Theta != 10000 {
					t.Errorf("%s is seen as %q on %g", c.carried, s.Scaling, s.Theta)
				}
				d := kit.Open(t, path)
				for _, padded := range []bool{false, true} {
					if padded && strings.Contains(c.export, "genai") {
						continue // padding on the right only
					}
					g := kit.ReadGolden(t, architecture, c.golden, padded)
					for way, chunks := range kit.Ways {
						if len(chunks) > 1 && !d.Cached() {
							continue
						}
						if off := g.Distance(t, kit.Chunked(t, d, g.Sequence, chunks)); !(off <= 1e-4) {
							t.Errorf("%s, %s, padded %v: off by %.2g from transformers", target, way, padded, off)
						}
					}
				}
			}
			m, err := onnx.Open(carrying)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			_, err = kit.Rewrite(context.Background(), m, rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=3")}})
			var refused *rewrite.EditError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), "--scaling linear:factor=3,base=original") || !strings.Contains(err.Error(), "--scaling linear:factor=3,base=carried") {
				t.Errorf("without base=: %v", err)
			}
		})
	}
}

// withoutRecord saves a model without the record of its rewrite.
func withoutRecord(t *testing.T, path string) string {
	t.Helper()
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.RemoveMetadata(provenance.Key)
	out := filepath.Join(t.TempDir(), "carrying.onnx")
	if err := m.Save(out, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return out
}
