package golden_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// oddlyTurned saves an export whose first layer turns query and key in a way that is no rotary
// encoding: the second layer is as it was.
func oddlyTurned(t *testing.T, name string) string {
	t.Helper()
	p := newPatient(t, name)
	for _, v := range []string{p.Sites[0].Query.Operand, p.Sites[0].Key.Cached()} {
		r := p.Rotation(v)
		p.After(r.Sum.Outputs[0], func(old string) string { return p.Op("Mul", old, p.Op("Abs", p.Op("Cos", old))) })
	}
	return p.Saved()
}

// TestScoresOnly rewrites what is behind a rotation that is not understood.
func TestScoresOnly(t *testing.T) {
	testruntime.Require(t)
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	spec := func(axis rope.Axis, text string) []rope.Spec {
		s, err := rope.ParseSpec(axis, text)
		if err != nil {
			t.Fatal(err)
		}
		return []rope.Spec{s}
	}
	for _, name := range testsample.Of(t, []string{"llama__optimum", "llama__dynamo18", "llama__dynamo18-nocache"}, 1) {
		t.Run(name, func(t *testing.T) {
			original := oddlyTurned(t, name)
			rewritten := func(path string, opts rewrite.Options) (*onnx.Model, *rewrite.Report, error) {
				m := kit.OpenModel(t, path)
				report, err := kit.Rewrite(context.Background(), m, opts)
				return m, report, err
			}
			m, report, err := rewritten(original, rewrite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if s := report.Sites[0]; !s.ScoresOnly || s.Proof == nil || s.Reason == "" || s.RotaryDim != 0 {
				t.Errorf("the first layer is %+v; scores alone were expected", s)
			}
			if s := report.Sites[1]; s.ScoresOnly || s.RotaryDim == 0 {
				t.Errorf("the second layer is %+v; it has a rotation", s)
			}
			patched := filepath.Join(t.TempDir(), "patched.onnx")
			if err := m.Save(patched, onnx.SaveOptions{}); err != nil {
				t.Fatal(err)
			}
			kit.CompareModels(t, eng, original, patched, 1000)

			// A mask reaches this half, from the original and from the patched model; the same mask
			// gives the same model.
			var digests [2][32]byte
			for i, path := range []string{original, patched} {
				m, report, err := rewritten(path, rewrite.Options{Edits: spec(rope.MaskAxis, "sliding-window:window=7")})
				if err != nil {
					t.Fatal(err)
				}
				if s := report.Sites[0]; !s.ScoresOnly {
					t.Errorf("%s: the first layer is %+v; scores alone were expected", path, s)
				}
				digests[i] = m.Digest()
			}
			if digests[0] != digests[1] {
				t.Error("a mask on the patched model is not the mask on the original")
			}

			// What needs the rotation is refused with the reason.
			for text, opts := range map[string]rewrite.Options{
				"scaling": {Edits: spec(rope.ScalingAxis, "linear:factor=2")}, "positions": {Edits: spec(rope.PositionsAxis, "rerope:window=8")}, "raw": {Cache: rewrite.Cache{Raw: true}},
			} {
				if _, report, err := rewritten(original, opts); !errors.Is(err, rewrite.ErrPartial) || report.Sites[0].Status != rewrite.Unchanged {
					t.Errorf("%s on the original: %v; the first layer should be kept", text, err)
				}
				if _, _, err := rewritten(patched, opts); err == nil || !strings.Contains(err.Error(), "rotated by the model's own nodes") {
					t.Errorf("%s on the patched model: %v; a refusal was expected", text, err)
				}
			}
			if _, _, err := rewritten(original, rewrite.Options{Edits: spec(rope.MaskAxis, "intra-document-reset"), Documents: rewrite.Documents{Input: "document_ids"}}); err == nil || !strings.Contains(err.Error(), "rotated by the model's own nodes") {
				t.Errorf("restarting positions: %v; a refusal was expected", err)
			}
		})
	}
}
