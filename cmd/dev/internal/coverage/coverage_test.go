package coverage_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/dev/internal/coverage"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

const exports = "../../../../testdata/coverage"

func TestMain(m *testing.M) {
	rewrite.ServeIfWorker()
	testruntime.Examples()
	os.Exit(m.Run())
}

// TestExports looks at every committed export: what is rewritten computes what the
// original does, against transformers in float64, and the rest says why not.
func TestExports(t *testing.T) {
	testruntime.Require(t)
	expected := map[string]struct {
		rewritten int
		rotations int    // of layers that are unchanged
		methods   int    // that transformers was asked for (methods.py)
		none      string // how a model without rotation tells positions apart
	}{
		"gemma3__ts17-cache":              {rewritten: 2, methods: 3}, // two bases, a window in one layer
		"smollm3__ts17-cache":             {rewritten: 2, methods: 3}, // a layer without rotation
		"falcon_new__ts17-cache":          {rewritten: 2},             // packed by groups of heads; keys are repeated before they are stored
		"falcon_new__ts17":                {rewritten: 2},
		"gpt_oss__ts17-cache":             {rewritten: 2},             // sinks
		"deepseek_v3__ts17":               {rewritten: 2, methods: 3}, // keys put together of channels per head and rotated ones for all
		"deepseek_v3__dynamo18":           {rewritten: 2, methods: 3}, // a cache of latent states
		"llama4__ts17-cache":              {rewritten: 2, methods: 3}, // norms behind the rotation, chunks; a layer without rotation with a temperature
		"ministral3__ts17":                {rewritten: 2},             // a temperature by position behind the rotation
		"modernbert__ts17":                {rewritten: 2},             // an encoder: two bases, a window to both sides in one layer
		"exaone4__dynamo18+onnxscript":    {rewritten: 2},             // com.microsoft's ops by onnxscript, tables as long as a call's largest position
		"hunyuan__ts17-cache":             {rewritten: 2, methods: 3}, // norms with weights behind the rotation
		"qwen2_vl__ts17-cache":            {rewritten: 2, methods: 3}, // three positions for each token, in sections
		"qwen3_vl__ts17-cache":            {rewritten: 2, methods: 3}, // and interleaved
		"bert__ts17":                      {none: "its positions are learned (a table of 64 rows that is added to hidden states)"},
		"gpt2__ts17-cache":                {none: "its positions are learned (a table of 64 rows that is added to hidden states)"},
		"bloom__ts17-cache":               {rewritten: 2}, // slopes by distance, counted in tokens that are not padding
		"mpt__ts17":                       {rewritten: 2}, // slopes by distance, from a table of 64 positions
		"t5__ts17":                        {rewritten: 2}, // buckets of distances to both sides
		"whisper_encoder__ts17":           {none: "its positions are sinusoidal (a table of 32 rows that is added to hidden states)"},
		"phi3_longrope__dynamo18":         {rewritten: 2}, // frequencies by the largest position of a call: two lists
		"llama_dynamic__dynamo18":         {rewritten: 2}, // frequencies computed anew for every length
		"phi3_longrope__dynamo18-nocache": {rewritten: 2}, // the same by the number of a call's tokens
		"llama_dynamic__dynamo18-nocache": {rewritten: 2},
		"phi3_longrope__dynamo18-fp16":    {rewritten: 2},             // two lists, cosines and sines in float16
		"phi3_longrope__genai-fp32":       {rewritten: 2},             // tables chosen by the number of tokens
		"gpt_neox_japanese__ts17-cache":   {rewritten: 2},             // scores with batch and heads in one dimension
		"mixtral_loop__ts17":              {rewritten: 2},             // a loop over experts, written down for the tokens of its example
		"phi3__dynamo20-raw":              {rewritten: 2},             // a scale cast like the query
		"falcon_new__dynamo18-nocache":    {rewritten: 2},             // groups that interleave query, key and value, taken out by GatherND
		"doge__ts17-cache":                {rewritten: 2, methods: 3}, // hidden states that are added to scores, from cached values
		"llama__ts17+qdq8-angles":         {rotations: 2},             // query, key and probabilities in 8 bits, angles in float
	}
	folders, err := filepath.Glob(filepath.Join(exports, "*__*"))
	if err != nil || len(folders) != len(expected) {
		t.Fatalf("%d exports (%v), %d were expected", len(folders), err, len(expected))
	}
	for _, folder := range testsample.Of(t, folders, 6) {
		name := filepath.Base(folder)
		t.Run(name, func(t *testing.T) {
			want := expected[name]
			r := coverage.Look(context.Background(), folder, os.Args[0])
			t.Log(r.Line())
			if r.Error != "" || r.Wrong != "" || r.Broken != "" {
				t.Fatalf("%s%s%s", r.Error, r.Wrong, r.Broken)
			}
			if !strings.HasSuffix(r.None, want.none) || (r.None == "") != (want.none == "") {
				t.Errorf("it says %q, %q was expected", r.None, want.none)
			}
			if want.none != "" {
				return
			}
			if r.Layers != 2 || r.Rewritten != want.rewritten || r.Halves != 0 || r.Rotations != want.rotations {
				t.Errorf("%d of %d layers are rewritten, the scores of %d and the rotation of %d; %d of 2, none and %d were expected",
					r.Rewritten, r.Layers, r.Halves, r.Rotations, want.rewritten, want.rotations)
			}
			if len(r.Methods) != want.methods {
				t.Errorf("compared with the methods %v, %d were expected", r.Methods, want.methods)
			}
			for reason := range r.Unchanged {
				if want.rotations == 0 || !strings.Contains(reason, "its probabilities are changed") {
					t.Errorf("unchanged because %q", reason)
				}
			}
		})
	}
}

func TestPage(t *testing.T) {
	results := map[string]coverage.Result{
		"a__x":   {Architecture: "a", Route: "x", Versions: map[string]string{"t": "2", "o": "1.0"}, Rotary: true, Layers: 2, Rewritten: 2, Methods: map[string]float64{"m:k=1": 1e-5, "n": 2e-5}},
		"a__y":   {Architecture: "a", Route: "y", Rotary: true, Layers: 2, Rewritten: 1, Methods: map[string]float64{"m:k=1": 3e-5}, Unchanged: map[string]int{`/layers.1/MatMul: channel 8 of "q" mixes`: 1}},
		"b__y":   {Architecture: "b", Route: "y", Rotary: true, Layers: 3, Rotations: 2, Unchanged: map[string]int{`node_3: channel 12 of "q1" mixes`: 2, "node_4: other": 1}},
		"a__x+o": {Architecture: "a", Route: "x+o", Rotary: true, Layers: 2, Rewritten: 2, Rounded: "one call: off by 2"},
		"a__z":   {Architecture: "a", Route: "z", Versions: map[string]string{"t": "3"}, Rotary: true, Layers: 1, Rewritten: 1, Alone: true},
		"f__y":   {Architecture: "f", Route: "y", Rotary: true, None: "no rotary attention in the model: nothing"},
		"c__x":   {Architecture: "c", Route: "x", Versions: map[string]string{"t": "2", "o": "1.0"}, None: "no rotary attention in the model: its positions are learned"},
		"d__x":   {Architecture: "d", Route: "x", Rotary: true, Skipped: "no such exporter"},
		"g__x":   {Architecture: "g", Route: "x", Rotary: true, Skipped: "no such exporter"},
		"e__x":   {Architecture: "e", Route: "x", Rotary: true, Layers: 1, Rewritten: 1, Wrong: "one call: off by 1"},
	}
	page, err := coverage.Page("Title", results)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# Title\n\n7 of 11 attention layers are verified equal, all of them in 4 of 7 exports (4 rotary architectures, 4 routes); 1 patched models are wrong. Of 2 others only the rotation is verified; they take scalings.",
		"\nMade with:\n\n- x: o 1.0, t 2\n- z: t 3\n",
		"| | x | y | z |\n|---|:-:|:-:|:-:|\n| a | 2/2 | 1/2 a | 1/1 * |\n| b |  | 0/3 ◔ a b |  |\n| d | · |  |  |\n| e | WRONG |  |  |\n| f |  | 0 (none) |  |\n| g | · |  |  |\n",
		"## After x\n\n| | +o |\n|---|:-:|\n| a | 2/2 ≈ |\n",
		"## Off by rounding\n\n- a__x+o: one call: off by 2\n",
		"| | m:k=1 | n |\n|---|:-:|:-:|\n| a | 3.0e-05 (2) | 2.0e-05 (1) |\n",
		"- **a** (3 layers of 2 exports) /layers.1/MatMul: channel 8",
		"- **b** (1 layers of 1 exports) node_4: other (b__y)",
		"| c | none |",
		"- c (x): its positions are learned",
		"- d, g (x): no such exporter",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}
