package cachescales_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cachescales"
	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

func TestMain(m *testing.M) {
	rewrite.ServeIfWorker()
	testruntime.Examples()
	os.Exit(m.Run())
}

func model(name string) string {
	return filepath.Join("../../../testdata/models", name, "model.onnx")
}

var texts = [][]int64{{5, 9, 33, 7, 7, 90}, {1, 2, 3, 4, 120, 11}}

// The scales are those of the largest numbers that are in the caches when the same texts are fed token by token.
func TestMeasure(t *testing.T) {
	testruntime.Require(t)
	ctx := context.Background()
	path := model("llama__optimum")
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	d, err := decoder.Open(ctx, eng, path, decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	want := make([][]float64, len(d.Caches)) // of the channels of the two kv heads
	for i := range want {
		want[i] = make([]float64, 32)
	}
	for _, text := range texts {
		var cache decoder.Cache
		for at, id := range text {
			if _, cache, err = d.Run(ctx, decoder.Step{Batch: 1, Length: 1, IDs: []int64{id}, Mask: slices.Repeat([]int64{1}, at+1), Positions: []int64{int64(at)}, Cache: cache}); err != nil {
				t.Fatal(err)
			}
		}
		for i, c := range cache {
			for head := range 2 {
				for k, x := range c.Values()[head*16*len(text) : (head+1)*16*len(text)] {
					want[i][head*16+k%16] = max(want[i][head*16+k%16], math.Abs(x)/127)
				}
			}
		}
	}
	for _, perChannel := range []bool{false, true} {
		r, err := cachescales.Measure(ctx, path, texts, cachescales.Options{PerChannel: perChannel})
		if err != nil {
			t.Fatal(err)
		}
		if r.Tokens != 12 || len(r.Scales) != 2 || len(r.Left) != 0 {
			t.Errorf("%d tokens, %d layers, left %v", r.Tokens, len(r.Scales), r.Left)
		}
		for layer, s := range r.Scales {
			for i, got := range [][]float32{s.Key, s.Value} {
				of := want[2*layer+i]
				if !perChannel {
					of = []float64{slices.Max(of)}
				}
				if len(got) != len(of) {
					t.Fatalf("layer %d has %d scales", layer, len(got))
				}
				for k, x := range got {
					if math.Abs(float64(x)-of[k]) > 1e-5*of[k] {
						t.Errorf("layer %d: scale %d is %g, want %g", layer, k, x, of[k])
					}
				}
			}
		}
	}
}

func TestMeasureRefuses(t *testing.T) {
	testruntime.Require(t)
	ctx := context.Background()
	save := func(cache rewrite.Cache) string {
		m, err := onnx.Open(model("llama__optimum"))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		path := filepath.Join(t.TempDir(), "model.onnx")
		if _, err := rewrite.Rewrite(ctx, m, rewrite.Options{Cache: cache}); err != nil {
			t.Fatal(err)
		}
		if err := m.Save(path, onnx.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for want, c := range map[string]struct {
		path  string
		texts [][]int64
	}{
		"it has no key-value cache":                    {model("llama__dynamo18-nocache"), texts},
		"its caches are int8 already":                  {save(rewrite.Cache{Type: "int8"}), texts},
		"its cache holds 4 tokens, and the text has 6": {save(rewrite.Cache{Capacity: 4}), texts},
		"the text has the token 128, but the model's":  {model("llama__optimum"), [][]int64{{5, 128}}},
	} {
		if _, err := cachescales.Measure(ctx, c.path, c.texts, cachescales.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
}
