package damage_test

import (
	"path/filepath"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestProofRefusesAxesAndFactors spoils which of a token's positions turns a pair, and
// what multiplies a channel behind the rotation. The proof must see it.
func TestProofRefusesAxesAndFactors(t *testing.T) {
	t.Parallel()
	for name, damages := range map[string]map[string]func(*rope.Attention){
		"qwen2_vl__ts17-cache": {
			"one pair's axis": func(a *rope.Attention) { a.Encoding.Axes[1] = 0 },
			"the slowest pair's axis": func(a *rope.Attention) {
				a.Encoding.Axes[len(a.Encoding.Axes)-1] = 1
			},
			"one axis for all": func(a *rope.Attention) { clear(a.Encoding.Axes) },
		},
		"hunyuan__ts17-cache": {
			"a query's factor by 1 %": func(a *rope.Attention) { a.QueryFactors[2] *= 1.01 },
			"a key's factor by 0.1 %": func(a *rope.Attention) { a.KeyFactors[4] *= 1.001 },
			"factors exchanged":       func(a *rope.Attention) { a.QueryFactors, a.KeyFactors = a.KeyFactors, a.QueryFactors },
			"no factors of keys":      func(a *rope.Attention) { a.KeyFactors = nil },
			"factors on the queries that belong to keys": func(a *rope.Attention) {
				for c := range a.QueryFactors {
					a.QueryFactors[c] *= a.KeyFactors[c]
				}
				a.KeyFactors = nil
			},
		},
	} {
		m, err := onnx.Open(filepath.Join(kit.Testdata, "coverage", name, "model.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		site := measureModel(t, m, 0)
		if err := site.prove(site.measured.Attention, nil); err != nil {
			t.Fatalf("%s: the undamaged site is refused: %v", name, err)
		}
		for what, damage := range damages {
			t.Run(name+"/"+what, func(t *testing.T) {
				a := site.measured.Attention.Clone()
				damage(&a)
				refused(t, site.prove(a, nil))
			})
		}
	}
}
