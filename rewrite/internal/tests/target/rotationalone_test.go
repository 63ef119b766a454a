package target_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// unprovable is an export whose scores are scaled where there are more than 4096 tokens, in every layer:
// its attention cannot be measured, and with fewer tokens it computes what it did.
func unprovable(t *testing.T, name string) *kit.Patient {
	t.Helper()
	p := kit.NewPatient(t, name)
	tokens := p.Cast(p.Size("attention_mask", 1), onnx.Float)
	factor := p.Cast(p.Op("Max", p.Op("Div", tokens, p.Float(4096)), p.Float(1)), p.Graph.Outputs[0].Type)
	for _, n := range p.All("Softmax") {
		p.Into(n, 0, func(old string) string { return p.Op("Mul", old, factor) })
	}
	return p
}

// rotations counts the nodes of a graph that rotate by themselves.
func rotations(m *onnx.Model) (rotary, sines int) {
	for n := range m.Graph.AllNodes() {
		switch {
		case n.Domain == customop.Domain && strings.HasPrefix(n.OpType, customop.RotarySpec.Name):
			rotary++
		case n.OpType == "Sin":
			sines++
		}
	}
	return rotary, sines
}

// TestRotationAlone: where an attention cannot be measured, its rotation is replaced by the op Rotary, and
// a scaling reaches it.
func TestRotationAlone(t *testing.T) {
	testruntime.Require(t)
	for _, name := range testsample.Of(t, []string{"llama__optimum", "llama__dynamo18", "gpt_neox__dynamo18", "gptj__ts17", "qwen3__dynamo18", "cohere__dynamo18",
		"llama__ts17", "llama__dynamo18-nocache", "gemma3_text__dynamo18", "gpt_neox__optimum",
		"llama__dynamo18-fp16", "mistral__dynamo18-eager"}, 3) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := unprovable(t, name).Saved()
			m := kit.OpenModel(t, path)
			if _, err := kit.Rewrite(context.Background(), m, rewrite.Options{}); err == nil {
				t.Fatal("it is no error that only rotations are replaced")
			}
			report, err := kit.Rewrite(context.Background(), m, rewrite.Options{AllowUnchanged: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range report.Sites {
				if s.Status != rewrite.Rotation || s.Form != rewrite.Rotary || s.Kind != rewrite.NotMeasured || s.Proof == nil || !s.RotationOnly || s.Reason == "" {
					t.Fatalf("layer %d is %s (%s, %s), with proof %v: %s", s.Layer, s.Status, s.Form, s.Kind, s.Proof, s.Reason)
				}
			}
			if rotary, sines := rotations(m); rotary != len(report.Sites) || sines > 0 {
				t.Errorf("%d ops rotate %d layers, and %d sines are computed outside them", rotary, len(report.Sites), sines)
			}
			if report.Fallback == nil || len(report.Fallback.Ops) == 0 {
				t.Errorf("the fallback is %+v", report.Fallback)
			}
			kit.SamePatched(t, path, m, 37)
		})
	}
}

// A rotation that multiplies query and key by different numbers is written with one gain, and the rest of
// the query's behind it.
func TestRotationAloneGains(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	p := unprovable(t, "llama__dynamo18")
	for _, s := range p.Sites {
		for value, by := range map[string]float32{s.Query.Operand: 3, s.Key.Cached(): 0.5} {
			r := p.Rotation(value)
			for _, product := range []*onnx.Node{r.Cos, r.Sin} {
				p.Into(product, 1, func(old string) string { return p.Op("Mul", old, p.Float(by)) })
			}
		}
	}
	path := p.Saved()
	m := kit.OpenModel(t, path)
	report, err := kit.Rewrite(context.Background(), m, rewrite.Options{AllowUnchanged: true})
	if err != nil || report.Rotations() != len(report.Sites) || report.Sites[0].Attention.Encoding.Gain != 0.5 {
		t.Fatal(report, err)
	}
	kit.SamePatched(t, path, m, 37)
}

// Query and key may be rotated in different orders of their dimensions.
func TestRotationAloneLayouts(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, part := range []string{"query", "key"} {
		p := unprovable(t, "llama__dynamo18")
		swapped := func(old string) string { return p.Node("Transpose", []string{old}, onnx.IntsAttr("perm", 0, 2, 1, 3)) }
		for _, s := range p.Sites {
			before, behind := s.Query.Boundary, s.Query.Operand
			if part == "key" {
				before, behind = s.Key.Boundary, s.Key.Cached()
			}
			r := p.Rotation(behind)
			for _, product := range []*onnx.Node{r.Cos, r.Sin} {
				p.Into(product, 1, swapped)
			}
			p.After(r.Sum.Outputs[0], swapped)
			p.After(before, swapped)
		}
		path := p.Saved()
		m := kit.OpenModel(t, path)
		report, err := kit.Rewrite(context.Background(), m, rewrite.Options{AllowUnchanged: true})
		if err != nil || report.Rotations() != len(report.Sites) {
			t.Fatal(report, err)
		}
		kit.SamePatched(t, path, m, 37)
	}
}

// With a scaling such a model is that of transformers: by the library and by its fallback, in one call and
// with a cache, with padding on the left. The same is so of a model that had another scaling before.
func TestRotationAloneScaled(t *testing.T) {
	testruntime.Require(t)
	allowed := func(scaling string) rewrite.Options {
		return rewrite.Options{AllowUnchanged: true, Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, scaling)}}
	}
	const yarn = "yarn:factor=4,original_max_position_embeddings=16"
	for _, c := range testsample.Of(t, []struct{ model, architecture string }{
		{"llama__optimum", "llama"}, {"llama__dynamo18", "llama"}, {"gpt_neox__optimum", "gpt_neox"},
	}, 1) {
		t.Run(c.model, func(t *testing.T) {
			t.Parallel()
			m := kit.OpenModel(t, unprovable(t, c.model).Saved())
			var saved []string
			for _, scaling := range []string{yarn, "linear:factor=2", yarn} {
				report, err := kit.Rewrite(context.Background(), m, allowed(scaling))
				if err != nil || report.Rotations() != len(report.Sites) || report.Record.OpSpec != 7 {
					t.Fatal(report, err)
				}
				path := filepath.Join(t.TempDir(), "patched.onnx")
				if err := m.Save(path, onnx.SaveOptions{}); err != nil {
					t.Fatal(err)
				}
				saved, m = append(saved, path), kit.OpenModel(t, path)
			}
			for i, path := range saved {
				for _, padded := range []bool{false, true} {
					g := kit.ReadGolden(t, c.architecture, "yarn4", padded)
					for _, run := range []struct {
						how    string
						open   func(*testing.T, string) *decoder.Decoder
						chunks []int64
					}{{"library", kit.Open, []int64{48}}, {"library", kit.Open, []int64{32, 16}}, {"fallback", kit.OpenPlainly, []int64{32, 16}}} {
						off := g.Distance(t, kit.Chunked(t, run.open(t, path), g.Sequence, run.chunks))
						if (off <= 1e-4) != (i != 1) { // the second has another scaling
							t.Errorf("rewrite %d, %s, %v, padded %v: off by %.2g from transformers", i, run.how, run.chunks, padded, off)
						}
					}
				}
			}
			report, err := kit.Rewrite(context.Background(), m, rewrite.Options{AllowUnchanged: true, Earlier: rewrite.Earlier{Restore: true}})
			if err != nil || report.Rotations() != len(report.Sites) {
				t.Fatal(report, err)
			}
			kit.SamePatched(t, unprovable(t, c.model).Saved(), m, 37)
		})
	}
}

// ofKeys changes the angles of all keys.
func ofKeys(p *kit.Patient, op string, by float32) {
	for _, s := range p.Sites {
		p.OtherTables(s.Key.Cached(), func(old string) string { return p.Op(op, old, p.Float(by)) })
	}
}

// What almost is the same rotation of query and key is left to the model, and so is a rotation that a
// method does not fit.
func TestRotationAloneUnlike(t *testing.T) {
	testruntime.Require(t)
	mask := []rope.Spec{kit.Spec(t, rope.MaskAxis, "sliding-window:window=8")}
	for what, c := range map[string]struct {
		change func(*kit.Patient)
		opts   rewrite.Options
		want   string // of the reason
	}{
		"the key has other frequencies": {change: func(p *kit.Patient) { ofKeys(p, "Mul", 0.99) }},
		"the key has other positions":   {change: func(p *kit.Patient) { ofKeys(p, "Add", 0.01) }},
		"a pair is mirrored":            {change: func(p *kit.Patient) { p.First("Neg").OpType = "Abs" }},
		"an angle that ends growing": {change: func(p *kit.Patient) {
			for _, s := range p.Sites {
				p.OtherTables(s.Query.Operand, func(old string) string { return p.Op("Min", old, p.Float(90000)) })
			}
		}},
		"a mask":                    {opts: rewrite.Options{Edits: mask}},
		"a cache of fixed capacity": {opts: rewrite.Options{Cache: rewrite.Cache{Capacity: 64}}, want: "is to be"},
		"a dynamic scaling":         {opts: rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "dynamic:factor=2,original_max_position_embeddings=16,length=run")}}, want: "drop length=run"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := unprovable(t, "llama__dynamo18")
			if c.change != nil {
				c.change(p)
			}
			c.opts.AllowUnchanged = true
			m := kit.OpenModel(t, p.Saved())
			report, err := kit.Rewrite(context.Background(), m, c.opts)
			if c.opts.Cache.Capacity > 0 {
				if err == nil {
					t.Error("a cache of fixed capacity was written beside rotations")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if s := report.Sites[0]; s.Status != rewrite.Unchanged || !strings.Contains(s.Reason, c.want) {
				t.Errorf("layer 0 is %s: %s", s.Status, s.Reason)
			}
			if rotary, _ := rotations(m); c.change == nil && rotary > 0 {
				t.Errorf("%d ops rotate", rotary)
			}
		})
	}
}
