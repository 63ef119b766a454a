package damage_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// doge adds to its scores what it computes from the values of all keys.
const doge = "../../../../testdata/coverage/doge__ts17-cache/model.onnx"

// TestStatesLeftOut leaves out what is added to scores, which the proof must see.
func TestStatesLeftOut(t *testing.T) {
	t.Parallel()
	site := measureModel(t, kit.OpenModel(t, doge), 0)
	if err := site.prove(site.measured.Attention, nil); err != nil {
		t.Fatalf("the undamaged site is refused: %v", err)
	}
	refused(t, site.prove(site.measured.Attention, func(w *lower.Binding) { w.Bias = nil }))
}

// TestStatesAndMaps gives such a model a map of positions and a raw cache, which ask for
// consecutive positions: padding on the left must not be taken for tokens, though the
// model's own bias hides it. The map leaves short rows as they are.
func TestStatesAndMaps(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	longer, err := rope.ParseSpec(rope.PositionsAxis, "string:shift=1000,window=100")
	if err != nil {
		t.Fatal(err)
	}
	s := kit.NewSequence(24, 3)
	s.Batch, s.Ids, s.Mask, s.Positions = 2, s.Ids[:48], s.Mask[:48], s.Positions[:48] // the third row's hole is no consecutive one
	chunks := []int64{19, 1, 1, 3}
	run := func(path string) []map[string]engine.Tensor {
		m := kit.OpenModel(t, path)
		caches := map[string][]int64{}
		for _, v := range m.Graph.Inputs {
			if v.Type == onnx.Float {
				caches[v.Name] = []int64{0, 2, 0, v.Shape[3].Value}
			}
		}
		return kit.Load(t, kit.Local(t), m, path, true, caches).Run(t, s, chunks)
	}
	want := run(doge)
	for name, opts := range map[string]rewrite.Options{"string": {Edits: []rope.Spec{longer}}, "raw": {Cache: rewrite.Cache{Raw: true}}} {
		patched, _ := kit.Patch(t, doge, opts)
		got, past := run(patched), int64(0)
		for k, length := range chunks {
			x, y := want[k]["logits"].Values(), got[k]["logits"].Values()
			for i := range x {
				if s.Visible(want[k]["logits"].Dims, int64(i), past, length) && !(math.Abs(x[i]-y[i]) <= 1e-4) {
					t.Fatalf("%s, call %d, element %d: %g, %g was expected", name, k, i, y[i], x[i])
				}
			}
			past += length
		}
	}
}

// TestStatesOfFixedCache: the model would compute what it adds from unused rows, too.
func TestStatesOfFixedCache(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	_, err := kit.Rewrite(context.Background(), kit.OpenModel(t, doge), rewrite.Options{Cache: rewrite.Cache{Capacity: 64}})
	if err == nil || !strings.Contains(err.Error(), "computed from hidden states of all tokens") {
		t.Errorf("a cache of fixed capacity: %v", err)
	}
}

// TestSoftplusInFloat64: ONNX Runtime has no Softplus in float64, and the model has one.
func TestSoftplusInFloat64(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	double, path := kit.InDouble(t, kit.OpenModel(t, doge))
	kit.Load(t, kit.Local(t), double, path, false, nil)
}
