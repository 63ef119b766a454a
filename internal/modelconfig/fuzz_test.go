package modelconfig_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
	"github.com/rope-rewrite/rope-rewrite/internal/testfuzz"
)

// FuzzConfig: whatever a config.json says, its claims can be asked for. What a rewrite writes into it is
// JSON again, and taken back it has the values of before.
func FuzzConfig(f *testing.F) {
	seeds := []string{
		older, `{"max_position_embeddings":8192,"rope_scaling":{"type":"linear","factor":2},"rope_theta":1e4,"num_hidden_layers":2,"hidden_size":64,"num_attention_heads":4}`,
		`{"num_hidden_layers": 4, "layer_types": ["full_attention","sliding_attention","full_attention","sliding_attention"], "sliding_window": 64, "use_sliding_window": false, "max_window_layers": 2, "rope_parameters": {"full_attention": {"rope_type": "yarn", "factor": 2, "rope_theta": 1e6}, "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}}`,
		"{\n  \"a\": 1,\n  \"text_config\": {\n    \"max_position_embeddings\": 8192, \"rope_local_base_freq\": 1e4\n  }, \"model_type\": \"gemma3\"\n}",
		`{"model_type": "olmo3", "n_layer": 3, "block_types": ["recurrent", "attention"], "no_rope_layers": [1, 0], "no_rope_layer_interval": 2, "partial_rotary_factor": 0.5, "rotary_pct": 0.25, "rotary_dim": 8, "head_dim": 16, "attention_types": [[["global", "local"], 2]]}`,
		`{"rope_parameters": {"rope_type": "longrope", "short_factor": [1], "long_factor": [2], "original_max_position_embeddings": 4096}, "alibi": true, "attn_config": {"rope": true}, "use_logn_attn": true}`,
	}
	meanings := []modelconfig.Meaning{
		{Context: 16384, Layers: layers(yarn(), 100000, 100000)}, {Layers: windowed(layers(theta(5e5), 1e4, 1e4))}, {Context: 1 << 40, Layers: windowed(layers(nil, 1e4))}, {},
	}
	testfuzz.Run(f, seeds, 1000, func(t testing.TB, data []byte) bool {
		c := modelconfig.Parse("config.json", data)
		if c.Unread != nil {
			oneLine(t, c.Unread)
			return false
		}
		claims(c)
		for _, now := range meanings {
			text, err := modelconfig.NewText(data)
			if err != nil {
				t.Fatalf("it is a configuration and no text: %v", err)
			}
			if !bytes.Equal(text.Bytes(), data) {
				t.Fatalf("%q became %q", data, text.Bytes())
			}
			if _, err := text.Apply(now); err != nil {
				oneLine(t, err)
				continue
			}
			changed := text.Bytes()
			if !json.Valid(changed) {
				t.Fatalf("%s is no JSON", changed)
			}
			for _, change := range text.Changes {
				oneLine(t, errorOf(change.String()))
			}
			if before, ok := modelconfig.OriginalOf(data, changed).Of(changed); !ok || !bytes.Equal(before, data) {
				t.Errorf("the original of %q is %q, %t", changed, before, ok)
			}
			if err := text.Undo(text.Changes); err != nil || !equal(text.Bytes(), data) {
				t.Errorf("%s became %s and then %s, %v", data, changed, text.Bytes(), err)
			}
		}
		return true
	})
}

// windowed are layers to which a mask gave a window.
func windowed(list []modelconfig.Layer) []modelconfig.Layer {
	for i := range list {
		list[i].Window, list[i].Masked = 64, true
	}
	return list
}

type errorOf string

func (e errorOf) Error() string { return string(e) }

// claims asks for all that a configuration says.
func claims(c modelconfig.Config) {
	for layer := 0; layer < 5; layer++ {
		c.Window(layer)
		c.Rotation(layer)
		c.OfLayer(layer)
		c.Context(layer)
	}
	c.Layers()
	c.Heads()
	c.KVHeads()
	c.HeadSize()
	c.RotaryDim()
	c.Positions()
	c.Softcap()
	c.Scale()
	c.Interleaved()
	c.Sinks()
	c.LogN()
	c.Decay()
	c.Slopes()
	c.Buckets()
	c.AttentionTypes(2)
	c.LayerOf(1, 2, func(n int) any { return c.Window(n) })
}

// equal says whether two texts are the same JSON.
func equal(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// FuzzHost: the same of genai_config.json, and of tokenizer_config.json.
func FuzzHost(f *testing.F) {
	seeds := []string{
		`{"model": {"context_length": 4096, "decoder": {"filename": "model.onnx", "head_size": 64, "session_options": {}, "sliding_window": {"window_size": 128}}}, "search": {"max_length": 4096, "past_present_share_buffer": true}}`,
		"{\n    \"model\": {\n        \"decoder\": {\n            \"session_options\": {\n                \"custom_ops_library\": \"own.so\"\n            }\n        }\n    }\n}\n",
		`{"model_max_length": 2048, "model": {"decoder": []}, "search": 1}`,
	}
	testfuzz.Run(f, seeds, 2000, func(t testing.TB, data []byte) bool {
		g := modelconfig.ParseGenAI("genai_config.json", data)
		if g.Unread != nil {
			oneLine(t, g.Unread)
			return false
		}
		g.Describes("model.onnx")
		text, err := modelconfig.NewText(data)
		if err != nil {
			t.Fatalf("it is a configuration and no text: %v", err)
		}
		text.Decoder()
		_, err = text.ApplyHost(modelconfig.Host{Library: "librope_ops.so", Context: 8192, Growing: true})
		if err == nil {
			_, err = text.ApplyTokenizer(8192, 2048)
		}
		if err != nil {
			oneLine(t, err)
			return false
		}
		if !json.Valid(text.Bytes()) {
			t.Fatalf("%s is no JSON", text.Bytes())
		}
		return true
	})
}

func oneLine(t testing.TB, err error) {
	t.Helper()
	if text := err.Error(); text == "" || strings.Contains(text, "\n") {
		t.Errorf("the error is not one line: %q", text)
	}
}

// A file that names many layers is asked for each of them once, however many the graph has.
func TestManyLayers(t *testing.T) {
	apply := func(count int) float64 {
		list := make([]float64, count)
		for i := range list {
			list[i] = 1e5
		}
		return testing.AllocsPerRun(1, func() {
			text, err := modelconfig.NewText([]byte(`{"num_hidden_layers": 1e9, "rope_theta": 1e5, "rope_scaling": {"type": "linear", "factor": 2}, "max_position_embeddings": 8192}`))
			if err == nil {
				_, err = text.Apply(modelconfig.Meaning{Context: 16384, Layers: windowed(layers(yarn(), list...))})
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := apply(2), apply(40); many > 2*few || few > 1e6 {
		t.Errorf("two layers take %.0f allocations, and forty %.0f", few, many)
	}
}
