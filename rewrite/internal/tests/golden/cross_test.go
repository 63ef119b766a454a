package golden_test

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// crossed rewrites an encoder-decoder of two layers and returns the patched model's file.
func crossed(t *testing.T, path string, opts rewrite.Options) (*onnx.Model, *rewrite.Report, string) {
	t.Helper()
	m := kit.OpenModel(t, path)
	report, err := kit.Rewrite(context.Background(), m, opts)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range report.Sites {
		if crosses := i%2 == 1; s.CrossAttention != crosses || (s.RotaryDim == 0) != crosses || s.Status != rewrite.Rewritten || s.Proof == nil {
			t.Errorf("layer %d is %+v", i, s)
		}
	}
	patched := filepath.Join(t.TempDir(), "patched.onnx")
	if err := m.Save(patched, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return m, report, patched
}

// crossOps are the ops whose keys are those of another text.
func crossOps(t *testing.T, m *onnx.Model) (list []customop.RotaryAttention) {
	t.Helper()
	for n := range m.Graph.AllNodes() {
		if !site.IsOp(n) {
			continue
		}
		op, err := definition.Read(n)
		if err != nil {
			t.Fatal(err)
		}
		if op.Cross == 1 {
			list = append(list, op)
		}
	}
	return list
}

// TestCrossAttention rewrites encoder-decoders whose self-attention turns and whose
// cross-attention does not: by either target, and with methods, which reach the former alone.
func TestCrossAttention(t *testing.T) {
	testruntime.Require(t)
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range testsample.Of(t, []string{"moonshine__dynamo18", "moonshine__dynamo18-nocache"}, 1) {
		t.Run(name, func(t *testing.T) {
			original := filepath.Join("..", "..", "..", "..", "testdata", "models", name, "model.onnx")
			plain, _, patched := crossed(t, original, rewrite.Options{})
			ops := crossOps(t, plain)
			if len(ops) != 2 {
				t.Fatalf("%d ops take keys of another text, 2 were expected", len(ops))
			}
			kit.CompareModels(t, eng, original, patched, 1000)
			_, _, own := crossed(t, original, rewrite.Options{Target: rewrite.PlainONNX, Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=1")}})
			kit.CompareModels(t, eng, original, own, 1000)

			scaling := rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=16")}}
			scaled, _, scaledFile := crossed(t, original, scaling)
			if again, _, _ := crossed(t, patched, scaling); again.Digest() != scaled.Digest() {
				t.Error("a scaling of the patched model is not the scaling of the original")
			}
			if restored, _, _ := crossed(t, scaledFile, rewrite.Options{Earlier: rewrite.Earlier{Restore: true}}); restored.Digest() != plain.Digest() {
				t.Error("what was restored is not what was rewritten without a method")
			}
			for what, opts := range map[string]rewrite.Options{
				"scaling":   scaling,
				"positions": {Edits: []rope.Spec{kit.Spec(t, rope.PositionsAxis, "string:shift=8,window=2")}},
				"window":    {Edits: []rope.Spec{kit.Spec(t, rope.MaskAxis, "sliding-window:window=5")}},
				"documents": {Edits: []rope.Spec{kit.Spec(t, rope.MaskAxis, "intra-document")}, Documents: rewrite.Documents{Input: "document_ids"}},
				"raw cache": {Cache: rewrite.Cache{Raw: true}},
				"capacity":  {Cache: rewrite.Cache{Capacity: 64}},
			} {
				if opts.Cache.Capacity > 0 && strings.HasSuffix(name, "-nocache") {
					continue
				}
				m, report, _ := crossed(t, original, opts)
				if got := crossOps(t, m); !reflect.DeepEqual(got, ops) {
					t.Errorf("%s changes cross-attention: %+v, %+v was expected", what, got, ops)
				}
				for _, d := range report.Record.Edits {
					if !slices.Equal(d.Layers, []int{0, 2}) {
						t.Errorf("%s is recorded for the layers %v", what, d.Layers)
					}
				}
			}
		})
	}
}

// TestCrossAttentionAlone keeps cross-attention where no attention that turns is rewritten.
func TestCrossAttentionAlone(t *testing.T) {
	testruntime.Require(t)
	odd := newPatient(t, "moonshine__dynamo18")
	for _, s := range []*site.Site{odd.Sites[0], odd.Sites[2]} {
		odd.After(s.Scores(), func(old string) string { return odd.Op("Mul", old, odd.Op("Cos", old)) })
	}
	report, err := kit.Rewrite(context.Background(), kit.OpenModel(t, odd.Saved()), rewrite.Options{AllowUnchanged: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range report.Sites {
		status := []rewrite.Status{rewrite.Rotation, rewrite.Unchanged}[i%2]
		if s.Status != status || i%2 == 1 && !strings.Contains(s.Reason, "cross-attention is rewritten only together") {
			t.Errorf("layer %d is %s: %s", i, s.Status, s.Reason)
		}
	}

	// A cross-attention that is kept stays so for every target.
	each := newPatient(t, "moonshine__dynamo18")
	for _, s := range each.Crosses() {
		each.After(s.Scores(), func(old string) string { return each.Op("Mul", old, each.Floats([]int64{1, 4, 1, 1}, 1, 2, 1, 1)) })
	}
	report, err = kit.Rewrite(context.Background(), kit.OpenModel(t, each.Saved()), rewrite.Options{AllowUnchanged: true, Target: rewrite.PlainONNX, Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=2")}})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range report.Sites {
		if kept := i%2 == 1; (s.Status == rewrite.Unchanged) != kept || kept && !strings.Contains(s.Reason, "its mask is not understood") {
			t.Errorf("layer %d is %s: %s", i, s.Status, s.Reason)
		}
	}

	still := newPatient(t, "moonshine__dynamo18")
	cos, sin := still.Tables()
	still.After(cos.Outputs[0], func(old string) string { return still.Op("Add", still.Op("Mul", old, still.Float(0)), still.Float(1)) })
	still.After(sin.Outputs[0], func(old string) string { return still.Op("Mul", old, still.Float(0)) })
	report, err = kit.Rewrite(context.Background(), kit.OpenModel(t, still.Saved()), rewrite.Options{})
	if !errors.Is(err, rewrite.ErrNoAttention) || report.Rewritten() != 0 {
		t.Errorf("a model that turns nothing: %v, %d rewritten", err, report.Rewritten())
	}
}
