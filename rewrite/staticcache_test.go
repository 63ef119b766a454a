package rewrite_test

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestStaticCache: keys that are scattered into buffers of fixed size are not
// measured; the frequencies of their rotation can be changed without the op.
func TestStaticCache(t *testing.T) {
	testruntime.Require(t)
	const name = "llama__ts17-static-cache"
	f, err := npz.Open(filepath.Join(testdata, "models", name, "golden.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ids, _, err := f.Int64("ids")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		golden string
		opts   rewrite.Options
		kept   bool
	}{
		{"plain", rewrite.Options{}, true},
		{"yarn4", rewrite.Options{Target: rewrite.PlainONNX, Edits: []rope.Spec{spec(t, rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=16")}}, false},
	} {
		t.Run(c.golden, func(t *testing.T) {
			m, err := onnx.Open(model(name))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			c.opts.AllowKept = c.kept
			report, err := rewrite.Rewrite(context.Background(), m, c.opts)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range report.Sites {
				if !strings.Contains(s.Reason, "into a cache of fixed size") || s.RotationOnly == c.kept {
					t.Errorf("layer %d is %s, its rotation alone %v: %s", s.Layer, s.Status, s.RotationOnly, s.Reason)
				}
			}
			path := filepath.Join(t.TempDir(), "model.onnx")
			if err := m.Save(path, onnx.SaveOptions{}); err != nil {
				t.Fatal(err)
			}
			noCustomNodes(t, path)
			want, shape, err := f.Float32(c.golden)
			if err != nil {
				t.Fatal(err)
			}
			names := []string{"present_key", "present_value"}
			session, err := local(t).Load(context.Background(), engine.Model{Path: path,
				Inputs: []string{"input_ids", "cache_position", "past_key", "past_value"}, Outputs: append([]string{"logits"}, names...)})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			empty := engine.Float32s(make([]float32, 2*24*8), 2, 1, 24, 8)
			cache := []engine.Tensor{empty, empty}
			length, width := int64(shape[1]), int64(shape[2])
			start := int64(0)
			for _, n := range []int64{5, 3, 1} {
				var tokens, places []int64
				for b := range int64(2) {
					tokens = append(tokens, ids[b*length+start:b*length+start+n]...)
				}
				for i := range n {
					places = append(places, start+i)
				}
				out, err := session.Run(context.Background(), map[string]engine.Tensor{"input_ids": engine.Int64s(tokens, 2, n),
					"cache_position": engine.Int64s(places, n), "past_key": cache[0], "past_value": cache[1]})
				if err != nil {
					t.Fatal(err)
				}
				cache = []engine.Tensor{out[names[0]], out[names[1]]}
				for i, x := range out["logits"].Values() {
					b, row := int64(i)/width/n, int64(i)/width%n
					if w := float64(want[(b*length+start+row)*width+int64(i)%width]); !(math.Abs(x-w) <= 1e-4) {
						t.Fatalf("%d tokens from %d: off by %.2g from transformers", n, start, math.Abs(x-w))
					}
				}
				start += n
			}
		})
	}
}
