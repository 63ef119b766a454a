package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/audit"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

func TestMain(m *testing.M) {
	rewrite.ServeIfWorker()
	testruntime.Examples()
	os.Exit(m.Run())
}

const testdata = "../testdata"

func options(t *testing.T) audit.Options {
	testruntime.Require(t)
	return audit.Options{} // none of these exports is hostile: they are evaluated in this process
}

func run(t *testing.T, path string) *audit.Report {
	t.Helper()
	r, err := audit.Run(context.Background(), path, options(t))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// verdicts writes the lines with a verdict as "what layers: claimed, measured".
func verdicts(r *audit.Report, v audit.Verdict) []string {
	list := []string{}
	for _, l := range r.Lines {
		if l.Verdict == v {
			list = append(list, l.What+" "+l.Where+": "+l.Expected+", "+l.Found)
		}
	}
	return list
}

// What exporters wrote as their configuration says agrees, in each export of testdata
// that has one and rotates, and its base and scaling are measured.
func TestExportsAgree(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(testdata + "/models/*/config.json")
	if err != nil {
		t.Fatal(err)
	}
	unturned := regexp.MustCompile(`/(bloom|mpt|falcon_rw|t5(_encoder|_decoder)?)__`) // ALiBi and T5's buckets
	fixed := regexp.MustCompile(`__transformers-static/`)                             // whose cache is not understood
	paths = slices.DeleteFunc(paths, func(p string) bool { return unturned.MatchString(p) || fixed.MatchString(p) })
	if len(paths) < 25 {
		t.Errorf("only %d exports have a configuration", len(paths))
	}
	for _, path := range testsample.Of(t, append(paths, testdata+"/claims/qwen2__genai-window/config.json"), 8) {
		folder := filepath.Dir(path)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			model := filepath.Join(folder, "model.onnx")
			if _, err := os.Stat(model); err != nil {
				model = filepath.Join(folder, "decode.onnx") // of an export with several graphs
			}
			r := run(t, model)
			if got := verdicts(r, audit.Differs); len(got) > 0 {
				t.Errorf("differs: %q", got)
			}
			if r.Unmeasured > 0 {
				t.Errorf("%d attention layers were not measured", r.Unmeasured)
			}
			agrees := strings.Join(verdicts(r, audit.Agrees), "\n")
			for _, what := range []string{"rope_theta 0", "rope_scaling 0"} {
				if !strings.Contains(agrees, what) && !strings.Contains(folder, "gptj") { // whose configuration has no base
					t.Errorf("%s is not among what agrees:\n%s", what, agrees)
				}
			}
			if !strings.Contains(agrees, "num_attention_heads 0") {
				t.Errorf("no heads are compared:\n%s", agrees)
			}
		})
	}
}

// TestDistancesAgree: slopes and buckets that configurations name are in the graphs.
func TestDistancesAgree(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"falcon_rw__dynamo18": "alibi 0-1: slopes by distance (ALiBi)", "mpt__dynamo18": "attn_config.alibi 0-1: slopes by distance (ALiBi)",
		"t5__dynamo18": "relative_attention_num_buckets 0,2: buckets of distances (T5)",
	} {
		r := run(t, filepath.Join(testdata, "models", name, "model.onnx"))
		if agrees := strings.Join(verdicts(r, audit.Agrees), "\n"); !strings.Contains(agrees, want) {
			t.Errorf("%s: %q is not among what agrees:\n%s", name, want, agrees)
		}
		if got := verdicts(r, audit.Differs); len(got) > 0 {
			t.Errorf("%s differs: %q", name, got)
		}
	}
}

// What exporters were seen to lose, as they lose it.
func TestLost(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"../smollm2/optimum":    {"rope_theta 0-29: 100000, 10000"}, // the real graph, without its weights
		"llama__genai-linear":   {"rope_scaling 0-1: linear:factor=4, none"},
		"llama__genai-yarn":     {"rope_scaling 0-1: yarn:factor=4,original_max_position_embeddings=16, none", "attention_factor 0-1: 1.13863, 1"},
		"mistral__genai-window": {"sliding_window 0-1: 8, none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := verdicts(run(t, filepath.Join(testdata, "claims", name, "model.onnx")), audit.Differs); !slices.Equal(got, want) {
				t.Errorf("differs: %q, want %q", got, want)
			}
		})
	}
}

// beside copies a model into a folder onnx/ and writes its configuration, with other
// keys, into the folder above. A nil takes a key out.
func beside(t *testing.T, model string, change map[string]any, more ...string) string {
	t.Helper()
	dir := t.TempDir()
	data, err := os.ReadFile(filepath.Join(model, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	maps.Copy(config, change)
	maps.DeleteFunc(config, func(_ string, v any) bool { return v == nil })
	if data, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	graph, err := os.ReadFile(filepath.Join(model, "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"config.json": data, "onnx/model.onnx": graph} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, data, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; i < len(more); i += 2 {
		if err := os.WriteFile(filepath.Join(dir, "onnx", more[i]), []byte(more[i+1]), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "onnx", "model.onnx")
}

// Each claim that is wrong is seen, and nothing else differs.
func TestClaims(t *testing.T) {
	t.Parallel()
	type keys = map[string]any
	parameters := func(k keys) keys { return keys{"rope_parameters": k} }
	for name, c := range testsample.OfMap(t, map[string]struct {
		model  string
		change keys
		more   []string // files beside the model
		want   []string // what differs
	}{
		"another base": {"llama__optimum", keys{"rope_theta": 100000}, nil, []string{"rope_theta 0-1: 100000, 10000"}},
		// As SmolLM2 has it: the exporter read the older key.
		"two bases":                    {"llama__optimum", keys{"rope_theta": 10000, "rope_parameters": keys{"rope_theta": 100000.0, "rope_type": "default"}}, nil, []string{"rope_theta 0-1: 100000, 10000"}},
		"a base of one type":           {"gemma3_text__dynamo18", parameters(keys{"full_attention": keys{"rope_theta": 10000, "rope_type": "default"}, "sliding_attention": keys{"rope_theta": 20000, "rope_type": "default"}}), nil, []string{"rope_theta 0: 20000, 1000"}},
		"a scaling":                    {"llama__dynamo23", keys{"rope_scaling": keys{"type": "linear", "factor": 2}, "rope_theta": 10000, "rope_parameters": nil}, nil, []string{"rope_scaling 0-1: linear:factor=2, none"}},
		"a dynamic one":                {"llama__dynamo23", parameters(keys{"rope_type": "dynamic", "factor": 2, "rope_theta": 10000}), nil, []string{"rope_scaling 0-1: dynamic:factor=2,original_max_position_embeddings=64, none"}},
		"llama3":                       {"llama__dynamo18", parameters(keys{"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 16, "rope_theta": 10000}), nil, []string{"rope_scaling 0-1: llama3:factor=8,original_max_position_embeddings=16,low_freq_factor=1,high_freq_factor=4, none"}},
		"a rotated share":              {"gpt_neox__dynamo18", parameters(keys{"rope_type": "default", "rope_theta": 10000, "partial_rotary_factor": 0.25}), nil, []string{"rotary_dim 0-1: 4, 8"}},
		"a layout":                     {"cohere__dynamo18", keys{"rope_interleave": false}, nil, []string{"rotary layout 0-1: half, interleaved"}},
		"a window":                     {"llama__dynamo18", keys{"model_type": "mistral", "sliding_window": 16}, nil, []string{"sliding_window 0-1: 16, none"}},
		"a window that is not read":    {"llama__dynamo18", keys{"sliding_window": 16}, nil, []string{}},
		"a window that hides nothing":  {"llama__dynamo18", keys{"model_type": "mistral", "sliding_window": 64}, nil, []string{}},
		"a window switched off":        {"llama__dynamo18", keys{"model_type": "qwen2", "sliding_window": 16, "use_sliding_window": false}, nil, []string{}},
		"a window in upper layers":     {"llama__dynamo18", keys{"model_type": "qwen2", "sliding_window": 16, "use_sliding_window": true, "max_window_layers": 1}, nil, []string{"sliding_window 1: 16, none"}},
		"a window in some layers":      {"gemma3_text__dynamo18", keys{"layer_types": nil, "_sliding_window_pattern": nil, "rope_parameters": nil}, nil, []string{}},
		"a narrower window":            {"gemma3_text__dynamo18", keys{"sliding_window": 7}, nil, []string{"sliding_window 0: 7, 8"}},
		"other types of layers":        {"gemma3_text__dynamo18", keys{"layer_types": []string{"full_attention", "sliding_attention"}}, nil, []string{"rope_theta 0: 10000, 1000", "rope_theta 1: 1000, 10000", "sliding_window 0: none, 8", "sliding_window 1: 8, none"}},
		"a window that is not claimed": {"gemma3_text__dynamo18", keys{"model_type": "llama"}, nil, []string{"sliding_window 0: none, 8"}},
		"a window to both sides":       {"../field/ts_neomme", nil, nil, []string{}},
		"one that is wider":            {"../field/ts_neomme", keys{"sliding_window": 255}, nil, []string{"sliding_window 0: ±255, ±256"}},
		"one that is narrower":         {"../field/ts_neomme", keys{"sliding_window": 257}, nil, []string{"sliding_window 0: ±257, ±256"}},
		"one of code of its own":       {"../field/ts_neomme", keys{"model_type": "own", "sliding_window": 257}, nil, []string{}},
		"another of code of its own":   {"../field/ts_neomme", keys{"model_type": "own", "sliding_window": 258}, nil, []string{"sliding_window 0: ±258 or ±257, ±256"}},
		"half of a width":              {"../field/ts_neomme", keys{"sliding_window": nil, "per_layer_config": nil, "local_attention": 512, "model_type": "modernbert"}, nil, []string{}},
		"half of another width":        {"../field/ts_neomme", keys{"sliding_window": nil, "per_layer_config": nil, "local_attention": 256, "model_type": "modernbert"}, nil, []string{"sliding_window 0: ±128, ±256"}},
		"a softcap":                    {"gemma3_text__dynamo18", keys{"attn_logit_softcapping": 50.0}, nil, []string{"attn_logit_softcapping 0-1: 50, none"}},
		"sinks":                        {"llama__dynamo18", keys{"model_type": "gpt_oss"}, nil, []string{"sinks 0-1: yes, no"}},
		"a scale":                      {"gemma3_text__dynamo18", keys{"query_pre_attn_scalar": 64}, nil, []string{"score scale 0-1: 0.125, 0.25"}},
		"heads":                        {"llama__dynamo18", keys{"num_key_value_heads": 4}, nil, []string{"num_key_value_heads 0-1: 4, 2"}},
		"positions beyond the tables":  {"llama__genai-fp32", keys{"max_position_embeddings": 4096}, nil, []string{"max_position_embeddings : 4096, tables of 64"}},
		"an older scaling":             {"llama__optimum", keys{"rope_scaling": nil, "rotary_scaling_factor": 2, "max_trained_positions": 16}, nil, []string{"rope_scaling 0-1: dynamic:factor=2,original_max_position_embeddings=16, none"}},
		"dynamic NTK switched on":      {"llama__optimum", keys{"use_dynamic_ntk": true}, nil, []string{"rope_scaling 0-1: dynamic NTK that grows by powers of two, none"}},
		"log-n and xPos": {"llama__optimum", keys{"use_logn_attn": true, "rotary_emb_scale_base": 512}, nil,
			[]string{"use_logn_attn 0-1: log-n factor on queries, none", "rotary_emb_scale_base 0-1: decay by distance (xPos), none"}},
		"ALiBi and buckets": {"llama__optimum", keys{"alibi": true, "relative_attention_num_buckets": 32}, nil,
			[]string{"alibi 0-1: slopes by distance (ALiBi), none", "relative_attention_num_buckets 0-1: buckets of distances (T5), none"}},
		// Types of layers say which of them have attention.
		"a base between convolutions": {"llama__dynamo18", keys{"num_hidden_layers": 4, "layer_types": []string{"conv", "full_attention", "conv", "full_attention"},
			"rope_parameters": keys{"rope_type": "default", "rope_theta": 500}}, nil, []string{"rope_theta 0-1: 500, 10000"}},
		// What all layers share needs no numbers.
		"a base that more layers share": {"gemma2__dynamo18-eager", keys{"num_hidden_layers": 3, "layer_types": []string{"sliding_attention", "full_attention", "full_attention"},
			"rope_parameters": keys{"rope_type": "default", "rope_theta": 500}}, nil, []string{"rope_theta 0-1: 500, 10000"}},
		"genai_config.json": {"llama__genai-fp32", nil, []string{"genai_config.json", `{"model": {"context_length": 8192, "decoder": {"filename": "model.onnx", "head_size": 32, "num_attention_heads": 4}}}`},
			[]string{"head_dim 0-1: 32, 16", "max_position_embeddings : 8192, tables of 64", "context_length : 8192, "}},
		"a max_length beyond the context_length": {"llama__genai-fp32", nil, []string{"genai_config.json", `{"model": {"context_length": 32, "decoder": {"filename": "model.onnx"}}, "search": {"max_length": 33}}`},
			[]string{"max_length : 33, "}},
		"a max_length alone": {"llama__genai-fp32", nil, []string{"genai_config.json", `{"model": {"decoder": {"filename": "model.onnx"}}, "search": {"max_length": 65}}`},
			[]string{"max_position_embeddings : 65, tables of 64", "max_length : 65, "}},
		"a max_length within":                       {"llama__genai-fp32", nil, []string{"genai_config.json", `{"model": {"context_length": 64, "decoder": {"filename": "model.onnx"}}, "search": {"max_length": 64}}`}, []string{}},
		"genai_config.json of another model":        {"llama__genai-fp32", nil, []string{"genai_config.json", `{"model": {"context_length": 8192, "decoder": {"filename": "decoder.onnx", "head_size": 32}}}`}, []string{}},
		"genai_config.json above":                   {"llama__genai-fp32", nil, []string{"../genai_config.json", `{"model": {"decoder": {"filename": "onnx/model.onnx", "head_size": 32}}}`}, []string{"head_dim 0-1: 32, 16"}},
		"genai_config.json above, of another model": {"llama__genai-fp32", nil, []string{"../genai_config.json", `{"model": {"decoder": {"filename": "model.onnx", "head_size": 32}}}`}, []string{}},
		"genai_config.json above, of no file":       {"llama__genai-fp32", nil, []string{"../genai_config.json", `{"model": {"decoder": {"head_size": 32}}}`}, []string{}},
		"inside text_config":                        {"llama__dynamo18", keys{"rope_parameters": nil, "text_config": keys{"rope_theta": 5000}}, nil, []string{"rope_theta 0-1: 5000, 10000"}},
	}, 8) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := beside(t, filepath.Join(testdata, "models", c.model), c.change, c.more...)
			if got := verdicts(run(t, path), audit.Differs); !slices.Equal(got, c.want) {
				t.Errorf("differs: %q, want %q", got, c.want)
			}
		})
	}
}

// fieldModel copies a model of testdata/field into a folder with other files, and returns its path.
func fieldModel(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	graph, err := os.ReadFile(filepath.Join(testdata, "field", name, "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	files["model.onnx"] = string(graph)
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "model.onnx")
}

// TestFirstKeysLater: a causal mask that counts from the first key in every call is no decoder's of transformers.
func TestFirstKeysLater(t *testing.T) {
	t.Parallel()
	r := run(t, fieldModel(t, "causal_end_aligned", map[string]string{"config.json": `{"max_position_embeddings": 256}`}))
	if got := verdicts(r, audit.Differs); !slices.Equal(got, []string{"keys of later calls 0-1: none, the first alone"}) {
		t.Errorf("differs: %q", got)
	}
}

// TestGatheredTables: tables of cosines that no fused op reads end, too, and lengths of genai_config.json are compared with them.
func TestGatheredTables(t *testing.T) {
	t.Parallel()
	r := run(t, fieldModel(t, "qwen35_builder", map[string]string{
		"config.json":       `{"max_position_embeddings": 256}`,
		"genai_config.json": `{"model": {"context_length": 257, "decoder": {"filename": "model.onnx"}}, "search": {"max_length": 258}}`,
	}))
	want := []string{"max_position_embeddings : 257, tables of 256", "context_length : 257, ", "max_length : 258, "}
	if got := verdicts(r, audit.Differs); !slices.Equal(got, want) {
		t.Errorf("differs: %q, want %q", got, want)
	}
	if got := verdicts(r, audit.Agrees); !slices.Contains(got, "max_position_embeddings : 256, tables of 256") {
		t.Errorf("agrees: %q", got)
	}
}

// What is in no configuration is not claimed, and what cannot be compared says why.
func TestNotCompared(t *testing.T) {
	t.Parallel()
	llama := filepath.Join(testdata, "models", "llama__optimum")
	r := run(t, beside(t, llama, map[string]any{"rope_theta": nil, "rope_scaling": nil}))
	if got := verdicts(r, audit.NotClaimed); !slices.Contains(got, "rope_theta 0-1: , 10000") || !slices.Contains(got, "rope_scaling 0-1: , none") {
		t.Errorf("not claimed: %q", got)
	}
	r = run(t, beside(t, llama, map[string]any{"rope_scaling": map[string]any{"type": "spiral", "factor": 2}}))
	if got := verdicts(r, audit.NotMeasured); len(got) == 0 || got[0] != "rope_scaling 0-1: unread, none" {
		t.Errorf("not measured: %q", got)
	}
	if got := r.Outcome(); got != audit.SomeUnmeasured {
		t.Errorf("a scaling that could not be compared: %s", got)
	}
	// Which of the two layers it is that a graph of fewer layers has is not known.
	r = run(t, beside(t, filepath.Join(testdata, "models", "gemma3_text__dynamo18"), map[string]any{
		"num_hidden_layers": 3, "layer_types": []string{"sliding_attention", "full_attention", "full_attention"}}))
	if got := verdicts(r, audit.Differs); len(got) > 0 {
		t.Errorf("differs, with layers that are not known: %q", got)
	}
	if got := verdicts(r, audit.NotMeasured); !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "sliding_window") }) {
		t.Errorf("not measured: %q", got)
	}
}

func TestNothingClaimed(t *testing.T) {
	t.Parallel()
	_, err := audit.Run(context.Background(), filepath.Join(testdata, "models", "llama__ts17-static-cache", "model.onnx"), options(t))
	if !errors.As(err, new(*audit.NoConfigError)) {
		t.Errorf("a model without a configuration: %v", err)
	}
}
