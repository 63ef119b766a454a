package audit_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/audit"
	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// repair repairs a model into a file of its folder.
func repair(t *testing.T, path string, target rewrite.Target) (string, *audit.Report, error) {
	t.Helper()
	opts := options(t)
	opts.Rewrite.Target = target
	out := filepath.Join(filepath.Dir(path), "repaired.onnx")
	r, err := audit.Repair(context.Background(), path, opts, func(m *onnx.Model) error { return m.Save(out, onnx.SaveOptions{Force: true}) })
	return out, r, err
}

// off returns how far a model is from what transformers computes, in one call and
// token by token.
func off(t *testing.T, path, goldens string) (worst float64) {
	t.Helper()
	f, err := npz.Open(goldens)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var s decoder.Sequence
	for name, into := range map[string]*[]int64{"ids": &s.IDs, "mask": &s.Mask, "pos": &s.Positions} {
		data, shape, err := f.Int64(name)
		if err != nil {
			t.Fatal(err)
		}
		*into, s.Batch, s.Length = data, int64(shape[0]), int64(shape[1])
	}
	want, _, err := f.Float32("logits")
	if err != nil {
		t.Fatal(err)
	}
	eng, err := engine.NewWorker(engine.Config{Threads: 1}, os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	d, err := decoder.Open(context.Background(), eng, path, decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, calls := range [][]int64{{s.Length}, slices.Concat([]int64{s.Length - 16}, slices.Repeat([]int64{1}, 16))} {
		logits, err := d.Chunks(context.Background(), s, calls...)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range logits {
			worst = math.Max(worst, math.Abs(x-float64(want[i])))
		}
	}
	return worst
}

// What an exporter lost is put back: the repaired model agrees with its configuration
// and computes what transformers does for it, which the export did not.
func TestRepairIsWhatTransformersComputes(t *testing.T) {
	t.Parallel()
	for _, c := range testsample.Of(t, []struct {
		name   string
		target rewrite.Target
	}{
		{"llama__genai-linear", rewrite.Ops},
		{"llama__genai-linear", rewrite.PlainONNX},
		{"llama__genai-yarn", rewrite.Ops},
		{"llama__genai-yarn", rewrite.PlainONNX},
		{"mistral__genai-window", rewrite.Ops},
	}, 2) {
		t.Run(c.name+"/"+string(c.target), func(t *testing.T) {
			t.Parallel()
			claims := filepath.Join(testdata, "claims", c.name)
			path, golden := beside(t, claims, nil), filepath.Join(claims, "golden.npz")
			if before := off(t, path, golden); before < 0.1 {
				t.Errorf("the export is off by %.2g alone: nothing was lost", before)
			}
			out, r, err := repair(t, path, c.target)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Repaired) == 0 {
				t.Error("no method is named")
			}
			if after := off(t, out, golden); !(after <= 1e-4) {
				t.Errorf("the repaired model is off by %.2g, at most 1e-4 was expected", after)
			}
			if got := verdicts(run(t, out), audit.Differs); len(got) > 0 {
				t.Errorf("the repaired model differs: %q", got)
			}
		})
	}
	// Where nothing was lost transformers agrees with the export.
	claims := filepath.Join(testdata, "claims", "qwen2__genai-window")
	if got := off(t, filepath.Join(claims, "model.onnx"), filepath.Join(claims, "golden.npz")); !(got <= 1e-4) {
		t.Errorf("an export that agrees is off by %.2g", got)
	}
}

// Only layers that differ are changed, each to what is claimed of it.
func TestRepairs(t *testing.T) {
	t.Parallel()
	type keys = map[string]any
	for name, c := range testsample.OfMap(t, map[string]struct {
		model  string
		change keys
		want   []string
	}{
		"nothing":             {"llama__optimum", nil, []string{}},
		"a base":              {"llama__optimum", keys{"rope_theta": 100000}, []string{"scaling theta:rope_theta=100000 on layers 0-1"}},
		"a base of one layer": {"gemma3_text__dynamo18", keys{"rope_parameters": keys{"full_attention": keys{"rope_theta": 10000, "rope_type": "default"}, "sliding_attention": keys{"rope_theta": 20000, "rope_type": "default"}}}, []string{"scaling theta:rope_theta=20000 on layer 0"}},
		"a base and a window": {"llama__dynamo18", keys{"model_type": "qwen2", "sliding_window": 16, "use_sliding_window": true, "max_window_layers": 1, "rope_parameters": keys{"rope_theta": 500, "rope_type": "default"}}, []string{"scaling theta:rope_theta=500 on layers 0-1", "mask sliding-window:window=16 on layer 1"}},
		// transformers takes the trained length of dynamic from max_position_embeddings, and passes over the key in the dictionary.
		"a dynamic one":         {"llama__dynamo18", keys{"rope_parameters": keys{"rope_type": "dynamic", "factor": 2, "original_max_position_embeddings": 16, "rope_theta": 10000}}, []string{"scaling dynamic:factor=2,original_max_position_embeddings=64,length=run,rope_theta=10000 on layers 0-1", "cache raw"}},
		"tables that are short": {"llama__genai-fp32", keys{"max_position_embeddings": 4096}, []string{}},
	}, 2) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := beside(t, filepath.Join(testdata, "models", c.model), c.change)
			out, r, err := repair(t, path, "")
			if err != nil || !slices.Equal(r.Repaired, c.want) {
				t.Errorf("%v, %q; want %q", err, r.Repaired, c.want)
			}
			if _, err := os.Stat(out); (err == nil) != (r.Count(audit.Differs) > 0) {
				t.Errorf("something differs: %t, and for the repaired file: %v", r.Count(audit.Differs) > 0, err)
			} else if err == nil {
				if got := verdicts(run(t, out), audit.Differs); len(got) > 0 {
					t.Errorf("the repaired model differs: %q", got)
				}
			}
		})
	}
}

// What no method changes is refused with the reason, and nothing is written.
func TestRepairRefused(t *testing.T) {
	t.Parallel()
	type keys = map[string]any
	for name, c := range map[string]struct {
		model  string
		target rewrite.Target
		change keys
		want   string
	}{
		"heads":            {"llama__dynamo18", "", keys{"num_key_value_heads": 4}, "num_key_value_heads is 2 but claimed to be 4: no method can change it"},
		"a wider window":   {"gemma3_text__dynamo18", "", keys{"sliding_window": 9}, "a mask cannot show keys"},
		"no window at all": {"gemma3_text__dynamo18", "", keys{"sliding_window": nil, "layer_types": []string{"full_attention", "full_attention"}, "rope_parameters": nil}, "a mask cannot show keys"},
		"a softcap too":    {"llama__optimum", "", keys{"attn_logit_softcapping": 30, "rope_theta": 100000}, "attn_logit_softcapping is none but claimed to be 30"},
		"short tables":     {"llama__genai-fp32", rewrite.PlainONNX, keys{"max_position_embeddings": 4096}, "its tables are too short; leave --target onnx out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _, err := repair(t, beside(t, filepath.Join(testdata, "models", c.model), c.change), c.target)
			if !errors.As(err, new(*audit.RefusedError)) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want a refusal that says %q", err, c.want)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("a model was written")
			}
		})
	}
	// A model that was already rewritten is not measured again.
	path := beside(t, filepath.Join(testdata, "models", "llama__optimum"), keys{"rope_theta": 100000})
	out, _, err := repair(t, path, "")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(path), "..", "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "100000", "200000", 1))
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "..", "config.json"), text, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, _, err = repair(t, out, ""); !errors.As(err, new(*audit.RefusedError)) || !strings.Contains(err.Error(), "already rewritten") {
		t.Errorf("a second repair: %v", err)
	}
}
