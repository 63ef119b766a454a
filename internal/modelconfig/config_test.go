package modelconfig_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/links"
	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
)

func read(t *testing.T, text string) modelconfig.Config {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := modelconfig.Read(filepath.Join(dir, "model.onnx"), false)
	if c.Unread != nil {
		t.Fatal(c.Unread)
	}
	return c
}

// Which layers have a window, as the configurations of several families say it.
func TestWindow(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want string // of the layers 0 to 3; ? where nothing is said, * where not which layers
	}{
		"mistral":             {`{"sliding_window": 8}`, "8* 8* 8* 8* "},
		"mistral without":     {`{"sliding_window": null}`, "0 0 0 0 "},
		"llama":               {`{}`, "? ? ? ? "},
		"qwen2":               {`{"sliding_window": 8, "use_sliding_window": true, "max_window_layers": 2}`, "0 0 8 8 "},
		"qwen2 switched off":  {`{"sliding_window": 8, "use_sliding_window": false, "max_window_layers": 2}`, "0 0 0 0 "},
		"qwen2 with types":    {`{"sliding_window": 8, "use_sliding_window": true, "max_window_layers": 9, "layer_types": ["full_attention", "sliding_attention", "full_attention", "sliding_attention"]}`, "0 8 0 8 "},
		"gemma 3":             {`{"sliding_window": 8, "sliding_window_pattern": 3}`, "8 8 0 8 "},
		"a pattern of types":  {`{"sliding_window": 8, "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"]}`, "8 8 8 0 "},
		"chunks":              {`{"layer_types": ["chunked_attention", "full_attention", "chunked_attention", "full_attention"]}`, "unread 0 unread 0 "},
		"a language model in": {`{"sliding_window": 99, "text_config": {"sliding_window": 8}}`, "8* 8* 8* 8* "},
	} {
		config, got := read(t, c.text), ""
		for layer := range 4 {
			switch w := config.Window(layer); {
			case w.Unread != "":
				got += "unread "
			case w.Key == "":
				got += "? "
			case w.Some:
				got += fmt.Sprint(w.Value, "* ")
			default:
				got += fmt.Sprint(w.Value, " ")
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestSpans: the windows that layers have by the code of transformers (testdata/configs/windows.json) are those that their
// configurations are read as, and no others are.
func TestSpans(t *testing.T) {
	data, err := os.ReadFile("../../testdata/configs/windows.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Kind   string
		Config json.RawMessage
		Layer  int
		Causal bool
		Reach  int64
	}
	if err := json.Unmarshal(data, &rows); err != nil || len(rows) < 15 {
		t.Fatal(len(rows), err)
	}
	for _, r := range rows {
		if got := read(t, string(r.Config)).Window(r.Layer).Spans(r.Causal); !slices.Equal(got, []int64{r.Reach}) {
			t.Errorf("%s: a layer with causal %v has a window of %d by the file; it is %d", r.Kind, r.Causal, got, r.Reach)
		}
		if full := 1 - r.Layer; strings.Contains(string(r.Config), "full_attention") {
			if w := read(t, string(r.Config)).Window(full); w.Value != 0 || w.Key == "" {
				t.Errorf("%s: layer %d has %+v", r.Kind, full, w)
			}
		}
	}
	own := read(t, `{"model_type": "own", "sliding_window": 8, "layer_types": ["sliding_attention"]}`).Window(0)
	if causal, both := own.Spans(true), own.Spans(false); !slices.Equal(causal, []int64{8}) || !slices.Equal(both, []int64{9, 8}) {
		t.Errorf("a type of its own: %d and %d", causal, both)
	}
}

// The base and the scaling of a layer, in the words of several versions of
// transformers.
func TestRotation(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		layer int
		want  string
	}{
		"before 5":          {`{"rope_theta": 500, "rope_scaling": {"type": "linear", "factor": 2}}`, 0, "500 linear:factor=2 from rope_scaling"},
		"from 5 on":         {`{"rope_theta": 10000, "rope_parameters": {"rope_theta": 500, "rope_type": "yarn", "factor": 2}}`, 0, "500 yarn:factor=2 from rope_parameters"},
		"both":              {`{"rope_parameters": {"rope_theta": 500, "rope_type": "default"}, "rope_scaling": {"rope_type": "linear", "factor": 2}}`, 0, "500 linear:factor=2 from rope_scaling"},
		"no scaling":        {`{"rope_theta": 500, "rope_scaling": null}`, 0, "500 none from rope_scaling"},
		"a base alone":      {`{"rope_theta": 500}`, 0, "500 none from "},
		"gpt-neox":          {`{"rotary_emb_base": 500}`, 0, "500 none from "},
		"gemma 3, a window": {`{"rope_theta": 500, "rope_local_base_freq": 7, "rope_scaling": {"rope_type": "linear", "factor": 8}, "sliding_window_pattern": 2}`, 0, "7 none from rope_local_base_freq"},
		"olmo 3, a window":  {`{"model_type": "olmo3", "rope_theta": 500, "rope_scaling": {"rope_type": "linear", "factor": 8}, "layer_types": ["sliding_attention", "full_attention"]}`, 0, "500 none from model_type"},
		"olmo 3, none":      {`{"model_type": "olmo3", "rope_theta": 500, "rope_scaling": {"rope_type": "linear", "factor": 8}, "layer_types": ["sliding_attention", "full_attention"]}`, 1, "500 linear:factor=8 from rope_scaling"},
		"gemma 3, none":     {`{"rope_theta": 500, "rope_local_base_freq": 7, "rope_scaling": {"rope_type": "linear", "factor": 8}, "sliding_window_pattern": 2}`, 1, "500 linear:factor=8 from rope_scaling"},
		"by types":          {`{"layer_types": ["sliding_attention", "full_attention"], "rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 7}, "full_attention": {"rope_type": "linear", "rope_theta": 500, "factor": 8}}}`, 1, "500 linear:factor=8 from rope_parameters"},
		"phi-3":             {`{"rope_theta": 500, "original_max_position_embeddings": 4096, "rope_scaling": {"type": "su", "short_factor": [1], "long_factor": [2]}}`, 0, "500 longrope:short_factor=[1],long_factor=[2],original_max_position_embeddings=4096 from rope_scaling"},
		"smollm3":           {`{"rope_theta": 500, "no_rope_layers": [1, 0]}`, 1, "500 none from , no rotation by no_rope_layers"},
		"unknown":           {`{"rope_theta": 500, "rope_scaling": {"type": "spiral"}}`, 0, `500 none from rope_scaling, unread`},
		"qwen2.5-vl":        {`{"rope_parameters": {"rope_theta": 500, "rope_type": "default", "mrope_section": [2, 3, 3]}}`, 0, `500 none from rope_parameters`},
		"qwen2-vl":          {`{"rope_theta": 500, "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}}`, 0, `500 none from rope_scaling`},
		"nomic":             {`{"rotary_emb_base": 500, "rotary_scaling_factor": 2, "max_trained_positions": 2048}`, 0, "500 dynamic:factor=2,original_max_position_embeddings=2048 from rotary_scaling_factor"},
		"nomic without":     {`{"rotary_emb_base": 500, "rotary_scaling_factor": null}`, 0, "500 none from "},
		"qwen":              {`{"rotary_emb_base": 500, "use_dynamic_ntk": true}`, 0, "500 none from use_dynamic_ntk, dynamic NTK that grows by powers of two"},
		"qwen without":      {`{"rotary_emb_base": 500, "use_dynamic_ntk": false}`, 0, "500 none from "},
		"glm":               {`{"rope_ratio": 500}`, 0, "0 none from rope_ratio, another base, or positions that are divided"},
		"conformer":         {`{"rotary_embedding_base": 500}`, 0, "500 none from "},
		"a base by layers":  {`{"rope_parameters": null, "rope_theta": [500, 600]}`, 1, "600 none from rope_parameters"},
		"granite, rotated":  {`{"rope_theta": 500, "layer_rope_theta": [0, 700]}`, 1, "700 none from "},
		"granite, not":      {`{"rope_theta": 500, "layer_rope_theta": [0, 700]}`, 0, "500 none from , no rotation by layer_rope_theta"},
	} {
		r := read(t, c.text).Rotation(c.layer)
		scaling := "none"
		if r.Scaling.Name != "" {
			scaling = r.Scaling.String()
		}
		got := fmt.Sprintf("%g %s from %s", r.Theta.Value, scaling, r.ScalingKey)
		if r.Other != "" {
			got += ", " + r.Other
		}
		if r.None {
			got += ", no rotation by " + r.NoneKey
		}
		if r.Unread != nil {
			got += ", unread"
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Attention layers are numbered without the layers between them, as each family names them.
func TestLayerOf(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want string // the layers with attention
	}{
		"llama":          {`{"num_hidden_layers": 3}`, "0 1 2 "},
		"lfm2":           {`{"num_hidden_layers": 4, "layer_types": ["conv", "full_attention", "conv", "full_attention"], "full_attn_idxs": null}`, "1 3 "},
		"lfm2 at first":  {`{"num_hidden_layers": 4, "full_attn_idxs": [2]}`, "2 "},
		"granite":        {`{"num_hidden_layers": 3, "layer_types": ["mamba", "attention", "mamba"]}`, "1 "},
		"zamba2":         {`{"num_hidden_layers": 3, "layers_block_type": ["mamba", "hybrid", "mamba"]}`, "1 "},
		"qwen3-next":     {`{"num_hidden_layers": 4, "full_attention_interval": 2}`, "1 3 "},
		"recurrentgemma": {`{"num_hidden_layers": 7, "block_types": ["recurrent", "recurrent", "attention"]}`, "2 5 "},
		"bamba":          {`{"num_hidden_layers": 4, "attn_layer_indices": [0, 3]}`, "0 3 "},
		"jamba":          {`{"num_hidden_layers": 8, "attn_layer_period": 4, "attn_layer_offset": 1}`, "1 5 "},
		"gemma 3":        {`{"num_hidden_layers": 3, "sliding_window_pattern": 3}`, "0 1 2 "},
		"inside":         {`{"text_config": {"num_hidden_layers": 2, "layer_types": ["conv", "full_attention"]}}`, "1 "},
	} {
		config, got := read(t, c.text), ""
		count := strings.Count(c.want, " ")
		for place := range count {
			n, known := config.LayerOf(place, count, func(layer int) any { return layer })
			if !known {
				got += "? "
			}
			got += fmt.Sprint(n, " ")
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if n, known := config.LayerOf(0, count+1, func(int) any { return "the same" }); !known || fmt.Sprint(n) != c.want[:1] {
			t.Errorf("%s: layer %d, known %v, where all layers are said to be the same", name, n, known)
		}
		if _, known := config.LayerOf(0, count+1, func(layer int) any { return layer }); known && count > 1 {
			t.Errorf("%s: a layer is known of a graph that has another count", name)
		}
	}
}

// A language model's own part of a configuration says what it was trained on, and its base.
func TestNestedContext(t *testing.T) {
	c := modelconfig.Parse("config.json", []byte(`{"max_position_embeddings": 9, "text_config": {"max_position_embeddings": 64, "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}}`))
	if c.Unread != nil || c.Original != 64 || c.Theta != 5e5 {
		t.Errorf("%d trained tokens and the base %g (%v), want 64 and 500000", c.Original, c.Theta, c.Unread)
	}
}

func TestSizes(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want string // heads, heads for keys, channels, rotated ones
	}{
		"llama":                 {`{"num_attention_heads": 8, "num_key_value_heads": 2, "hidden_size": 64}`, "8 2 8 0"},
		"head_dim":              {`{"num_attention_heads": 8, "num_key_value_heads": 2, "hidden_size": 64, "head_dim": 16, "partial_rotary_factor": 0.25}`, "8 2 16 4"},
		"gpt-j":                 {`{"n_head": 4, "n_embd": 64, "rotary_dim": 8}`, "4 0 16 8"},
		"deepseek":              {`{"num_attention_heads": 8, "num_key_value_heads": 8, "kv_lora_rank": 4, "qk_nope_head_dim": 12, "qk_rope_head_dim": 4, "head_dim": 4}`, "8 0 16 4"},
		"share of proportional": {`{"num_attention_heads": 4, "hidden_size": 64, "rope_parameters": {"rope_type": "proportional", "partial_rotary_factor": 0.5}}`, "4 0 16 16"},
		"a layer's own":         {`{"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "per_layer_config": {"1": {"head_dim": 32}}}`, "4 2 32 0"},
		"another layer's own":   {`{"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "per_layer_config": {"3": {"head_dim": 32}}}`, "4 2 16 0"},
		"from 5 on":             {`{"num_attention_heads": 4, "hidden_size": 64, "rope_parameters": {"partial_rotary_factor": 0.5}}`, "4 0 16 8"},
	} {
		m := read(t, c.text).OfLayer(1)
		if got := fmt.Sprint(m.Heads().Value, m.KVHeads().Value, m.HeadSize().Value, m.RotaryDim().Value); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A softcap of null claims that there is none.
func TestSoftcap(t *testing.T) {
	for text, want := range map[string]modelconfig.Number{
		`{}`: {}, `{"attn_logit_softcapping": null}`: {Key: "attn_logit_softcapping"}, `{"attn_logit_softcapping": 50}`: {Key: "attn_logit_softcapping", Value: 50},
	} {
		if got := read(t, text).Softcap(); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func ExampleRead() {
	c := modelconfig.Read("../../testdata/models/gemma3_text__dynamo18/model.onnx", false)
	for layer := range c.Layers() {
		fmt.Println(layer, c.Rotation(layer).Theta.Value, c.Window(layer).Value)
	}
	// Output:
	// 0 1000 8
	// 1 10000 0
}

// A configuration beside a model that is a link out of its folder says nothing, unless the user follows it.
func TestLinkedConfiguration(t *testing.T) {
	home := t.TempDir()
	folder := filepath.Join(home, "folder")
	for name, text := range map[string]string{"config.json": `{"rope_theta": 7, "max_position_embeddings": 9}`, "genai_config.json": `{"model": {"context_length": 9}}`} {
		if err := errors.Join(os.MkdirAll(folder, 0o777), os.WriteFile(filepath.Join(home, name+".mine"), []byte(text), 0o666), os.Symlink("../"+name+".mine", filepath.Join(folder, name))); err != nil {
			t.Skip("this system does not let the test make links: ", err)
		}
	}
	model := filepath.Join(folder, "model.onnx")
	c, g := modelconfig.Read(model, false), modelconfig.ReadGenAI(model, false)
	if !errors.Is(c.Unread, links.ErrOut) || c.Theta != 0 || !errors.Is(g.Unread, links.ErrOut) || g.Context.Given() {
		t.Errorf("%v, %v, %v, %v", c.Unread, c.Theta, g.Unread, g.Context)
	}
	c, g = modelconfig.Read(model, true), modelconfig.ReadGenAI(model, true)
	if c.Theta != 7 || g.Context.Value != 9 {
		t.Errorf("followed: %v, %v, %v, %v", c.Unread, c.Theta, g.Unread, g.Context)
	}
}
