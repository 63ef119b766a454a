package modelconfig_test

import (
	"math"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

const older = `{
  "model_type": "mistral",
  "zeta": [],
  "max_position_embeddings": 8192,
  "unknown": {
    "b": 1.0,
    "a": null
  },
  "rope_scaling": null,
  "rope_theta": 100000,
  "eos_token_id": [
    1,
    2
  ]
}
`

// layers are layers of 16 channels that turn by bases; a scaling is of all.
func layers(scaling *modelconfig.Scaling, bases ...float64) (list []modelconfig.Layer) {
	for _, base := range bases {
		list = append(list, layer(scaling, base))
	}
	return list
}

// layer is a layer that a scaling changed.
func layer(scaling *modelconfig.Scaling, base float64) modelconfig.Layer {
	l := modelconfig.Layer{Turns: true, Base: base, Scaling: scaling}
	was := rope.Attention{Heads: 1, KVHeads: 1, HeadSize: 16, Mask: rope.Mask{Causal: true}, Encoding: rope.Encoding{Frequencies: make([]float64, 8)}}
	for i := range was.Encoding.Frequencies {
		was.Encoding.Frequencies[i] = math.Pow(max(base, 2), -float64(i)/8)
	}
	now := was
	if scaling != nil {
		spec := rope.Spec{Axis: rope.ScalingAxis, Name: scaling.Name, Params: map[string]rope.Value{}}
		for _, x := range scaling.Used {
			if x.From == rope.Given || x.From == rope.Configuration {
				spec.Params[x.Name] = x.Value
			}
		}
		var err error
		if now, _, err = spec.Apply(was, rope.Context{Length: 32768, Original: 8192}); err != nil {
			panic(err)
		}
	}
	l.Was, l.Now = &was, &now
	return l
}

func yarn() *modelconfig.Scaling {
	return &modelconfig.Scaling{Name: "yarn", Used: []rope.Setting{
		{Name: "factor", Value: rope.Number(2), From: rope.Given},
		{Name: "original_max_position_embeddings", Value: rope.Integer(8192), From: rope.Configuration},
		{Name: "beta_fast", Value: rope.Number(32), From: rope.Default},
		{Name: "attention_factor", Value: rope.Number(1.07), From: rope.Computed},
		{Name: "ramp", Value: rope.Text("hf"), From: rope.Given},
		{Name: "rope_theta", Value: rope.Number(100000), From: rope.Measured},
	}}
}

// given is a scaling with a parameter.
func given(name, key string, value float64) *modelconfig.Scaling {
	return &modelconfig.Scaling{Name: name, Used: []rope.Setting{{Name: key, Value: rope.Number(value), From: rope.Given}}}
}

func theta(base float64) *modelconfig.Scaling {
	return &modelconfig.Scaling{Name: "theta", Used: []rope.Setting{{Name: "rope_theta", Value: rope.Number(base), From: rope.Given}}}
}

// Unknown keys, order and form stay, and taking the changes back gives the same bytes.
func TestTextKeepsTheRest(t *testing.T) {
	for name, text := range map[string]string{
		"two spaces":  older,
		"four spaces": strings.ReplaceAll(older, "  ", "    "),
		"one line":    `{"model_type":"mistral","max_position_embeddings":8192,"rope_scaling":null,"x":"\u00e9"}`,
		"newer":       "{\n  \"model_type\": \"mistral\",\n  \"max_position_embeddings\": 8192,\n  \"rope_parameters\": {\n    \"rope_theta\": 100000,\n    \"rope_type\": \"default\"\n  }\n}",
		"nested":      "{\n  \"model_type\": \"mistral\",\n  \"text_config\": {\n    \"max_position_embeddings\": 8192\n  }\n}",
	} {
		c, err := modelconfig.NewText([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		now := modelconfig.Meaning{Context: 16384, Layers: layers(yarn(), 100000)}
		now.Layers[0].Window, now.Layers[0].Masked = 64, true // a key that is not there
		if warnings, err := c.Apply(now); err != nil || len(warnings) > 0 {
			t.Fatal(name, warnings, err)
		}
		byType, err := rope.ParseLayerRopeParameters(c.Bytes())
		if got, want := byType[""].String(), "yarn:factor=2,original_max_position_embeddings=8192"; err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%s: transformers would read %s, want %s (%v)\n%s", name, got, want, err, c.Bytes())
		}
		if !strings.Contains(string(c.Bytes()), "16384") {
			t.Errorf("%s: no new context in\n%s", name, c.Bytes())
		}
		again, err := modelconfig.NewText(c.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Undo(c.Changes); err != nil {
			t.Fatal(err)
		}
		if string(again.Bytes()) != text {
			t.Errorf("%s: taking the changes back gives\n%s\nin place of\n%s", name, again.Bytes(), text)
		}
	}
}

// What somebody changed since is not taken back.
func TestUndoLeavesOthersChanges(t *testing.T) {
	c, err := modelconfig.NewText([]byte(older))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Apply(modelconfig.Meaning{Context: 16384}); err != nil {
		t.Fatal(err)
	}
	theirs, err := modelconfig.NewText([]byte(strings.Replace(string(c.Bytes()), "16384", "12000", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := theirs.Undo(c.Changes); err != nil {
		t.Fatal(err)
	}
	if got := string(theirs.Get("max_position_embeddings")); got != "12000" {
		t.Errorf("it became %s", got)
	}
}

func TestApply(t *testing.T) {
	masked := func(list []modelconfig.Layer) []modelconfig.Layer {
		list[0].Window, list[0].Masked = 64, true
		return list
	}
	bothSides := func(list []modelconfig.Layer) []modelconfig.Layer {
		list[0].Now.Mask.Causal = false
		return list
	}
	first := func(scaling *modelconfig.Scaling, bases ...float64) []modelconfig.Layer { // is scaled alone
		return append(layers(scaling, bases[0]), layers(nil, bases[1:]...)...)
	}
	gaps := func(list []modelconfig.Layer) []modelconfig.Layer {
		list[0].Gaps = true
		clear(list[0].Now.Encoding.Frequencies[4:])
		return list
	}
	noBase := func(list []modelconfig.Layer) []modelconfig.Layer {
		list[0].Base = 0
		return list
	}
	proportional := func() *modelconfig.Scaling {
		return &modelconfig.Scaling{Name: "proportional", Used: []rope.Setting{{Name: "partial_rotary_factor", Value: rope.Number(0.5), From: rope.Given}}}
	}
	const yarn2 = `"rope_type":"yarn", "factor":2, "original_max_position_embeddings":8192`
	for _, c := range []struct {
		name, text string
		now        modelconfig.Meaning
		changes    string
		warning    string
	}{
		{"nothing", older, modelconfig.Meaning{}, "", ""},
		{"a window", `{"model_type": "qwen2", "use_sliding_window": false}`, modelconfig.Meaning{Layers: masked(layers(nil, 1e4))}, "sliding_window 64; use_sliding_window false → true; max_window_layers 0", ""},
		{"a window to both sides", `{"model_type": "mistral", "is_causal": false}`, modelconfig.Meaning{Layers: bothSides(masked(layers(nil, 1e4)))}, "sliding_window 63", ""},
		{"a window of upper layers", `{"model_type": "qwen3", "num_hidden_layers": 2}`, modelconfig.Meaning{Layers: append(layers(nil, 1e4), masked(layers(nil, 1e4))...)}, "sliding_window 64; use_sliding_window true; max_window_layers 1", ""},
		{"a window of the lower layer", `{"model_type": "qwen3", "num_hidden_layers": 2}`, modelconfig.Meaning{Layers: masked(layers(nil, 1e4, 1e4))}, "", "it cannot describe which layers now have a window of 64 tokens, so it does not mention it"},
		{"a window by types", `{"model_type": "qwen3", "layer_types": ["full_attention", "full_attention"]}`, modelconfig.Meaning{Layers: masked(layers(nil, 1e4, 1e4))},
			`sliding_window 64; use_sliding_window true; layer_types ["full_attention", "full_attention"] → ["sliding_attention", "full_attention"]`, ""},
		{"a window that llama does not read", `{"model_type": "llama"}`, modelconfig.Meaning{Layers: masked(layers(nil, 1e4))}, "", "transformers reads no window for its model_type, so it does not mention the window of 64 tokens"},
		{"a window in some layers", `{"model_type": "mistral"}`, modelconfig.Meaning{Layers: masked(layers(nil, 1e4, 1e4))}, "", "it cannot describe which layers now have a window of 64 tokens, so it does not mention it"},
		{"a window where full attention is claimed", `{"model_type": "gemma2", "layer_types": ["full_attention"]}`, modelconfig.Meaning{Layers: masked(layers(nil, 1e4))}, "", "it cannot describe which layers now have a window of 64 tokens, so it does not mention it"},
		{"a base", older, modelconfig.Meaning{Layers: layers(theta(5e5), 1e5)}, "rope_theta 100000 → 500000", ""},
		{"a base, newer", `{"rope_parameters": {"rope_type": "linear", "factor": 2, "rope_theta": 1e4}}`, modelconfig.Meaning{Layers: layers(theta(5e5), 1e4)}, `rope_parameters {"rope_type":"linear", "factor":2, "rope_theta":1e4} → {"rope_type":"default", "rope_theta":500000}`, ""},
		{"a base in place of a scaling", `{"rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": 2}}`, modelconfig.Meaning{Layers: layers(theta(5e5), 1e4)}, `rope_theta 1e4 → 500000; rope_scaling {"type":"linear", "factor":2} → null`, ""},
		{"no words", older, modelconfig.Meaning{Context: 16384, Layers: layers(given("ntk", "alpha", 4), 1e5)}, "max_position_embeddings 8192 → 16384; rope_theta 100000 → 487605.5", ""},
		{"nothing turns", older, modelconfig.Meaning{Context: 16384, Layers: layers(&modelconfig.Scaling{Name: "nope"}, 1e5)}, "max_position_embeddings 8192 → 16384", "it cannot express the scaling nope, so it does not mention it"},
		{"interpolation at a context", older, modelconfig.Meaning{Layers: layers(&modelconfig.Scaling{Name: "dynamic-linear"}, 1e5)}, `rope_scaling null → {"rope_type":"linear", "factor":4}`, ""},
		{"dynamic at a context", older, modelconfig.Meaning{Layers: layers(given("dynamic", "factor", 1), 1e5)}, "rope_theta 100000 → 487605.5", ""},
		{"no gain", older, modelconfig.Meaning{Layers: layers(given("ntk-by-parts", "factor", 2), 1e5)}, `rope_scaling null → {"rope_type":"yarn", "factor":2, "attention_factor":1.0}`, ""},
		{"a factor on the score", older, modelconfig.Meaning{Layers: layers(&modelconfig.Scaling{Name: "yarn", Used: append(yarn().Used, rope.Setting{Name: "temperature", Value: rope.Number(1.44), From: rope.Given})}, 1e5)},
			`rope_scaling null → {` + yarn2 + `, "attention_factor":1.2}`, ""},
		{"a trained length that is needed", `{"rope_theta": 1e5, "max_position_embeddings": 8192, "rope_scaling": {"type": "dynamic", "factor": 2}}`, modelconfig.Meaning{Context: 16384, Layers: layers(nil, 1e5)}, "",
			"its max_position_embeddings stays, because transformers takes the trained length of dynamic from it"},
		{"Phi-3 takes lists alone", `{"model_type": "phi3", "rope_parameters": {"rope_theta": 1e5}, "original_max_position_embeddings": 8192}`, modelconfig.Meaning{Layers: layers(given("linear", "factor", 2), 1e5)},
			`rope_parameters {"rope_theta":1e5} → {"rope_type":"longrope", "short_factor":[2,2,2,2,2,2,2,2], "long_factor":[2,2,2,2,2,2,2,2], "attention_factor":1.0, "original_max_position_embeddings":8192, "rope_theta":100000}`, ""},
		{"Phi-3 before version 5", `{"model_type": "phi3", "rope_theta": 1e5, "original_max_position_embeddings": 8192}`, modelconfig.Meaning{Layers: layers(given("linear", "factor", 2), 1e5)}, "",
			"it cannot express the scaling linear, so it does not mention it"},

		// What is written is what was measured.
		{"another base was measured", `{"rope_theta": 1e5}`, modelconfig.Meaning{Layers: layers(yarn(), 1e4)}, `rope_theta 1e5 → 10000; rope_scaling {` + yarn2 + `}`, ""},
		{"another base was measured, newer", `{"rope_parameters": {"rope_theta": 1e5, "rope_type": "default"}, "rope_theta": 1e4}`, modelconfig.Meaning{Layers: layers(yarn(), 1e4)},
			`rope_parameters {"rope_theta":1e5, "rope_type":"default"} → {` + yarn2 + `, "rope_theta":10000}`, ""},
		{"the older key too", `{"rope_parameters": {"rope_theta": 1e4, "rope_type": "default"}, "rope_theta": 1e5}`, modelconfig.Meaning{Layers: layers(yarn(), 1e4)},
			`rope_parameters {"rope_theta":1e4, "rope_type":"default"} → {` + yarn2 + `, "rope_theta":10000}; rope_theta 1e5 → 10000`, ""},
		{"the key of GPT-NeoX", `{"rotary_emb_base": 1e5}`, modelconfig.Meaning{Layers: layers(yarn(), 1e4)}, `rotary_emb_base 1e5 → 10000; rope_scaling {` + yarn2 + `}`, ""},
		{"as exact as float32", `{"rope_theta": 1e5}`, modelconfig.Meaning{Layers: layers(yarn(), 99999.7)}, `rope_scaling {` + yarn2 + `}`, ""},
		{"several bases", `{"rope_theta": 1e5}`, modelconfig.Meaning{Layers: layers(yarn(), 1e4, 1e3)}, "", "the scaling yarn:factor=2,ramp=hf starts from several rope_theta (1000, 10000), but it has one for all layers, so its rotation is unchanged"},
		{"no base", `{"rope_theta": 1e5}`, modelconfig.Meaning{Layers: noBase(layers(&modelconfig.Scaling{Name: "nope"}, 1e4))}, "", "the frequencies that the scaling nope starts from follow no rope_theta, so its rotation is unchanged"},
		{"a share that turns stays", `{"rope_parameters": {"partial_rotary_factor": 0.25, "rope_theta": 1e4, "rope_type": "linear", "factor": 3}}`, modelconfig.Meaning{Layers: layers(yarn(), 1e4)},
			`rope_parameters {"partial_rotary_factor":0.25, "rope_theta":1e4, "rope_type":"linear", "factor":3} → {` + yarn2 + `, "rope_theta":10000, "partial_rotary_factor":0.25}`, ""},
		{"a share of proportional", `{"rope_parameters": {"partial_rotary_factor": 0.25, "rope_theta": 1e4, "rope_type": "proportional"}}`, modelconfig.Meaning{Layers: layers(proportional(), 1e4)},
			`rope_parameters {"partial_rotary_factor":0.25, "rope_theta":1e4, "rope_type":"proportional"} → {"rope_type":"proportional", "partial_rotary_factor":0.5, "rope_theta":10000}`, ""},
		{"pairs that do not turn", `{"rope_parameters": {"partial_rotary_factor": 0.25, "rope_theta": 1e4, "rope_type": "proportional"}}`, modelconfig.Meaning{Layers: gaps(layers(yarn(), 1e4))}, "",
			"it cannot express the scaling yarn of layers in which some pairs do not rotate, so it does not mention it"},

		// Of single layers it says what is so, or nothing.
		{"some layers", older, modelconfig.Meaning{Layers: first(yarn(), 1e5, 1e5)}, "", "it would describe layer 1 as scaled, which it is not, so it does not mention the scaling of the others"},
		{"a layer that does not turn", older, modelconfig.Meaning{Layers: append(layers(yarn(), 1e5), modelconfig.Layer{})}, `rope_scaling null → {` + yarn2 + `}`, ""},
		{"by types, which are unknown", `{"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1}}}`, modelconfig.Meaning{Layers: layers(yarn(), 1)}, "", "its rope_parameters are for types of layers, but it does not say the type of layer 0, so they are unchanged"},
		{"by types", byTypes, modelconfig.Meaning{Layers: first(yarn(), 1e4, 1e3)}, `rope_parameters.full_attention {"rope_type":"default", "rope_theta":1e4} → {` + yarn2 + `, "rope_theta":10000}`, ""},
		{"by types, all of them", byTypes, modelconfig.Meaning{Layers: layers(yarn(), 1e4, 1e3)},
			`rope_parameters.full_attention {"rope_type":"default", "rope_theta":1e4} → {` + yarn2 + `, "rope_theta":10000}; rope_parameters.sliding_attention {"rope_type":"default", "rope_theta":1e3} → {` + yarn2 + `, "rope_theta":1000}`, ""},
		{"Gemma 3 before version 5", gemma, modelconfig.Meaning{Layers: append(layers(nil, 1e3), layers(yarn(), 1e4)...)}, `rope_scaling {` + yarn2 + `}`, ""},
		{"Gemma 3 before version 5, all layers", gemma, modelconfig.Meaning{Layers: layers(yarn(), 1e4, 1e4)}, "", "it cannot express the scaling yarn, so it does not mention it"},
		{"fewer layers than it names", `{"num_hidden_layers": 3, "layer_types": ["full_attention", "sliding_attention", "full_attention"], "rope_theta": 1e4, "rope_local_base_freq": 1e3}`, modelconfig.Meaning{Layers: layers(yarn(), 1e4)}, "", "it names 3 layers and the graph has 1 attention layers, so it cannot say which of them are scaled"},
		{"not of its types", `{"max_position_embeddings": "many", "rope_theta": 1e4}`, modelconfig.Meaning{Layers: layers(yarn(), 1e4)}, "", "it cannot be read (json: cannot unmarshal string into Go struct field .max_position_embeddings of type int64), and is unchanged"},
	} {
		text, err := modelconfig.NewText([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		warnings, err := text.Apply(c.now)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		var changes []string
		for _, change := range text.Changes {
			changes = append(changes, change.String())
		}
		if got := strings.Join(changes, "; "); got != c.changes {
			t.Errorf("%s: changes\n%s\nwant\n%s", c.name, got, c.changes)
		}
		if got := strings.Join(warnings, "; "); got != c.warning {
			t.Errorf("%s: warns %q, want %q", c.name, got, c.warning)
		}
	}
}

const (
	byTypes = `{"layer_types": ["full_attention", "sliding_attention"], "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1e4}, "sliding_attention": {"rope_type": "default", "rope_theta": 1e3}}}`
	gemma   = `{"rope_theta": 1e4, "rope_local_base_freq": 1e3, "sliding_window": 8, "sliding_window_pattern": 2}`
)

// A base that changes within a dictionary is told alone, since dictionaries are long.
func TestChangeOfBase(t *testing.T) {
	for _, c := range [][3]string{
		{`{"rope_theta": 100000.0, "rope_type": "default"}`, `{"rope_type":"yarn","rope_theta":10000}`, "rope_theta 100000.0 → 10000"},
		{`{"rope_theta": 10000.0}`, `{"rope_theta":10000}`, ""},
		{`{}`, `{"rope_theta":10000}`, ""},
		{`8192`, `16384`, ""},
	} {
		change := modelconfig.Change{Key: "x", Before: []byte(c[0]), After: []byte(c[1])}
		if got := change.Base(); got != c[2] {
			t.Errorf("%s: %q, want %q", change, got, c[2])
		}
	}
}

// The original comes back to the byte, and not out of a text that somebody else wrote.
func TestOriginal(t *testing.T) {
	for _, c := range [][2]string{{"", ""}, {"abc", "abc"}, {"abc", "aXc"}, {"aa", "aaa"}, {"aaa", "aa"}, {"", "x"}, {"x", ""}, {"a\xffb\r\n", "a\xfeb\r\n"}} {
		o := modelconfig.OriginalOf([]byte(c[0]), []byte(c[1]))
		if got, ok := o.Of([]byte(c[1])); !ok || string(got) != c[0] {
			t.Errorf("%q of %q: %q, %t", c[0], c[1], got, ok)
		}
		if _, ok := o.Of([]byte(c[1] + " ")); ok {
			t.Errorf("%q was taken for %q", c[1]+" ", c[1])
		}
	}
	for _, o := range []modelconfig.Original{{}, {At: -1}, {At: 9}, {Length: -1}, {At: 1 << 62, Length: 1 << 62}} {
		o.Digest = modelconfig.OriginalOf(nil, []byte("ab")).Digest
		if got, ok := o.Of([]byte("ab")); ok && (o.At != 0 || o.Length != 0) {
			t.Errorf("%+v: %q", o, got)
		}
	}
}

func TestApplyHost(t *testing.T) {
	for _, c := range []struct {
		text string
		now  modelconfig.Host
		want string
		own  string
	}{
		{`{"model": {"context_length": 8192, "decoder": {"session_options": {"log_id": "x"}}}, "search": {"max_length": 8192, "past_present_share_buffer": true}}`,
			modelconfig.Host{Library: "librope_ops.so", Context: 16384},
			`model.decoder.session_options.custom_ops_library "librope_ops.so"; model.context_length 8192 → 16384; search.max_length 8192 → 16384`, ""},
		{`{"model": {"context_length": 8192}, "search": {"max_length": 2048, "past_present_share_buffer": true}}`,
			modelconfig.Host{Context: 16384, Growing: true},
			`model.context_length 8192 → 16384; search.past_present_share_buffer true → false`, ""},
		{`{"model": {}, "search": {"past_present_share_buffer": false}}`, modelconfig.Host{Growing: true}, ``, ""},
		{`{"model": {"decoder": {"session_options": {"custom_ops_library": "ops/theirs.so"}}}}`, modelconfig.Host{Library: "librope_ops.so"}, ``, "ops/theirs.so"},
		{`{"model": {"decoder": {"session_options": {"custom_ops_library": "ops/theirs.so"}}}}`, modelconfig.Host{}, ``, ""},
		{`{"model": {"decoder": {"session_options": {"custom_ops_library": "librope_ops.so"}}}}`, modelconfig.Host{Library: "librope_ops.so"}, ``, ""},
		{`{"model": {"decoder": {"session_options": {"custom_ops_library": ""}}}}`, modelconfig.Host{Library: "librope_ops.so"}, `model.decoder.session_options.custom_ops_library "" → "librope_ops.so"`, ""},
	} {
		text, err := modelconfig.NewText([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		own, err := text.ApplyHost(c.now)
		if err != nil || own != c.own {
			t.Errorf("%s: its own library is %q, want %q (%v)", c.text, own, c.own, err)
		}
		var changes []string
		for _, change := range text.Changes {
			changes = append(changes, change.String())
		}
		if got := strings.Join(changes, "; "); got != c.want {
			t.Errorf("changes %q, want %q", got, c.want)
		}
	}
}
