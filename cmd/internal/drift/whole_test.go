package drift_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/drift"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

const models = "../../../testdata/models"

func wholeOptions(t *testing.T) drift.WholeOptions {
	runtime, library := testruntime.Paths(t)
	return drift.WholeOptions{
		Rewrite: rewrite.Options{Evaluation: rewrite.Evaluation{Runtime: runtime, Library: library, Worker: []string{os.Args[0]}}},
		Texts:   [][]int64{{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8}}, Shifts: []int64{0, 16},
	}
}

// wholeCase is what testdata/make_whole.py found, with all but the products in float32, and in float64.
type wholeCase struct {
	Arithmetic drift.Arithmetic
	Shift      int64
	Against    int64
	Weights    float64
	Weights64  float64   `json:"weights_64"`
	FirstKey   float64   `json:"first_key"`
	FirstKey64 float64   `json:"first_key_64"`
	Keys       []float64 // by token
	Keys64     []float64 `json:"keys_64"`
	Lengths    []float64
	Lengths64  []float64 `json:"lengths_64"`
}

// The whole model drifts as a Llama in NumPy does, at each shift, by token and by length. It may be off by twice
// what NumPy in float32 is off from NumPy in float64 at most: that is what rounding elsewhere does to the measure.
func TestWhole(t *testing.T) {
	data, err := os.ReadFile("testdata/whole.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		IDs   []int64
		Cases []wholeCase
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	off := map[drift.Arithmetic]float64{} // relative, the most of all cases
	for _, c := range golden.Cases {
		off[c.Arithmetic] = max(off[c.Arithmetic], math.Abs(c.Weights/c.Weights64-1), math.Abs(c.FirstKey/c.FirstKey64-1))
		t.Logf("%s, %d against %d: float32 %g %g, float64 %g %g", c.Arithmetic, c.Shift, c.Against, c.Weights, c.FirstKey, c.Weights64, c.FirstKey64)
	}
	seen := 0
	for _, against := range []int64{0, 16} {
		opts := wholeOptions(t)
		opts.Texts, opts.Shifts, opts.Against = [][]int64{golden.IDs}, []int64{0, 1, 16, 1024}, against
		w, err := drift.RunWhole(context.Background(), filepath.Join(models, "llama__dynamo18/model.onnx"), opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range w.Rows {
			if row.Shift == against && row.Drift != (drift.Drift{}) {
				t.Errorf("%s: the same shift drifts by %v", row.Arithmetic, row.Drift)
			}
			for _, c := range golden.Cases {
				if c.Arithmetic != row.Arithmetic || c.Shift != row.Shift || c.Against != against {
					continue
				}
				seen++
				near := func(what string, got, want, scale float64) {
					if !(math.Abs(got-want) <= 2*off[c.Arithmetic]*scale) {
						t.Errorf("%s, %d against %d, %s: %g, want %g ± %g", c.Arithmetic, c.Shift, against, what, got, want, 2*off[c.Arithmetic]*scale)
					}
				}
				near("weights", row.Weights, c.Weights64, c.Weights64)
				near("first key", row.FirstKey, c.FirstKey64, c.FirstKey64)
				for i, want := range c.Keys64 {
					near("a key", row.Keys[i], want, c.Weights64)
				}
				if len(row.Lengths) != len(c.Lengths64) {
					t.Fatalf("%d lengths, want %d", len(row.Lengths), len(c.Lengths64))
				}
				for i, want := range c.Lengths64 {
					near("a length", row.Lengths[i], want, c.FirstKey64)
				}
			}
		}
	}
	if seen != len(golden.Cases) {
		t.Errorf("%d of %d cases were compared", seen, len(golden.Cases))
	}
}

// The measure of a whole model is not that of one run; float32 hardly drifts, several texts give their mean, and
// freshly drawn weights are others.
func TestWholeControl(t *testing.T) {
	opts := wholeOptions(t)
	opts.Control, opts.Spread = true, 0.35
	path := filepath.Join(models, "llama__optimum/model.onnx") // queries [batch, length, heads·size]
	one, err := drift.RunWhole(context.Background(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range one.Rows {
		if r.Shift == 0 {
			continue
		}
		if most := map[drift.Arithmetic]float64{drift.Float32: 1e-4, drift.Float16: 1, drift.BFloat16: 10}[r.Arithmetic]; !(r.Weights > 0 && r.Weights < most) {
			t.Errorf("%s drifts by %g", r.Arithmetic, r.Weights)
		}
		if r.Control == nil || r.Control.Weights == r.Weights || r.Control.Weights <= 0 {
			t.Errorf("%s: the control is %+v", r.Arithmetic, r.Control)
		}
	}
	other := wholeOptions(t)
	other.Texts = [][]int64{{2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4, 5}}
	second, err := drift.RunWhole(context.Background(), path, other)
	if err != nil {
		t.Fatal(err)
	}
	other.Texts = append(other.Texts, opts.Texts...)
	both, err := drift.RunWhole(context.Background(), path, other)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range both.Rows {
		if want := (one.Rows[i].Weights + second.Rows[i].Weights) / 2; math.Abs(r.Weights-want) > 1e-12 {
			t.Errorf("%s, shift %d: two texts drift by %g, want %g", r.Arithmetic, r.Shift, r.Weights, want)
		}
	}
}

// What cannot be measured is refused with the reason.
func TestWholeRefuses(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"llama__dynamo18-fp16", "computes in 16 bits already"},
		{"llama__genai-fp32", "positions"},
		{"llama__dynamo23-nocache", "its positions are those in the cache"},
	} {
		_, err := drift.RunWhole(context.Background(), filepath.Join(models, c.name, "model.onnx"), wholeOptions(t))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// The spread of fresh weights is the configuration's.
func TestSpread(t *testing.T) {
	if got, err := drift.Spread(filepath.Join(models, "llama__dynamo18/model.onnx")); got != 0.35 || err != nil {
		t.Errorf("%g, %v; want 0.35", got, err)
	}
	if got, err := drift.Spread(filepath.Join(t.TempDir(), "model.onnx")); got != 0.02 || err != nil {
		t.Errorf("%g, %v; want 0.02", got, err)
	}
}
