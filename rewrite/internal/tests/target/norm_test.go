package target_test

import (
	"context"
	"math"
	"path/filepath"
	"slices"
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

// TestBehindNorms: norms with weights stand behind this model's rotation. With each scaling
// it computes what transformers does, for each target.
func TestBehindNorms(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, target := range testsample.Of(t, []rewrite.Target{rewrite.Ops, rewrite.PlainONNX}, 1) {
		t.Run(string(target), func(t *testing.T) { behindNorms(t, target) })
	}
}

func behindNorms(t *testing.T, target rewrite.Target) {
	folder := filepath.Join(kit.Testdata, "coverage")
	f, err := npz.Open(filepath.Join(folder, "hunyuan.methods.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	methods := 0
	for _, key := range f.Keys() {
		method, ok := strings.CutPrefix(key, "logits ")
		if !ok {
			continue
		}
		methods++
		m, err := onnx.Open(filepath.Join(folder, "hunyuan__ts17-cache", "model.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		report, err := kit.Rewrite(context.Background(), m, rewrite.Options{
			Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, method)}, Target: target})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range report.Sites {
			if a := s.Attention; s.RotationOnly || len(a.QueryFactors) != 6 || len(a.KeyFactors) != 6 {
				t.Errorf("layer %d, its factors behind the rotation %v and %v: %s", s.Layer, a.QueryFactors, a.KeyFactors, s.Reason)
			}
		}
		path := filepath.Join(t.TempDir(), "patched.onnx")
		if err := m.Save(path, onnx.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
		d, err := decoder.Open(context.Background(), kit.Local(t), path, decoder.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		for _, pad := range []string{"", "_pad"} {
			s := decoder.Sequence{Batch: 2, Length: 32}
			for name, into := range map[string]*[]int64{"ids": &s.IDs, "mask": &s.Mask, "pos": &s.Positions} {
				if *into, _, err = f.Int64(name + pad); err != nil {
					t.Fatal(err)
				}
			}
			want, _, err := f.Float32("logits" + pad + " " + method)
			if err != nil {
				t.Fatal(err)
			}
			for _, calls := range [][]int64{{32}, slices.Concat([]int64{20}, slices.Repeat([]int64{1}, 12))} {
				got, err := d.Chunks(context.Background(), s, calls...)
				if err != nil {
					t.Fatal(err)
				}
				worst := 0.0
				for i, x := range got {
					if s.Mask[i/(len(got)/len(s.Mask))] != 0 {
						worst = math.Max(worst, math.Abs(x-float64(want[i])))
					}
				}
				if t.Logf("%s%s in %d calls: off by %.2g", method, pad, len(calls), worst); !(worst <= 1e-4) {
					t.Errorf("%s%s in %d calls: off by %.2g", method, pad, len(calls), worst)
				}
			}
		}
	}
	if methods != 3 {
		t.Errorf("%d methods, 3 were expected", methods)
	}
}
