package golden_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// otherSense turns pairs the other way: all, or every second one.
func (p *patient) otherSense(all bool) {
	_, sin := p.Tables()
	p.After(sin.Outputs[0], func(v string) string {
		return p.Op("Mul", v, p.PerPair(func(f []float32) {
			for i := range f {
				if all || i%2 == 1 {
					f[i] = -1
				}
			}
		}))
	})
}

// TestOtherSense: in a model that turns pairs the other way a method gives what
// turning the pairs of a model with that method the other way gives.
func TestOtherSense(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	written := func(t *testing.T, path, spec string, target rewrite.Target) (string, *rewrite.Report) {
		t.Helper()
		s, err := rope.ParseSpec(rope.ScalingAxis, spec)
		if err != nil {
			t.Fatal(err)
		}
		m := kit.OpenModel(t, path)
		report, err := kit.Rewrite(context.Background(), m, rewrite.Options{Edits: []rope.Spec{s}, Target: target, Context: rope.Context{Length: 64}, Numerics: rewrite.Numerics{Angles: "original"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, site := range report.Sites {
			if site.Status != rewrite.Rewritten || site.Theta != 10000 {
				t.Errorf("layer %d is %s, theta %g: %s", site.Layer, site.Status, site.Theta, site.Reason)
			}
		}
		out := filepath.Join(t.TempDir(), "model.onnx")
		if err := m.Save(out, onnx.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
		return out, report
	}
	for _, c := range testsample.Of(t, []struct {
		model, spec string
		all         bool
	}{
		{"llama__dynamo18", "yarn:factor=4,original_max_position_embeddings=16", true},
		{"llama__optimum", "theta:rope_theta=500000", true},
		{"gpt_neox__dynamo18", "llama3:factor=4,low_freq_factor=1,high_freq_factor=4,original_max_position_embeddings=16", false},
		{"llama__dynamo18-fp16", "yarn:factor=4,original_max_position_embeddings=16", false},
	}, 2) {
		t.Run(c.model+"/"+c.spec, func(t *testing.T) {
			p := newPatient(t, c.model)
			p.otherSense(c.all)
			other := p.Saved()
			scaled, _ := written(t, filepath.Join("..", "..", "..", "..", "testdata", "models", c.model, "model.onnx"), c.spec, rewrite.PlainONNX)
			p = patientAt(t, scaled)
			p.otherSense(c.all)
			truth := p.Saved()
			for _, target := range []rewrite.Target{rewrite.Ops, rewrite.PlainONNX} {
				patched, report := written(t, other, c.spec, target)
				if w := report.Sites[0].Attention.Encoding.Frequencies[1]; w >= 0 {
					t.Errorf("pair 1 is measured to turn by %g", w)
				}
				kit.CompareModels(t, eng, truth, patched, 1000)
			}
		})
	}
}
