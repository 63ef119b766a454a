package target_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// plainScalings are methods that change frequencies and gain alone, with their
// golden if there is one. (TestMethodGoldens has all others, on one export.)
var plainScalings = []struct{ spec, golden string }{
	{"yarn:factor=3,original_max_position_embeddings=16", "yarn_context"},
	{"proportional:partial_rotary_factor=0.5,factor=2", "proportional"},
	{"yarn:factor=3,original_max_position_embeddings=16,temperature=1.2", ""},
}

// TestTargetONNX: models whose constants were changed run without the library
// and give what transformers and the op give.
func TestTargetONNX(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	f, err := npz.Open(filepath.Join(kit.Testdata, "goldens", "methods.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, export := range testsample.Of(t, []string{"llama__optimum", "llama__dynamo18", "llama__dynamo23", "llama__ts17", "llama__genai-fp32", "llama__dynamo18-nocache"}, 2) {
		for _, c := range plainScalings {
			if (export == "llama__optimum") != (c.golden == "") {
				continue // one export shows what has no golden
			}
			name, _, _ := strings.Cut(c.spec, ":")
			t.Run(export+"/"+name, func(t *testing.T) {
				opts := rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, c.spec)}, Context: rope.Context{Length: 48, Original: 16}}
				byOp, _ := kit.Patch(t, kit.Model(export), opts)
				opts.Target = rewrite.PlainONNX
				path, report := kit.Patch(t, kit.Model(export), opts)
				kit.NoCustomNodes(t, path)
				if !strings.Contains(strings.Join(report.Edits, " "), "target onnx") {
					t.Errorf("the report has the edits %q", report.Edits)
				}
				plain, ops := kit.Open(t, path), kit.Open(t, byOp)
				for _, padded := range []bool{false, true} {
					if padded && export == "llama__genai-fp32" {
						continue
					}
					g := kit.ReadGolden(t, "llama", "plain", padded)
					ways := [][]int64{{48}, {32, 8, 1, 1, 1, 1, 1, 1, 1, 1}}
					if !plain.Cached() {
						ways = ways[:1]
					}
					for _, chunks := range ways {
						logits := kit.Chunked(t, plain, g.Sequence, chunks)
						off := kit.Largest(kit.Real(g, logits), kit.Real(g, kit.Chunked(t, ops, g.Sequence, chunks)))
						if t.Logf("padded %v, %d calls: off by %.2g from the op", padded, len(chunks), off); !(off <= 1e-4) {
							t.Errorf("padded %v, %d calls: off by %.2g from the op", padded, len(chunks), off)
						}
						if c.golden == "" {
							continue
						}
						suffix := ""
						if padded {
							suffix = "_pad"
						}
						want, _, err := f.Float32(c.golden + suffix)
						if err != nil {
							t.Fatal(err)
						}
						if off := kit.SparseDistance(t, g, logits, want, 4); !(off <= 1e-4) {
							t.Errorf("padded %v, %d calls: off by %.2g from transformers", padded, len(chunks), off)
						}
					}
				}
			})
		}
	}
}

// TestRotationOnly: where an attention cannot be measured, methods that change
// frequencies change the constants of its rotation. The scores of this one are
// scaled where there are more than 4096 tokens; with fewer it is what the goldens are of.
func TestRotationOnly(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	changed := unprovable(t, "llama__optimum").Saved()
	for _, c := range []struct {
		target rewrite.Target
		axis   rope.Axis
		method string
		want   string // of the error
	}{
		{target: rewrite.PlainONNX, axis: rope.ScalingAxis, method: "yarn:factor=4,original_max_position_embeddings=16"},
		{target: rewrite.PlainONNX, axis: rope.PositionsAxis, method: "string:shift=16,window=4", want: "only frequencies and gain can be changed"},
		{target: rewrite.PlainONNX, axis: rope.ScalingAxis, method: "dynamic:factor=2,original_max_position_embeddings=16,length=run", want: "drop length=run"},
		{target: rewrite.Ops, axis: rope.ScalingAxis, method: "yarn:factor=4,original_max_position_embeddings=16"},
	} {
		m, err := onnx.Open(changed)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		report, err := kit.Rewrite(context.Background(), m, rewrite.Options{Edits: []rope.Spec{kit.Spec(t, c.axis, c.method)}, Target: c.target, AllowUnchanged: c.target == rewrite.Ops})
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v lacks %q", c.method, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range report.Sites {
			status := map[rewrite.Target]rewrite.Status{rewrite.PlainONNX: rewrite.Rewritten, rewrite.Ops: rewrite.Rotation}[c.target]
			if !strings.Contains(s.Reason, "its mask is not understood") || !s.RotationOnly || s.Status != status {
				t.Errorf("target %s: layer %d is %s, of its rotation alone %v: %s", c.target, s.Layer, s.Status, s.RotationOnly, s.Reason)
			}
		}
		if c.target == rewrite.Ops {
			continue
		}
		path := filepath.Join(t.TempDir(), "patched.onnx")
		if err := m.Save(path, onnx.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
		kit.NoCustomNodes(t, path)
		for _, padded := range []bool{false, true} {
			g := kit.ReadGolden(t, "llama", "yarn4", padded)
			for _, chunks := range [][]int64{{48}, {32, 16}} {
				if off := g.Distance(t, kit.Chunked(t, kit.Open(t, path), g.Sequence, chunks)); !(off <= 1e-4) {
					t.Errorf("%v, padded %v: off by %.2g from transformers", chunks, padded, off)
				}
			}
		}
	}
}

// Tables of com.microsoft ops end where the model was trained; a context makes
// them longer, so that tokens beyond run.
func TestLongerTables(t *testing.T) {
	testruntime.Require(t)
	opts := rewrite.Options{
		Edits:   []rope.Spec{kit.Spec(t, rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=64")},
		Context: rope.Context{Length: 256}, Target: rewrite.PlainONNX,
	}
	path, _ := kit.Patch(t, kit.Model("llama__genai-fp32"), opts)
	opts.Target = rewrite.Ops
	byOp, _ := kit.Patch(t, kit.Model("llama__genai-fp32"), opts)
	long := decoder.Sequence{Batch: 1, Length: 200}
	for i := range long.Length {
		long.IDs, long.Mask, long.Positions = append(long.IDs, 4+i*7%120), append(long.Mask, 1), append(long.Positions, i)
	}
	plain, ops, original := kit.Open(t, path), kit.Open(t, byOp), kit.Open(t, kit.Model("llama__genai-fp32"))
	if _, err := original.Chunks(context.Background(), long, 100, 100); err == nil {
		t.Error("the original runs beyond its tables; the test shows nothing")
	}
	if off := kit.Largest(kit.Chunked(t, plain, long, []int64{100, 99, 1}), kit.Chunked(t, ops, long, []int64{100, 99, 1})); !(off <= 1e-4) {
		t.Errorf("off by %.2g from the op", off)
	}
}
