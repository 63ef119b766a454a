package field_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestExpected: models that give more than logits and caches, or make something of their scores. Without a method the
// rewritten model gives what PyTorch or NumPy computed in float64. A scaling in its own nodes does, too, where there is such
// a golden; and keys that the host appends are those of one call.
func TestExpected(t *testing.T) {
	testruntime.Require(t)
	linear := rewrite.Options{LayerEdits: []rewrite.LayerEdit{rewrite.AllLayers(kit.Spec(t, rope.ScalingAxis, "linear:factor=4"))}, Target: rewrite.PlainONNX}
	for name, scaled := range map[string]string{
		"attentions_out": "", "new_keys_only": "one call", "rotated_values": "", "ts_granite_swa": "linear4", "ts_neomme": "linear4", "qwen35_builder": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			linear := linear // its target changes
			g := golden{t, kit.Model("../field/" + name)}
			g.holds("expected", g.run(rewrite.Options{AllowUnchanged: true}))
			switch scaled {
			case "":
			case "one call":
				logits := g.run(linear)
				if off := distance(logits, g.run(linear, 20)); !(off <= 1e-4) {
					t.Errorf("in several calls it is off by %.2g", off)
				}
				if off := distance(logits, g.run(rewrite.Options{})); off < 0.1 {
					t.Errorf("the scaling changes no more than %.2g", off)
				}
			default:
				g.holds(scaled, g.run(linear))
				linear.Target = rewrite.Ops
				g.holds(scaled, g.run(linear))
				if name != "ts_granite_swa" { // whose sink is beside the mask
					return
				}
				window := rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.MaskAxis, "sliding-window:window=4")}}
				logits := g.run(window)
				window.Target = rewrite.PlainONNX
				if off := distance(g.unpadded(logits), g.unpadded(g.run(window))); !(off <= 1e-5) {
					t.Errorf("two targets differ by %.2g", off)
				}
			}
		})
	}
}

// TestPackedPositions: documents in one row, told from positions that go back, keep being told apart under methods, which
// count within them.
func TestPackedPositions(t *testing.T) {
	testruntime.Require(t)
	g := golden{t, kit.Model("../field/packed_positions")}
	for key, asked := range map[string]rewrite.Options{
		"expected": {},
		"linear4":  {Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=4")}},
		"yarn4":    {Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=64")}},
		"string":   {Edits: []rope.Spec{kit.Spec(t, rope.PositionsAxis, "string:shift=3,window=1")}},
		"rerope":   {Edits: []rope.Spec{kit.Spec(t, rope.PositionsAxis, "rerope:window=3")}},
	} {
		for _, target := range []rewrite.Target{rewrite.Ops, rewrite.PlainONNX} {
			asked.Target = target
			g.holds(key, g.run(asked))
		}
	}
}

// TestPackedGaps: where positions may skip some within a document, places do not tell distances, and a map asks for positions
// that follow one another.
func TestPackedGaps(t *testing.T) {
	testruntime.Require(t)
	m := kit.OpenModel(t, kit.Model("../field/packed_positions"))
	for _, n := range m.Graph.Nodes {
		if n.OpType == "Equal" && n.Inputs[0] == "sub" { // a step of 1; the other compares documents
			n.OpType = "GreaterOrEqual"
		}
	}
	asked := rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.PositionsAxis, "string:shift=3,window=1")}}
	if _, err := kit.Rewrite(t.Context(), m, asked); err != nil {
		t.Fatal(err)
	}
	ops := 0
	for n := range m.Graph.AllNodes() {
		if n.Domain == customop.Domain && n.OpType == customop.Specs[0].Name {
			ops++
			if !slices.Contains(n.Inputs, "position_ids") {
				t.Errorf("%s reads no positions", n.Name)
			}
		}
	}
	if ops != 2 {
		t.Errorf("%d ops", ops)
	}
}

type golden struct {
	t    *testing.T
	path string
}

// holds compares logits with those of expected.npz.
func (g golden) holds(key string, logits []float64) {
	g.t.Helper()
	f, err := npz.Open(filepath.Join(filepath.Dir(g.path), "expected.npz"))
	if err != nil {
		g.t.Fatal(err)
	}
	defer f.Close()
	want, _, err := f.Float64(key)
	if err != nil {
		g.t.Fatal(err)
	}
	if len(want) < len(logits) { // the file has no padded tokens
		logits = g.unpadded(logits)
	}
	if off := distance(want, logits); !(off <= 1e-5) {
		g.t.Errorf("%s: off by %.2g of the range", key, off)
	}
}

// unpadded are the logits of one call without those of padding.
func (g golden) unpadded(logits []float64) (rows []float64) {
	mask := g.calls(nil)[0]["attention_mask"].Values()
	width := len(logits) / len(mask)
	for i, real := range mask {
		if real != 0 {
			rows = append(rows, logits[i*width:(i+1)*width]...)
		}
	}
	return rows
}

// distance is the largest difference, as a share of the range.
func distance(want, got []float64) (worst float64) {
	if len(want) != len(got) {
		return math.Inf(1)
	}
	for i, w := range want {
		worst = math.Max(worst, math.Abs(w-got[i]))
	}
	return worst / (slices.Max(want) - slices.Min(want))
}

// run rewrites the model and returns the logits of all its calls, row by row. The tokens are those of expected.npz, in
// its calls, or all in one. New keys and values are appended to those of earlier calls, as the host does.
func (g golden) run(opts rewrite.Options, whole ...int64) []float64 {
	g.t.Helper()
	ctx, m := context.Background(), kit.OpenModel(g.t, g.path)
	if _, err := kit.Rewrite(ctx, m, opts); err != nil {
		g.t.Fatal(err)
	}
	model := engine.Model{Path: filepath.Join(g.t.TempDir(), "patched.onnx"), Library: m.Opset(customop.Domain) > 0, Outputs: []string{"logits"}}
	if err := m.Save(model.Path, onnx.SaveOptions{}); err != nil {
		g.t.Fatal(err)
	}
	past := map[string]engine.Tensor{} // by what comes behind past_key_values
	gives := "new"                     // what the outputs begin with: new rows, or all
	if slices.ContainsFunc(m.Graph.Outputs, func(v *onnx.ValueInfo) bool { return strings.HasPrefix(v.Name, "present") }) {
		gives = "present"
	}
	for _, v := range m.Graph.Inputs {
		model.Inputs = append(model.Inputs, v.Name)
		if name, is := strings.CutPrefix(v.Name, "past_key_values"); is {
			past[name] = engine.Float32s(nil, 2, 2, 0, 16)
			model.Outputs = append(model.Outputs, gives+name)
		}
	}
	session, err := kit.Local(g.t).Load(ctx, model)
	if err != nil {
		g.t.Fatal(err)
	}
	defer session.Close()
	rows := make([][]float64, 2)
	for _, feeds := range g.calls(whole) {
		for name, x := range past {
			feeds["past_key_values"+name] = x
		}
		out, err := session.Run(ctx, feeds)
		if err != nil {
			g.t.Fatal(err)
		}
		for name, x := range past {
			if past[name] = out[gives+name]; gives == "new" {
				past[name] = appended(x, out[gives+name])
			}
		}
		logits := out["logits"].Values()
		for b := range rows {
			rows[b] = append(rows[b], logits[b*len(logits)/2:(b+1)*len(logits)/2]...)
		}
	}
	return append(rows[0], rows[1]...)
}

// calls are the inputs of the calls of expected.npz, or of one with so many tokens.
func (g golden) calls(whole []int64) (list []map[string]engine.Tensor) {
	f, err := npz.Open(filepath.Join(filepath.Dir(g.path), "expected.npz"))
	if err != nil {
		g.t.Fatal(err)
	}
	defer f.Close()
	read := func(prefix string) map[string]engine.Tensor {
		feeds := map[string]engine.Tensor{}
		for _, name := range []string{"input_ids", "attention_mask", "position_ids"} {
			if slices.Contains(f.Keys(), prefix+name) {
				ids, shape, err := f.Int64(prefix + name)
				if err != nil {
					g.t.Fatal(err)
				}
				dims := make([]int64, len(shape))
				for i, n := range shape {
					dims[i] = int64(n)
				}
				feeds[name] = engine.Int64s(ids, dims...)
			}
		}
		return feeds
	}
	if !slices.Contains(f.Keys(), "call0_input_ids") {
		return []map[string]engine.Tensor{read("")}
	}
	for i := 0; slices.Contains(f.Keys(), fmt.Sprintf("call%d_input_ids", i)); i++ {
		list = append(list, read(fmt.Sprintf("call%d_", i)))
	}
	if whole == nil {
		return list
	}
	one := list[len(list)-1] // whose mask is of all tokens
	for _, name := range []string{"input_ids", "position_ids"} {
		var all [2][]int64
		for _, call := range list {
			values := call[name].Values()
			for i, x := range values {
				b := i * 2 / len(values)
				all[b] = append(all[b], int64(x))
			}
		}
		one[name] = engine.Int64s(append(all[0], all[1]...), 2, whole[0])
	}
	return []map[string]engine.Tensor{one}
}

// appended joins rows of [2, 2, tokens, 16].
func appended(a, b engine.Tensor) engine.Tensor {
	x, y := a.Values(), b.Values()
	var out []float32
	for h := range 4 {
		for _, part := range [][]float64{x[h*len(x)/4 : (h+1)*len(x)/4], y[h*len(y)/4 : (h+1)*len(y)/4]} {
			for _, v := range part {
				out = append(out, float32(v))
			}
		}
	}
	return engine.Float32s(out, 2, 2, int64(len(out)/64), 16)
}
