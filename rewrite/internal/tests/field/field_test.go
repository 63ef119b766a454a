package field_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/audit"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// What a layer becomes.
const (
	whole     = "rewritten"
	scores    = "without its rotation" // the rest is rewritten
	turned    = "its rotation alone"   // the rest is unchanged
	unchanged = "unchanged"
	none      = "no rotary attention" // of the model
)

// row is a line of docs/results/field.md: a model of testdata/field and what must come.
type row struct {
	name     string
	layers   []string // what each layer becomes; {none}
	reason   string   // what the reason of those that are not whole says
	scaling  string   // what is said where linear:factor=2 is asked for, after | of --target onnx; "" is that it is done
	warns    string   // what is warned of; "" is nothing
	audit    string   // the claims that differ; "" is none
	unfed    bool     // the comparison has no inputs for it
	byLogits bool     // GroupQueryAttention does not run as others do, nor does Conv in float64
	plain    bool     // linear:factor=2 is done with --target onnx, not without
}

var one, two = []string{whole}, []string{whole, whole}

var rows = []row{
	{name: "raw_cache", layers: one},
	{name: "raw_cache_twin", layers: one},
	{name: "raw_cache_positions", layers: []string{unchanged}, reason: "its cached keys are rotated by their index when they are read, but the query by the input", scaling: "unchanged", plain: true},
	{name: "mask_sum", layers: one},
	{name: "mask_sum_cached", layers: one},
	{name: "mask_sum_offset", layers: one},
	{name: "minus_length", layers: one},
	{name: "no_positions", layers: one},
	{name: "proportional", layers: two},
	{name: "states_rotated", layers: []string{none}, reason: "rotate neither query nor key", scaling: "no rotary attention"},
	{name: "convolutions", layers: one, warns: "says 10000", audit: "rope_theta 0: 10000, 1000000", byLogits: true},
	{name: "gqa_table_float32", layers: one, byLogits: true},
	{name: "gqa_table_float64", layers: one, byLogits: true},
	{name: "rotary23_short_table", layers: one},
	{name: "rotary23_no_positions", layers: one},
	{name: "table_1536", layers: one},
	{name: "decay", layers: []string{scores}, reason: "xPos: at position p each pair is also multiplied by", scaling: "unchanged"},
	{name: "log_length", layers: one},
	{name: "growing_base", layers: []string{scores}, reason: "with up to 16 tokens, cached ones included, pair", scaling: "unchanged"},
	{name: "flags_inverted", layers: two, audit: "rope_theta 0: no rotation, a rotation; rope_theta 1: 10000, no rotation"},
	{name: "longrope_if", layers: one, byLogits: true, scaling: "frequencies"},
	{name: "partial_gqa", layers: one, byLogits: true},
	{name: "interleaved_mha", layers: one},
	{name: "half_interleaved", layers: one},
	{name: "complex_pairs", layers: one},
	{name: "embedder", layers: one},
	{name: "windows", layers: two},
	{name: "shared_cache", layers: []string{unchanged, unchanged}, reason: "this layer shares the cache at", scaling: "unchanged"},
	{name: "linear", layers: one, scaling: "already scaled"},
	{name: "yarn", layers: one, scaling: "already scaled"},
	{name: "fixed_sizes", layers: one, warns: "only for batch 2", unfed: true},
	{name: "theta_lost", layers: one, warns: "says 500000", audit: "rope_theta 0: 500000, 10000"},
	{name: "llama3_lost", layers: one, warns: "names a scaling that the graph does not have", audit: "rope_scaling 0: llama3:factor=8,original_max_position_embeddings=32,low_freq_factor=1,high_freq_factor=4, none"},
	{name: "window_lost", layers: one, audit: "sliding_window 0: 8, none"},
	{name: "three_positions", layers: one},
	{name: "tables_fed", unfed: true, layers: []string{scores}, reason: "its query is multiplied by numbers that the caller gives", scaling: "unchanged"},
	{name: "alibi", layers: one},
	{name: "image", layers: []string{unchanged}, reason: "2-D positions: its query is rotated by the rows and columns of a grid", scaling: "unchanged"},
	{name: "image_fixed", layers: []string{unchanged}, reason: "2-D positions: its query is rotated by the rows and columns of a grid", scaling: "unchanged"},
	{name: "image_memory", layers: []string{unchanged}, reason: "2-D positions: its query is rotated by the rows and columns of a grid", scaling: "unchanged"},
	{name: "places_given", layers: []string{unchanged}, reason: "its query is multiplied by numbers that the caller gives", scaling: "unchanged"},
	{name: "places_of_grids", layers: []string{unchanged}, reason: "which has 2 numbers for each token", scaling: "unchanged"},
	{name: "attentions_out", layers: two, scaling: "is an output of the graph", plain: true},
	{name: "new_keys_only", layers: two, unfed: true, scaling: `"new.0.key" is an output of the graph`, plain: true}, // and TestExpected
	{name: "rotated_values", layers: []string{turned, turned}, reason: "the path of its value is changed by", scaling: "is read by node_matmul_1 (MatMul), beside the scores of query and key|the rotation's constants reach node"},
	{name: "ts_granite_swa", layers: two}, // and TestExpected
	{name: "ts_neomme", layers: two},
	{name: "packed_positions", layers: two}, // and TestPackedPositions
	{name: "qwen35_builder", layers: two},   // and TestExpected
	{name: "causal_end_aligned", layers: two, warns: "the original is wrong in calls with cached tokens: in layers 0-1, token i of a call sees the first i + 1 keys alone"},
	{name: "tensor_scatter", layers: []string{turned}, reason: "new keys and values are not known to be written right after the earlier tokens", scaling: "unchanged", plain: true, unfed: true},
}

// TestField: each model of a kind that people have trouble with becomes what docs/results/field.md
// says, or is left unchanged for the reason there.
func TestField(t *testing.T) {
	testruntime.Require(t)
	for _, r := range testsample.Of(t, rows, 8) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.rewrites(t)
			r.scales(t)
			r.audits(t)
		})
	}
}

func (r row) path() string { return kit.Model("../field/" + r.name) }

// rewrites checks what the layers become without a method, and that the model computes what it did.
func (r row) rewrites(t *testing.T) {
	m := kit.OpenModel(t, r.path())
	report, err := kit.Rewrite(context.Background(), m, rewrite.Options{AllowUnchanged: true})
	if slices.Equal(r.layers, []string{none}) {
		if !errors.Is(err, rewrite.ErrNoAttention) || !strings.Contains(err.Error(), r.reason) {
			t.Errorf("the error is %v; %q was expected", err, r.reason)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(report.Warnings, "; "); (got == "") != (r.warns == "") || !strings.Contains(got, r.warns) {
		t.Errorf("the warnings are %q; %q was expected", got, r.warns)
	}
	var layers []string
	for _, s := range report.Sites {
		became := whole
		switch {
		case s.Status == rewrite.Unchanged:
			became = unchanged
		case s.Status == rewrite.Rotation:
			became = turned
		case s.ScoresOnly:
			became = scores
		}
		layers = append(layers, became)
		if became != whole && !strings.Contains(s.Reason, r.reason) {
			t.Errorf("layer %d is %s for another reason than %q: %s", s.Layer, became, r.reason, s.Reason)
		}
	}
	if !slices.Equal(layers, r.layers) {
		t.Fatalf("the layers are %q; %q was expected", layers, r.layers)
	}
	if report.Replaced() == 0 || r.unfed {
		return
	}
	if r.byLogits {
		kit.SamePatched(t, r.path(), m, 40)
		return
	}
	patched := filepath.Join(t.TempDir(), "patched.onnx")
	if err := m.Save(patched, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	kit.CompareModels(t, kit.Local(t), r.path(), patched, 40)
}

// scales checks what comes where a scaling is asked for.
func (r row) scales(t *testing.T) {
	for _, target := range []rewrite.Target{rewrite.Ops, rewrite.PlainONNX} {
		opts := rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=2")}, Target: target}
		_, err := kit.Rewrite(context.Background(), kit.OpenModel(t, r.path()), opts)
		want, plain, differ := strings.Cut(r.scaling, "|")
		if target == rewrite.PlainONNX && differ {
			want = plain
		}
		switch {
		case r.plain && target == rewrite.PlainONNX || want == "":
			if err != nil {
				t.Errorf("a scaling with the target %s: %v", target, err)
			}
		case err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("a scaling with the target %s: the error is %v; %q was expected", target, err, want)
		}
	}
}

// audits compares the model with what its config.json claims, where it has one.
func (r row) audits(t *testing.T) {
	if _, err := os.Stat(filepath.Join(filepath.Dir(r.path()), "config.json")); err != nil {
		return
	}
	report, err := audit.Run(context.Background(), r.path(), audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var differs []string
	for _, l := range report.Lines {
		if l.Verdict == audit.Differs {
			differs = append(differs, fmt.Sprintf("%s %s: %s, %s", l.What, l.Where, l.Expected, l.Found))
		}
	}
	if got := strings.Join(differs, "; "); got != r.audit {
		t.Errorf("audit finds %q; %q was expected", got, r.audit)
	}
}

// TestRowsAndModels: every model has a row, here and in the documentation.
func TestRowsAndModels(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(kit.Testdata, "..", "docs", "results", "field.md"))
	if err != nil {
		t.Fatal(err)
	}
	models, err := os.ReadDir(filepath.Join(kit.Testdata, "field"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range models {
		if !slices.ContainsFunc(rows, func(r row) bool { return r.name == m.Name() }) {
			t.Errorf("%s has no row in this test", m.Name())
		}
		if !strings.Contains(string(page), "`"+m.Name()+"`") {
			t.Errorf("%s has no row in docs/results/field.md", m.Name())
		}
	}
	if len(models) != len(rows) {
		t.Errorf("%d models have %d rows", len(models), len(rows))
	}
}
