package method_test

import (
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Angles are exact where a method scales frequencies, and the exporter's elsewhere, unless the caller says which.
func TestAnglesByDefault(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	yarn := []rope.Spec{kit.Spec(t, rope.ScalingAxis, "yarn:factor=4")}
	for name, c := range map[string]struct {
		opts  rewrite.Options
		exact []bool // of each op
	}{
		"no method":     {rewrite.Options{}, []bool{false, false}},
		"a scaling":     {rewrite.Options{Edits: yarn}, []bool{true, true}},
		"of one layer":  {rewrite.Options{LayerEdits: []rewrite.LayerEdit{{Spec: yarn[0], Layers: func(i int) bool { return i == 1 }}}}, []bool{false, true}},
		"a neutral one": {rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "none")}}, []bool{false, false}},
		"positions":     {rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.PositionsAxis, "string:shift=16,window=4")}}, []bool{false, false}},
		"original":      {rewrite.Options{Edits: yarn, Numerics: rewrite.Numerics{Angles: "original"}}, []bool{false, false}},
		"exact":         {rewrite.Options{Numerics: rewrite.Numerics{Angles: "exact"}}, []bool{true, true}},
		"target onnx":   {rewrite.Options{Edits: yarn, Target: rewrite.PlainONNX}, nil},
	} {
		patched, report := kit.Patch(t, kit.Model("llama__optimum"), c.opts)
		m, err := onnx.Open(patched)
		if err != nil {
			t.Fatal(err)
		}
		var got []bool
		for _, n := range m.Graph.Nodes {
			if n.Domain == customop.Domain {
				got = append(got, n.Int("exact_angles", 0) == 1)
			}
		}
		if !slices.Equal(got, c.exact) {
			t.Errorf("%s: exact %v, want %v", name, got, c.exact)
		}
		said := slices.ContainsFunc(report.Record.Edits, func(e provenance.Edit) bool { return e.What == "angles" })
		if said != slices.Contains(c.exact, true) {
			t.Errorf("%s: the record says so: %v", name, said)
		}
		_ = m.Close()
	}
}

// A scaled model computes the same wherever a text begins: only rounding depends on the position itself. With the
// exporter's angles, rounded to float32, that is large at long positions.
func TestScaledAnglesAtLongPositions(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, export := range []string{"llama__optimum", "llama__dynamo18"} {
		off := map[string]float64{}
		for _, angles := range []string{"", "original"} {
			patched, _ := kit.Patch(t, kit.Model(export), rewrite.Options{
				Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "yarn:factor=4")}, Numerics: rewrite.Numerics{Angles: angles}})
			d := kit.Open(t, patched)
			g := kit.ReadGolden(t, "llama", "plain", true)
			at := func(start int64) []float64 {
				s := g.Sequence
				s.Positions = slices.Clone(s.Positions)
				for i := range s.Positions {
					if s.Mask[i] == 1 {
						s.Positions[i] += start
					}
				}
				return kit.Real(g, kit.Chunked(t, d, s, kit.ThenDecode))
			}
			off[angles] = kit.Largest(at(lastPosition-48), at(0))
		}
		t.Logf("%s: exact angles %.2g, the original's %.2g", export, off[""], off["original"])
		if !(off[""] <= 1e-4 && off[""] < off["original"]/20) { // 1e-4 is the bound of goldens
			t.Errorf("%s: positions up to %d move logits by %.2g, with the original's angles by %.2g", export, lastPosition, off[""], off["original"])
		}
	}
}
