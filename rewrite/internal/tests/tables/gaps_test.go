package tables_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// turning makes the angles of tables in which some pairs do not turn.
func turning(turns func(pair int) bool) func(position, pair int) float64 {
	return func(p, pair int) float64 {
		if !turns(pair) {
			return 0
		}
		return float64(float32(p) * float32(frequency(pair)))
	}
}

// Pairs that do not turn stand behind the others (Gemma 4), among them or before them. The layer is
// proven with all of them, its base is read, and methods leave them as they are.
func TestPairsThatDoNotTurn(t *testing.T) {
	testruntime.Require(t)
	for name, c := range map[string]struct {
		turns func(pair int) bool
		model string
		pairs int // that are read, with those that do not turn
	}{
		"behind":                      {func(pair int) bool { return pair < 3 }, "gathered", pairs},
		"behind, in GroupQuery":       {func(pair int) bool { return pair < 3 }, "group_query", pairs},
		"behind, in RotaryEmbedding":  {func(pair int) bool { return pair < 3 }, "rotary_embedding", pairs},
		"among":                       {func(pair int) bool { return pair != 2 && pair != 5 }, "gathered", pairs},
		"among neighbours":            {func(pair int) bool { return pair != 2 && pair != 5 }, "indexed", pairs},
		"before":                      {func(pair int) bool { return pair > 1 }, "gathered", pairs},
		"only one turns":              {func(pair int) bool { return pair == 4 }, "gathered", pairs},
		"only one of neighbours does": {func(pair int) bool { return pair == 4 }, "indexed", 1},
	} {
		t.Run(name, func(t *testing.T) {
			original := retabled(t, c.model, 256, turning(c.turns))
			path, report := kit.Patch(t, original, rewrite.Options{})
			s := report.Sites[0]
			if s.ScoresOnly || s.RotaryDim != 2*c.pairs {
				t.Fatalf("%d channels are read as rotated, %d were expected (%s)", s.RotaryDim, 2*c.pairs, s.Reason)
			}
			e, count := s.Attention.Encoding, 0
			for pair := range pairs {
				if c.turns(pair) {
					count++
				}
				if c.pairs < pairs {
					continue // the first pair that is read is another one
				}
				want := turning(c.turns)(1, pair)
				if got := e.Frequencies[pair]; math.Abs(got-want) > 1e-6*want {
					t.Errorf("pair %d turns by %g, %g was expected", pair, got, want)
				}
			}
			if e.Turning() != count {
				t.Errorf("%d pairs turn, %d were expected", e.Turning(), count)
			}
			if count > 1 && s.Theta != 10000 {
				t.Errorf("theta is %g, 10000 was expected", s.Theta)
			}
			if c.model == "gathered" {
				kit.CompareModels(t, kit.Local(t), original, path, 255)
			}
			scaled, _ := kit.Patch(t, original, rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=4")}})
			m := kit.OpenModel(t, scaled)
			list, err := rewrite.Inspect(t.Context(), m, rewrite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for i, got := range list.Sites[0].Attention.Encoding.Frequencies {
				if want := e.Frequencies[i] / 4; math.Abs(got-want) > 1e-6*want {
					t.Errorf("scaled, pair %d turns by %g, %g was expected", i, got, want)
				}
			}
		})
	}
}

// Tables that only look as if some pairs did not turn stay the model's own.
func TestPairsThatSeemNotToTurn(t *testing.T) {
	testruntime.Require(t)
	behind := turning(func(pair int) bool { return pair < 3 })
	for name, of := range map[string]func(position, pair int) float64{
		"one turns at one position": func(p, pair int) float64 {
			if p == 77 && pair == 6 {
				return 0.5
			}
			return behind(p, pair)
		},
		"one turns from a position on": func(p, pair int) float64 {
			if p > 100 && pair == 6 {
				return float64(p - 100)
			}
			return behind(p, pair)
		},
	} {
		_, report := kit.Patch(t, retabled(t, "gathered", 256, of), rewrite.Options{})
		if s := report.Sites[0]; !s.ScoresOnly {
			t.Errorf("%s: the op rotates %d channels", name, s.RotaryDim)
		}
	}
	// Pairs that turn are multiplied by 2, the others are not.
	path := changed(t, retabled(t, "gathered", 256, behind), func(m *onnx.Model) {
		for _, name := range []string{"cosines", "sines"} {
			values, err := m.Graph.Initializer(name).Float64s()
			if err != nil {
				t.Fatal(err)
			}
			for i := range values {
				if i%pairs < 3 {
					values[i] *= 2
				}
			}
			replace(m, name, 256, values)
		}
	})
	_, report := kit.Patch(t, path, rewrite.Options{})
	if s := report.Sites[0]; !s.ScoresOnly {
		t.Errorf("a gain for some: the op rotates %d channels with the gain %g", s.RotaryDim, s.Attention.Encoding.Gain)
	}
}

// What --target onnx writes of a proportional rotation, another program reads: Inspect without the record.
func TestProportionalAgain(t *testing.T) {
	testruntime.Require(t)
	for _, name := range []string{"gathered", "rotary_embedding", "group_query"} {
		opts := rewrite.Options{Target: rewrite.PlainONNX, Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "proportional:partial_rotary_factor=0.25")}, Context: rope.Context{Length: 64}}
		path, _ := kit.Patch(t, filepath.Join(kit.Testdata, "tables", name+".onnx"), opts)
		report, err := rewrite.Inspect(t.Context(), kit.OpenModel(t, path), rewrite.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if s := report.Sites[0]; s.ScoresOnly || s.Attention.Encoding.Turning() != 2 || s.Theta != 10000 {
			t.Errorf("%s: %d pairs turn, with theta %g (%s)", name, s.Attention.Encoding.Turning(), s.Theta, s.Reason)
		}
	}
}

// Frequencies of which some are 0 in the graph itself: config.json agrees with them, and a scaling in the
// model's own nodes leaves them 0.
func TestFrequenciesOfZero(t *testing.T) {
	testruntime.Require(t)
	const config = `{"max_position_embeddings": 64, "rope_parameters": {"rope_type": "proportional", "partial_rotary_factor": 0.375, "rope_theta": 10000}}`
	original := kit.Beside(t, filepath.Join(kit.Testdata, "tables", "proportional.onnx"), config)
	for _, target := range []rewrite.Target{rewrite.Ops, rewrite.PlainONNX} {
		path, report := kit.Patch(t, original, rewrite.Options{Target: target, Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "yarn:factor=4")}})
		if len(report.Warnings) > 0 || report.Sites[0].Theta != 10000 {
			t.Errorf("%s: theta %g, warnings %q", target, report.Sites[0].Theta, report.Warnings)
		}
		again, err := rewrite.Inspect(t.Context(), kit.OpenModel(t, path), rewrite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		// What transformers 5.17 makes of heads of 16 channels (_compute_yarn_parameters), the first three of eight pairs.
		for i, want := range []float64{1, 0.237170815, 0.049999997, 0, 0, 0, 0, 0} {
			if got := again.Sites[0].Attention.Encoding.Frequencies[i]; math.Abs(got-want) > 1e-6*want {
				t.Errorf("%s: pair %d turns by %g, %g was expected", target, i, got, want)
			}
		}
	}
}
