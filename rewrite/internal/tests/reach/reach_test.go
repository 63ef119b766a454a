package reach_test

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// rare are masks and positions that change in calls that none of the small ones is like. tokens is how many a call has
// in which they do, or 0 where the condition is no formula that is understood: then the layers are known for small
// calls alone. The text is a part of the reason.
var rare = map[string]struct {
	tokens int64
	why    string
}{
	"N8":           {tokens: 1000},
	"X_threefives": {tokens: 15},
	"X_sub200":     {tokens: 1010},
	"M1":           {why: `mask: "nd" may be rounded`},
	"M2":           {why: `mask: "nd" may be rounded`},
	"M13":          {why: "mask: "},
	"M4b":          {why: `mask: "nd" may be rounded`},
	"M6":           {why: "mask: a condition decides what"},
	"M8":           {why: "mask: "},
	"U1":           {why: "mask: a number is cast to int8"},
	"U7":           {why: "mask: "},
	"R3":           {why: "positions: the rotation is computed at Where"},
}

// What is said of any number of tokens holds in the call in which the condition does; what is not understood is said
// of few tokens alone, and AnyLength refuses it.
func TestRareConditions(t *testing.T) {
	testruntime.Require(t)
	files, err := filepath.Glob(filepath.Join(kit.Testdata, "rare", "*.onnx"))
	if err != nil || len(files) != len(rare) {
		t.Fatalf("%d files, %d were expected (%v)", len(files), len(rare), err)
	}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".onnx")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := rare[name]
			patched, report := kit.Patch(t, path, rewrite.Options{})
			reach := report.Reach()
			if want.tokens == 0 {
				if reach.AnyLength > 0 || reach.String() != ", 2 of them up to 8 tokens" || !strings.Contains(reach.Limited[0].Why, want.why) {
					t.Errorf("it is known for any number of tokens in %d layers%v: %v", reach.AnyLength, reach, reach.Limited)
				}
				_, err := kit.Rewrite(t.Context(), kit.OpenModel(t, path), rewrite.Options{AnyLength: true})
				if !errors.Is(err, rewrite.ErrLimited) {
					t.Errorf("AnyLength: %v", err)
				}
				return
			}
			if reach.AnyLength != 2 || reach.String() != "" {
				t.Errorf("it is known for any number of tokens in %d layers%v, 2 were expected", reach.AnyLength, reach)
			}
			a, b := logits(t, path, want.tokens), logits(t, patched, want.tokens)
			export := logits(t, kit.Model("llama__dynamo18"), want.tokens)
			if d := furthest(a, export); d < 0.01 {
				t.Errorf("with %d tokens the condition changes logits by %g of their range alone", want.tokens, d)
			}
			if d := furthest(a, b); !(d < 1e-4) {
				t.Errorf("with %d tokens the patched model is off by %g of the logits' range", want.tokens, d)
			}
		})
	}
}

// logits are those of a model for one row of so many tokens.
func logits(t *testing.T, path string, tokens int64) []float64 {
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	caches := map[string][]int64{}
	for _, v := range m.Graph.Inputs {
		if len(v.Shape) == 4 {
			caches[v.Name] = []int64{1, v.Shape[1].Value, 0, v.Shape[3].Value}
		}
	}
	s := kit.NewSequence(tokens, 0)
	s.Batch, s.Ids, s.Mask, s.Positions = 1, s.Ids[:tokens], s.Mask[:tokens], s.Positions[:tokens] // its first row has no padding
	return kit.Load(t, kit.Local(t), m, path, false, caches).Run(t, s, []int64{tokens})[0]["logits"].Values()
}

// furthest is the largest difference, as a share of the range.
func furthest(a, b []float64) (most float64) {
	for i := range a {
		most = math.Max(most, math.Abs(a[i]-b[i]))
	}
	return most / (slices.Max(a) - slices.Min(a))
}
