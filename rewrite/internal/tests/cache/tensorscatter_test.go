package cache_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestTensorScatter: where TensorScatter writes a cache that Attention reads, a scaling is written
// into the model's own tables, or into the op Rotary in their place. With half the frequencies, twice the positions give what the
// original gives, call by call.
func TestTensorScatter(t *testing.T) {
	testruntime.Require(t)
	original := kit.Model("../field/tensor_scatter")
	scaled := func(target rewrite.Target, status rewrite.Status) string {
		m := kit.OpenModel(t, original)
		report, err := kit.Rewrite(context.Background(), m, rewrite.Options{Target: target, AllowUnchanged: true, Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=2")}})
		if err != nil {
			t.Fatal(err)
		}
		if s := report.Sites[0]; !s.RotationOnly || s.Status != status {
			t.Errorf("target %s: more than its rotation is said to be known: %+v", target, s)
		}
		path := filepath.Join(t.TempDir(), "patched.onnx")
		if err := m.Save(path, onnx.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const batch, rows, channels, length, calls = 2, 16, 16, 3, 4
	logits := func(path string, stretch int64) (all []float64) {
		session, err := kit.Local(t).Load(context.Background(), engine.Model{Path: path, Outputs: []string{"logits", "updated_key_cache", "updated_value_cache"},
			Inputs: []string{"input_ids", "position_ids", "write_indices", "nonpad_kv_seqlen", "key_cache", "value_cache"}})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		rng := rand.New(rand.NewPCG(3, 4))
		key := engine.Float32s(make([]float32, batch*rows*channels), batch, rows, channels)
		value := key
		for call := range int64(calls) {
			var ids, positions, past, tokens []int64
			for b := range int64(batch) { // the second row is one token ahead
				past, tokens = append(past, call*length+b), append(tokens, (call+1)*length+b)
				for i := range int64(length) {
					ids, positions = append(ids, rng.Int64N(64)), append(positions, stretch*(call*length+b+i))
				}
			}
			out, err := session.Run(context.Background(), map[string]engine.Tensor{
				"input_ids": engine.Int64s(ids, batch, length), "position_ids": engine.Int64s(positions, batch, length),
				"write_indices": engine.Int64s(past, batch), "nonpad_kv_seqlen": engine.Int64s(tokens, batch), "key_cache": key, "value_cache": value})
			if err != nil {
				t.Fatal(err)
			}
			key, value = out["updated_key_cache"], out["updated_value_cache"]
			all = append(all, out["logits"].Values()...)
		}
		return all
	}
	want := logits(original, 1)
	for _, patched := range []string{scaled(rewrite.PlainONNX, rewrite.Rewritten), scaled(rewrite.Ops, rewrite.Rotation)} {
		if off := kit.Largest(logits(patched, 2), want); off > 1e-5 {
			t.Errorf("twice the positions: off by %.2g", off)
		}
		if off := kit.Largest(logits(patched, 1), want); off < 0.1 {
			t.Errorf("the same positions: off by only %.2g; the scaling changes nothing", off)
		}
	}
}
