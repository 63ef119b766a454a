package tables_test

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// changed is a model of testdata/tables after a change.
func changed(t *testing.T, path string, change func(m *onnx.Model)) string {
	t.Helper()
	m := kit.OpenModel(t, path)
	change(m)
	out := filepath.Join(t.TempDir(), "model.onnx")
	if err := m.Save(out, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return out
}

// withoutCache takes the cache from a model with ONNX's Attention.
func withoutCache(m *onnx.Model) {
	for _, n := range m.Graph.Nodes {
		if n.OpType == "Attention" {
			n.Inputs, n.Outputs = n.Inputs[:3], n.Outputs[:1]
		}
	}
	m.Graph.Inputs, m.Graph.Outputs = m.Graph.Inputs[:2], m.Graph.Outputs[:1]
}

// ONNX Runtime's RotaryEmbedding takes no more tokens in a call than its tables have rows. The layer
// is proven on calls that are as long, and the report says so.
func TestTablesShorterThanCalls(t *testing.T) {
	testruntime.Require(t)
	for _, c := range []struct {
		rows    int
		cache   bool
		longest int64
	}{{64, true, 64}, {128, true, 128}, {136, true, 0}, {7, true, 7}, {128, false, 128}, {301, false, 0}} {
		original := retabled(t, "rotary_embedding", c.rows, angles[0].of)
		if !c.cache {
			original = changed(t, original, withoutCache)
		}
		_, report := kit.Patch(t, original, rewrite.Options{})
		s := report.Sites[0]
		if s.ScoresOnly || s.Proof.LongestCall != c.longest {
			t.Errorf("%d rows: the longest call has %d tokens, %d were expected (%s)", c.rows, s.Proof.LongestCall, c.longest, s.Reason)
		}
		if says := strings.Contains(s.Proof.SkippedWhy, "at most as many tokens in a call as its tables of cosines have rows"); says != (c.longest > 0) {
			t.Errorf("%d rows: the reason is %q", c.rows, s.Proof.SkippedWhy)
		}
		_, report = kit.Patch(t, original, rewrite.Options{Target: rewrite.PlainONNX, Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=4")}})
		if s := report.Sites[0]; s.Form != rewrite.OwnNodes || s.RotationOnly {
			t.Errorf("%d rows: with a scaling it is written as %q: %s", c.rows, s.Form, s.FormReason)
		}
	}
}

// A RotaryEmbedding whose tables the graph makes in each call, as long as the positions ask for.
func TestTablesOfEachCall(t *testing.T) {
	testruntime.Require(t)
	original := filepath.Join(kit.Testdata, "tables", "computed.onnx")
	path, report := kit.Patch(t, original, rewrite.Options{})
	if p := report.Sites[0].Proof; p.Skipped == 0 || p.LongestCall > 0 || !strings.Contains(p.SkippedWhy, "Export longer tables") {
		t.Errorf("%d kinds of input were run with one row, for %q", p.Skipped, p.SkippedWhy)
	}
	if exactAngles(t, path) {
		t.Error("its angles are computed in float32, and the op's are exact")
	}
}

// ONNX Runtime's GroupQueryAttention does not run with fewer than eight pairs on the CPU. Its
// rotation alone is scaled, and measured again alone.
func TestRotationAloneMeasuredAgain(t *testing.T) {
	testruntime.Require(t)
	const few = 4
	original := changed(t, filepath.Join(kit.Testdata, "tables", "group_query.onnx"), func(m *onnx.Model) {
		for name, wave := range map[string]func(float64) float64{"cosines": math.Cos, "sines": math.Sin} {
			var values []float64
			for i := range 64 * few {
				values = append(values, wave(float64(i/few)*math.Pow(10000, -float64(i%few)/few)))
			}
			replace(m, name, 64, values)
		}
	})
	// YaRN's are what transformers 5.17 gives for heads of 8 channels (_compute_yarn_parameters).
	for scaling, want := range map[string]struct {
		frequencies [few]float64
		gain        float64
	}{
		"linear:factor=4": {[few]float64{0.25, 0.025, 0.0025, 0.00025}, 1},
		"yarn:factor=4,original_max_position_embeddings=64": {[few]float64{1, 0.0625, 0.0025, 0.00025}, 1.138629436111989},
	} {
		path, report := kit.Patch(t, original, rewrite.Options{Target: rewrite.PlainONNX, Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, scaling)}})
		if !report.Sites[0].RotationOnly {
			t.Errorf("%s: not only the rotation was measured", scaling)
		}
		for name, wave := range map[string]func(float64) float64{"cosines": math.Cos, "sines": math.Sin} {
			got, err := kit.OpenModel(t, path).Graph.Initializer(name).Float64s()
			if err != nil || len(got) != 256*few {
				t.Fatalf("%s: the table has %d numbers: %v", scaling, len(got), err)
			}
			for i, v := range got {
				if w := want.gain * wave(float64(i/few)*want.frequencies[i%few]); math.Abs(v-w) > 2e-5 {
					t.Fatalf("%s: number %d of the %s is %g, %g was expected", scaling, i, name, v, w)
				}
			}
		}
	}
}

// Tables that the caller gives say nothing of what the model rotates by.
func TestTablesAsInputs(t *testing.T) {
	testruntime.Require(t)
	for _, name := range []string{"rotary_embedding", "gathered"} {
		m := kit.OpenModel(t, filepath.Join(kit.Testdata, "tables", name+".onnx"))
		for _, table := range []string{"cosines", "sines"} {
			m.Graph.RemoveInitializers(func(c *onnx.Tensor) bool { return c.Name == table })
			m.Graph.AddInput(&onnx.ValueInfo{Name: table, Type: onnx.Float, Shape: []onnx.Dim{{Param: "rows"}, {Value: pairs}}})
		}
		report, err := kit.Rewrite(t.Context(), m, rewrite.Options{})
		if err == nil || !strings.Contains(report.Sites[0].Reason, "which the caller gives") {
			t.Errorf("%s: %v (%+v)", name, err, report.Sites)
		}
	}
}
