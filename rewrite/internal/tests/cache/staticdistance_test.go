package cache_test

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestStaticDistances: a bias by distance in a model whose buffers have one size, by the places of
// its tokens. A bias that the model computes itself would need a column for each row of them.
func TestStaticDistances(t *testing.T) {
	testruntime.Require(t)
	for _, name := range staticCaches {
		for kind, want := range map[string]rope.Distance{
			"slopes":  {Slopes: []float64{0.125, 0.125}},
			"buckets": {Starts: []int64{0, 3}},
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				p := newPatient(t, name)
				keys := p.Op("Range", p.Int(0), p.Size("past_key", 2), p.Int(1))
				distance := p.Op("Sub", p.Op("Unsqueeze", "cache_position", p.Ints(1)), keys)
				bias := p.Op("Mul", p.Cast(distance, onnx.Float), p.Float(-0.125))
				if kind == "buckets" {
					bias = p.Op("Where", p.Op("Less", distance, p.Int(3)), p.Float(0), p.Float(0.5))
				}
				p.Scores(func(old string) string { return p.Op("Add", old, bias) })
				original := p.Saved()
				m := kit.OpenModel(t, original)
				report, err := kit.Rewrite(context.Background(), m, rewrite.Options{})
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range report.Sites {
					d := s.Attention.Distance
					if s.Cache != "fixed" || !slices.Equal(d.Slopes, want.Slopes) || !slices.Equal(d.Starts, want.Starts) || d.Shown {
						t.Errorf("layer %d has a cache %q and %+v, %+v was expected", s.Layer, s.Cache, d, want)
					}
				}
				patched := filepath.Join(t.TempDir(), "model.onnx")
				if err := m.Save(patched, onnx.SaveOptions{}); err != nil {
					t.Fatal(err)
				}
				before, after := loadStatic(t, original, 24), loadStatic(t, patched, 24)
				start := int64(0)
				for _, n := range []int64{5, 3, 1} {
					tokens := consecutive(3, 2*n)
					x, err := before.call(tokens, consecutive(start, n)...)
					if err != nil {
						t.Fatal(err)
					}
					y, err := after.call(tokens, consecutive(start, n)...)
					if err != nil {
						t.Fatal(err)
					}
					for i := range x {
						if !(math.Abs(x[i]-y[i]) <= 1e-4) {
							t.Fatalf("%d tokens from %d: off by %.2g from the original", n, start, math.Abs(x[i]-y[i]))
						}
					}
					start += n
				}
			})
		}
	}
}
