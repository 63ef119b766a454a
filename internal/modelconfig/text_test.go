package modelconfig_test

import (
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

const older = `{
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

func yarn() modelconfig.Meaning {
	return modelconfig.Meaning{Scaling: "yarn", Context: 16384, Used: []rope.Setting{
		{Name: "factor", Value: rope.Number(2), From: rope.Given},
		{Name: "original_max_position_embeddings", Value: rope.Integer(8192), From: rope.Configuration},
		{Name: "beta_fast", Value: rope.Number(32), From: rope.Default},
		{Name: "attention_factor", Value: rope.Number(1.07), From: rope.Computed},
		{Name: "ramp", Value: rope.Text("hf"), From: rope.Given},
		{Name: "rope_theta", Value: rope.Number(100000), From: rope.Measured},
	}}
}

// Unknown keys, order and form stay, and taking the changes back gives the same bytes.
func TestTextKeepsTheRest(t *testing.T) {
	for name, text := range map[string]string{
		"two spaces":  older,
		"four spaces": strings.ReplaceAll(older, "  ", "    "),
		"one line":    `{"max_position_embeddings":8192,"rope_scaling":null,"x":"\u00e9"}`,
		"newer":       "{\n  \"max_position_embeddings\": 8192,\n  \"rope_parameters\": {\n    \"rope_theta\": 100000,\n    \"rope_type\": \"default\"\n  }\n}",
		"nested":      "{\n  \"a\": 1,\n  \"text_config\": {\n    \"max_position_embeddings\": 8192\n  }\n}",
	} {
		c, err := modelconfig.NewText([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		now := yarn()
		now.Window = 64 // a key that is not there
		if warnings, err := c.Apply(now); err != nil || warnings != nil {
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
	for _, c := range []struct {
		name, text string
		now        modelconfig.Meaning
		changes    string
		warning    string
	}{
		{"nothing", older, modelconfig.Meaning{}, "", ""},
		{"a window", `{"use_sliding_window": false}`, modelconfig.Meaning{Window: 64}, "sliding_window 64; use_sliding_window false → true", ""},
		{"a base", older, modelconfig.Meaning{Scaling: "theta", Used: []rope.Setting{{Name: "rope_theta", Value: rope.Number(5e5), From: rope.Given}}}, "rope_theta 100000 → 500000", ""},
		{"a base, newer", `{"rope_parameters": {"rope_type": "linear", "factor": 2, "rope_theta": 1e4}}`, modelconfig.Meaning{Scaling: "theta", Used: []rope.Setting{{Name: "rope_theta", Value: rope.Number(5e5), From: rope.Given}}}, `rope_parameters {"rope_type":"linear", "factor":2, "rope_theta":1e4} → {"rope_type":"default", "rope_theta":500000}`, ""},
		{"no words", older, modelconfig.Meaning{Scaling: "ntk", Context: 16384}, "max_position_embeddings 8192 → 16384", "it cannot express the scaling ntk, and does not mention it"},
		{"by types", `{"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1}}}`, yarn(), "", "its rope_parameters are for types of layers, and are unchanged"},
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
			t.Errorf("%s: changes %q, want %q", c.name, got, c.changes)
		}
		if got := strings.Join(warnings, "; "); got != c.warning {
			t.Errorf("%s: warns %q, want %q", c.name, got, c.warning)
		}
	}
}

func TestApplyHost(t *testing.T) {
	for _, c := range []struct {
		text string
		now  modelconfig.Host
		want string
	}{
		{`{"model": {"context_length": 8192, "decoder": {"session_options": {"log_id": "x"}}}, "search": {"max_length": 8192, "past_present_share_buffer": true}}`,
			modelconfig.Host{Library: "librope_ops.so", Context: 16384},
			`model.decoder.session_options.custom_ops_library "librope_ops.so"; model.context_length 8192 → 16384; search.max_length 8192 → 16384`},
		{`{"model": {"context_length": 8192}, "search": {"max_length": 2048, "past_present_share_buffer": true}}`,
			modelconfig.Host{Context: 16384, Growing: true},
			`model.context_length 8192 → 16384; search.past_present_share_buffer true → false`},
		{`{"model": {}, "search": {"past_present_share_buffer": false}}`, modelconfig.Host{Growing: true}, ``},
	} {
		text, err := modelconfig.NewText([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		if err := text.ApplyHost(c.now); err != nil {
			t.Fatal(err)
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
