package rope_test

import (
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

func TestParseRopeParameters(t *testing.T) {
	for _, c := range []struct{ json, want string }{
		{`{"rope_type": "default"}`, "none"},
		{`{"rope_type": "default", "rope_theta": null}`, "none"},
		{`{"rope_type": "default", "partial_rotary_factor": 0.5}`, "none:partial_rotary_factor=0.5"},
		{`{"rope_type": "default", "rope_theta": 500000.0}`, "theta:rope_theta=500000"},
		{`{"rope_theta": 500000}`, "theta:rope_theta=500000"},
		{`{"type": "linear", "factor": 2}`, "linear:factor=2"},
		{`{"type": "su", "short_factor": [1, 1], "long_factor": [2, 3]}`, "longrope:short_factor=[1;1],long_factor=[2;3]"},
		{`{"type": "linear", "rope_type": "linear", "factor": 2.0}`, "linear:factor=2"},
		{`{"type": null, "rope_type": "linear", "factor": 2.0}`, "linear:factor=2"},
		{
			`{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192.0, "attention_factor": null, "truncate": false, "rope_theta": 1e6, "partial_rotary_factor": 1.0}`,
			"yarn:factor=4,original_max_position_embeddings=8192,truncate=false,rope_theta=1000000,partial_rotary_factor=1",
		},
		{
			`{"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096, "type": "yarn"}`,
			"yarn:factor=40,original_max_position_embeddings=4096,beta_fast=32,beta_slow=1,mscale=1,mscale_all_dim=1",
		},
	} {
		s, err := rope.ParseRopeParameters([]byte(c.json))
		if err != nil {
			t.Errorf("%s: %v", c.json, err)
		} else if s.String() != c.want {
			t.Errorf("%s: %v, want %s", c.json, s, c.want)
		}
	}
}

// The dictionary is found in a whole config.json.
func TestParseConfig(t *testing.T) {
	for _, c := range []struct{ json, want string }{
		{`{"model_type": "llama", "rope_theta": 500000.0, "rope_scaling": null}`, "theta:rope_theta=500000"},
		{`{"architectures": ["X"], "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}, "rope_theta": 10000}`, "theta:rope_theta=1000000"},
		{`{"rope_scaling": {"type": "linear", "factor": 2.0}, "rope_theta": 10000.0, "max_position_embeddings": 4096}`, "linear:factor=2,rope_theta=10000"},
		{
			`{"rope_scaling": {"rope_type": "yarn", "factor": 4.0}, "rope_theta": 1000000.0, "max_position_embeddings": 32768}`,
			"yarn:factor=4,original_max_position_embeddings=32768,rope_theta=1000000",
		},
		{
			`{"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192}, "max_position_embeddings": 32768}`,
			"yarn:factor=4,original_max_position_embeddings=8192",
		},
		{
			`{"original_max_position_embeddings": 4096, "max_position_embeddings": 131072, "rope_theta": 10000.0, "rope_scaling": {"type": "su", "short_factor": [1, 1], "long_factor": [2, 3]}}`,
			"longrope:short_factor=[1;1],long_factor=[2;3],factor=32,original_max_position_embeddings=4096,rope_theta=10000",
		},
		{`{"model_type": "x", "vision_config": {"rope_theta": 7}, "text_config": {"rope_theta": 500000.0, "rope_scaling": {"rope_type": "linear", "factor": 8}}}`, "linear:factor=8,rope_theta=500000"},
	} {
		s, err := rope.ParseRopeParameters([]byte(c.json))
		if err != nil {
			t.Errorf("%s: %v", c.json, err)
		} else if s.String() != c.want {
			t.Errorf("%s: %v, want %s", c.json, s, c.want)
		}
	}
	got, err := rope.ParseLayerRopeParameters([]byte(`{"model_type": "x", "text_config": {"layer_types": [], "rope_parameters": {
		"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
		"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0}}}}`))
	if err != nil || len(got) != 2 || got["full_attention"].String() != "linear:factor=8,rope_theta=1000000" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestParseLayerRopeParameters(t *testing.T) {
	got, err := rope.ParseLayerRopeParameters([]byte(`{
		"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
		"full_attention": {"type": "linear", "factor": 8.0, "rope_theta": 1000000.0},
		"other": null}`))
	if err != nil || len(got) != 2 || got["sliding_attention"].String() != "theta:rope_theta=10000" || got["full_attention"].String() != "linear:factor=8,rope_theta=1000000" {
		t.Errorf("%v, %v", got, err)
	}
	one, err := rope.ParseLayerRopeParameters([]byte(`{"type": "linear", "factor": 8}`))
	if err != nil || len(one) != 1 || one[""].String() != "linear:factor=8" {
		t.Errorf("%v, %v", one, err)
	}
}

func TestParseRopeParametersErrors(t *testing.T) {
	for _, c := range []struct{ json, want string }{
		{``, "not JSON"},
		{`[]`, "not a JSON object"},
		{`null`, "not a JSON object"},
		{`{}`, "the dictionary is empty"},
		{`{"rope_type": null, "factor": null}`, "the dictionary is empty"},
		{`{"full_attention": {"rope_type": "yarn", "factor": 4}, "sliding_attention": {}}`, `"sliding_attention": the dictionary is empty`},
		{`{"rope_type": "yarn"`, "not JSON"},
		{`{"factor": }`, `value of "factor" is not JSON`},
		{`{"factor": NaN}`, `value of "factor" is not JSON`},
		{`{"rope_type": "default"} x`, "text after the object"},
		{`{"rope_type": "yarn", "factor": 4, "factor": 8}`, `"factor" is given twice`},
		{`{"rope_type": 4}`, "rope_type=4 is not a text"},
		{`{"rope_type": "yarn", "type": "linear", "factor": 4}`, `rope_type="yarn" and type="linear" disagree`},
		{`{"rope_type": "yarm"}`, `unknown rope_type "yarm" (did you mean "yarn"?); known: default, linear, dynamic, yarn, longrope`},
		{`{"rope_type": "theta", "rope_theta": 10000}`, `unknown rope_type "theta"`},
		{`{"rope_type": "default", "factor": 4}`, `scaling none: unknown key "factor"`},
		{`{"rope_type": "linear", "factor": 4, "finetuned": true}`, `unknown key "finetuned"; keys: factor`},
		{`{"rope_type": "linear", "factor": "4"}`, `factor="4" is not a number`},
		{`{"rope_type": "linear", "factor": 0.5}`, "factor=0.5 must be ≥ 1"},
		{`{"rope_type": "linear", "factor": true}`, "factor=true is not a number"},
		{`{"rope_type": "linear", "factor": [4]}`, "is not a number"},
		{`{"rope_type": "linear", "factor": 1e999}`, "beyond the range"},
		{`{"rope_type": "yarn", "factor": 4, "truncate": null}`, "truncate=null is neither true nor false"},
		{`{"rope_type": "yarn", "factor": 4, "truncate": 0}`, "truncate=0 is neither true nor false"},
		{`{"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 8192.5}`, "must be an integer"},
		{`{"factor": 4}`, `key "factor" needs a method; name one with rope_type (default, linear, dynamic, yarn, longrope`},
		{`{"model_type": "gpt2"}`, "the configuration has neither rope_parameters nor rope_scaling nor rope_theta; give the method with --scaling"},
		{`{"model_type": "x", "text_config": {"model_type": "y"}}`, "neither rope_parameters nor rope_scaling"},
		{`{"model_type": "x", "text_config": 7}`, "text_config: not a JSON object"},
		{`{"model_type": "x", "rope_scaling": "yarn"}`, "rope_scaling: not a JSON object"},
		{`{"model_type": "gemma3", "rope_theta": 1e6, "rope_local_base_freq": 10000.0, "rope_scaling": null}`, "give each kind of layer its own with --scaling SPEC@LAYERS"},
		{`{"rope_scaling": {"factor": 2.0}}`, `key "factor" needs a method`},
		{`{"full_attention": {"rope_type": "yarn"}}`, `parameters per layer type`},
		{`{"full_attention": {"rope_type": "yarm"}}`, `"full_attention": unknown rope_type "yarm"`},
		{`{"full_attention": {"rope_type": "yarn", "factor": 4, "factor": 4}}`, `"full_attention": key "factor" is given twice`},
		{`{"full_attention": {"rope_type": "yarn"}, "factor": 4}`, `key "factor" is beside the parameters per layer type`},
		{`{"full_attention": {"rope_type": "yarn", "x": {}}}`, `"full_attention": key "x" holds an object`},
		{`{"rope_type": "longrope", "long_factor": [1, "2"]}`, `long_factor=[1, "2"]`},
		{`{"rope_type": "longrope", "long_factor": []}`, `long_factor=[] is not a list of numbers`},
		{`{"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 0}`, `high_freq_factor=0 must be`},
	} {
		s, err := rope.ParseRopeParameters([]byte(c.json))
		if err == nil {
			t.Errorf("%s: read as %v", c.json, s)
		} else if !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "rope_parameters: ") {
			t.Errorf("%s: error %q lacks %q", c.json, err, c.want)
		}
	}
}
