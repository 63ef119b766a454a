package golden_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// distances are exports with a bias by distance, and what is measured of it.
var distances = map[string]struct {
	shown  bool // counted in keys that the mask shows
	slopes []float64
	starts []int64
}{
	"bloom__dynamo18":              {shown: true, slopes: []float64{0.25, 0.0625, 0.015625, 0.00390625}},
	"falcon_rw__dynamo18":          {shown: true, slopes: []float64{0.25 * perHead, 0.0625 * perHead, 0.015625 * perHead, 0.00390625 * perHead}},
	"mpt__dynamo18":                {slopes: []float64{0.0625, 0.00390625, 0.25}},
	"t5_decoder__dynamo18":         {starts: []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 14, 16, 19, 21}},
	"bloom__dynamo18-fp16":         {shown: true, slopes: []float64{0.25, 0.0625, 0.015625, 0.00390625}},
	"t5_decoder__dynamo18-fp16":    {starts: []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 14, 16, 19, 21}},
	"t5_encoder__dynamo18-nocache": {starts: []int64{-16, -15, -9, -6, -3, -2, -1, 0, 1, 2, 3, 4, 7, 10, 16}},
}

// perHead is 1/√8 as float32.
const perHead = 0.35355338454246521

// TestDistances: exports with ALiBi's slopes and T5's buckets compute what transformers does, with methods and
// without, in prefill and with a cache, padded on the left and with holes.
func TestDistances(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	type distanceCase struct {
		name, golden string
		target       rewrite.Target
	}
	var cases []distanceCase
	for _, golden := range []string{"plain", "hole", "window8", "first_keys", "anchor", "intra", "linear4"} {
		for _, name := range slices.Sorted(maps.Keys(distances)) {
			for _, target := range []rewrite.Target{rewrite.Ops, rewrite.PlainONNX} {
				if golden != "linear4" || distances[name].slopes != nil {
					cases = append(cases, distanceCase{name, golden, target})
				}
			}
		}
	}
	for _, c := range testsample.Of(t, cases, 13) {
		t.Run(c.name+"/"+c.golden+"/"+string(c.target), func(t *testing.T) {
			t.Parallel()
			opts := distanceOptions(t, c.golden)
			opts.Target = c.target
			patched, report := kit.Patch(t, kit.Model(c.name), opts)
			compareDistances(t, c.name, c.golden, patched)
			want := distances[c.name]
			for _, s := range report.Sites {
				d := s.Attention.Distance
				if d.Shown != want.shown || !slices.Equal(d.Slopes, want.slopes) || !slices.Equal(d.Starts, want.starts) {
					t.Errorf("layer %d: slopes %v, starts %v, shown %v were measured, expected %+v", s.Layer, d.Slopes, d.Starts, d.Shown, want)
				}
				if s.Attention.Mask.Bias {
					t.Errorf("layer %d keeps the model's own bias", s.Layer)
				}
			}
			if c.target == rewrite.Ops {
				noSquare(t, patched)
			}
		})
	}
}

// distanceOptions are the options that give what a golden has.
func distanceOptions(t *testing.T, golden string) (o rewrite.Options) {
	switch golden {
	case "window8":
		o.Edits = []rope.Spec{kit.Spec(t, rope.MaskAxis, "sliding-window:window=8")}
	case "first_keys":
		o.Edits = []rope.Spec{kit.Spec(t, rope.MaskAxis, "first-keys:window=8,count=2")}
	case "anchor", "intra":
		o.Edits = []rope.Spec{kit.Spec(t, rope.MaskAxis, map[string]string{"anchor": "anchor", "intra": "intra-document"}[golden])}
		o.Documents.Input = "document_ids"
	case "linear4":
		o.Edits = []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=4")}
	}
	return o
}

// noSquare: nothing in a patched model computes a mask or a bias any more: each op reads none, and the nodes are
// gone.
func noSquare(t *testing.T, path string) {
	t.Helper()
	m := kit.OpenModel(t, path)
	for _, n := range m.Graph.Nodes {
		switch {
		case n.Domain == customop.Domain:
			op, err := definition.Read(n)
			if err != nil {
				t.Fatal(err)
			}
			if op.AttentionBias != "" || op.BiasBeforeSoftcap != "" {
				t.Errorf("%s reads a bias", n.Name)
			}
		case slices.Contains([]string{"CumSum", "And", "Trilu", "Log", "Less", "LessOrEqual", "Greater", "Softmax"}, n.OpType):
			t.Errorf("the node %s (%s) is left", n.Name, n.OpType)
		}
	}
}

// TestDistancesFixed: the same in a cache of fixed capacity.
func TestDistancesFixed(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for name, c := range distances {
		if strings.HasSuffix(name, "-nocache") {
			continue
		}
		for _, golden := range []string{"plain", "hole", "linear4"} {
			if golden == "linear4" && c.slopes == nil {
				continue
			}
			t.Run(name+"/"+golden, func(t *testing.T) {
				t.Parallel()
				opts := distanceOptions(t, golden)
				opts.Cache.Capacity = 50
				patched, _ := kit.Patch(t, kit.Model(name), opts)
				compareDistances(t, name, golden, patched)
			})
		}
	}
}

// TestDistancesStatic: the same in a model for one batch and one length, of which every row is looked at.
func TestDistancesStatic(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	const name = "t5_encoder__dynamo18-nocache"
	m := kit.OpenModel(t, kit.Model(name))
	m.Graph.ValueInfo = nil
	for _, v := range m.Graph.Inputs {
		v.Shape = []onnx.Dim{{Value: 2}, {Value: 48}}
	}
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := m.Save(path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	patched, report := kit.Patch(t, path, rewrite.Options{})
	if got, want := report.Sites[0].Attention.Distance.Starts, distances[name].starts; !slices.Equal(got, want) {
		t.Errorf("ranges begin at %v, %v was expected", got, want)
	}
	for _, golden := range []string{"plain", "hole"} {
		compareDistances(t, name, golden, patched)
	}
}

// TestDistancesRefused: what has no bias by distance says so.
func TestDistancesRefused(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for want, opts := range map[string]rewrite.Options{
		"GroupQueryAttention cannot compute this: it has no bias by distance": {Target: rewrite.Contrib},
		"scaling yarn: the attention has no rotation to change":               {Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "yarn:factor=2")}},
		"positions rerope: the attention has no rotation to change":           {Edits: []rope.Spec{kit.Spec(t, rope.PositionsAxis, "rerope:window=4")}},
	} {
		_, err := kit.Rewrite(t.Context(), kit.OpenModel(t, kit.Model("mpt__dynamo18")), opts)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
}

// TestDistancesAgain: another method, or none, begins with the slopes of the original; carried slopes are divided
// once more.
func TestDistancesAgain(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	const name = "bloom__dynamo18"
	path, _ := kit.Patch(t, kit.Model(name), rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=2")}})
	again, _ := kit.Patch(t, path, rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=4")}})
	compareDistances(t, name, "linear4", again)
	opts := rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=2")}}
	opts.Earlier.Carried = true
	carried, _ := kit.Patch(t, path, opts)
	compareDistances(t, name, "linear4", carried)
	opts = rewrite.Options{}
	opts.Earlier.Restore = true
	restored, _ := kit.Patch(t, carried, opts)
	compareDistances(t, name, "plain", restored)
	const buckets = "t5_decoder__dynamo18"
	path, _ = kit.Patch(t, kit.Model(buckets), rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.MaskAxis, "sliding-window:window=5")}})
	again, _ = kit.Patch(t, path, distanceOptions(t, "window8"))
	compareDistances(t, buckets, "window8", again)
}

// TestDistancesFar: in a call of 16,384 tokens the patched model is at most twice as far from the original in
// float64 as the original is, which runs in pieces: one call would take 8 GB.
func TestDistancesFar(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	testsample.Long(t, "16,384 tokens take minutes, and fewer are not far")
	const name, length, piece = "bloom__dynamo18", 16384, 128
	patched, _ := kit.Patch(t, kit.Model(name), rewrite.Options{})
	before, after := kit.OpenModel(t, kit.Model(name)), kit.OpenModel(t, patched)
	double, doublePath := kit.InDouble(t, before)
	caches := map[string][]int64{}
	for _, v := range before.Graph.Inputs {
		if len(v.Shape) == 4 {
			caches[v.Name] = []int64{1, v.Shape[1].Value, 0, v.Shape[3].Value}
		}
	}
	rng := rand.New(rand.NewPCG(31, 32))
	s := kit.Sequence{Batch: 1, Length: length, Positions: make([]int64, length)}
	for i := range int64(length) {
		s.Ids, s.Mask = append(s.Ids, rng.Int64N(32)), append(s.Mask, dim.OneIf(i < 10_000 || i > 10_010))
	}
	eng := kit.Local(t)
	logits := func(m *onnx.Model, path string, chunks []int64) (list []float64) {
		for _, call := range kit.Load(t, eng, m, path, true, caches).Run(t, s, chunks) {
			list = append(list, call["logits"].Values()...)
		}
		return list
	}
	pieces := slices.Repeat([]int64{piece}, length/piece)
	want := logits(double, doublePath, pieces)
	off := func(got []float64) (worst float64) {
		for i, x := range want {
			if s.Mask[int64(i)*length/int64(len(want))] != 0 {
				worst = max(worst, abs(got[i]-x))
			}
		}
		return worst
	}
	original, op := off(logits(before, kit.Model(name), pieces)), off(logits(after, patched, []int64{length}))
	t.Logf("the original is off by %.2g, the patched model by %.2g", original, op)
	if !(op <= 2*original) {
		t.Errorf("off by %.2g, the original by %.2g", op, original)
	}
}

// compareDistances compares a patched model with a golden: it is off by at most 1e-4 or, where the whole model is
// computed in 16 bits, by twice what it is off by before it is patched.
func compareDistances(t *testing.T, name, golden, patched string) {
	t.Helper()
	bound := 1e-4
	if strings.HasSuffix(name, "-fp16") {
		bound = 2 * offGolden(t, name, "plain", kit.Model(name))
	}
	if worst := offGolden(t, name, golden, patched); !(worst <= bound) {
		t.Errorf("%s: off by %.2g, at most %.2g was expected", golden, worst, bound)
	} else {
		t.Logf("%s: off by %.2g, at most %.2g is expected", golden, worst, bound)
	}
}

// offGolden is how far a model is from a golden at most, in every way of running it.
func offGolden(t *testing.T, name, golden, path string) (worst float64) {
	t.Helper()
	f, err := npz.Open(filepath.Join(kit.Testdata, "models", strings.TrimSuffix(name, "-fp16"), "golden.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	integers := func(key string) []int64 {
		values, _, err := f.Int64(key)
		if err != nil {
			t.Fatal(err)
		}
		return values
	}
	want, shape, err := f.Float32(golden)
	if err != nil {
		t.Fatal(err)
	}
	batch, length, width := int64(shape[0]), int64(shape[1]), shape[2]
	s := decoder.Sequence{Batch: batch, Length: length, IDs: integers("ids"), Mask: integers("mask"), Positions: make([]int64, batch*length)}
	switch golden {
	case "hole":
		s.Mask = integers("mask_hole")
	case "anchor", "intra":
		s.Documents = integers("documents")
	}
	d, err := decoder.Open(context.Background(), kit.Local(t), path, decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ways := [][]int64{{length}}
	if d.Cached() {
		ways = append(ways, []int64{17, length - 17}, slices.Concat([]int64{25}, slices.Repeat([]int64{1}, int(length-25))))
	}
	for _, chunks := range ways {
		logits, err := d.Chunks(context.Background(), s, chunks...)
		if err != nil {
			t.Fatal(err)
		}
		if len(logits) != len(want) {
			t.Fatalf("%d logits, the golden has %d", len(logits), len(want))
		}
		for i, x := range want {
			if s.Mask[i/width] != 0 {
				worst = max(worst, abs(logits[i]-float64(x)))
			}
		}
	}
	return worst
}
