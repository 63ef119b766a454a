package chat

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testfuzz"
)

// FuzzMessage reads messages of OpenAI's API. What is read writes the same message again, and can be rendered.
func FuzzMessage(f *testing.F) {
	template, err := Parse("{% for m in messages %}{{ m.role }}{{ m.content }}{{ m.tool_calls|tojson if m.tool_calls }}{{ m.name }}{% endfor %}", nil)
	if err != nil {
		f.Fatal(err)
	}
	seeds := []string{
		`{"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "rain", "arguments": "{\"place\": \"Oslo\"}"}}]}`,
		`{"content": [{"type": "text", "text": "a"}, {"type": "image"}], "role": "user", "name": "me"}`, `{"role": "tool", "content": "\ud83d\ude00 \u2028", "tool_call_id": "1"}`,
	}
	testfuzz.Run(f, seeds, 4000, func(t testing.TB, data []byte) bool {
		var m Message
		if err := json.Unmarshal(data, &m); err != nil {
			oneLine(t, err)
			return false
		}
		written, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var again Message
		if err := json.Unmarshal(written, &again); err != nil {
			t.Fatalf("%s was written and cannot be read: %v", written, err)
		}
		if twice, err := json.Marshal(again); err != nil || string(twice) != string(written) {
			t.Errorf("%s became %s, %v", written, twice, err)
		}
		if _, err := template.Render([]Message{m}, Options{}); err != nil {
			oneLine(t, err)
			return false
		}
		return true
	})
}

// FuzzOpen opens folders with any tokenizer_config.json and, behind a zero byte, any special_tokens_map.json:
// both are read or refused, and a template of them is rendered or refused.
func FuzzOpen(f *testing.F) {
	seeds := []string{
		`{"chat_template": "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}", "bos_token": {"content": "<s>"}, "tokenizer_class": "LlamaTokenizer"}`,
		`{"chat_template": [{"name": "default", "template": "{{ eos_token }}"}, {"name": "tool_use", "template": "t"}], "eos_token": "</s>", "added_tokens_decoder": {}}`,
		`{"chat_template": "{{ x_token }}", "extra_special_tokens": {"x_token": "x"}}` + "\x00" + `{"bos_token": "<s>", "eos_token": {"content": "e", "lstrip": false}}`,
	}
	dir := f.TempDir()
	testfuzz.Run(f, seeds, 1000, func(t testing.TB, data []byte) bool {
		config, tokens, _ := strings.Cut(string(data), "\x00")
		for name, text := range map[string]string{"tokenizer_config.json": config, "special_tokens_map.json": tokens} {
			path := filepath.Join(dir, name)
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			if text == "" {
				continue
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		template, err := Open(dir)
		if err != nil {
			oneLine(t, err)
			return false
		}
		for _, o := range []Options{{}, {Tools: []any{}}} {
			if _, err := template.Render([]Message{{Role: "user", Content: "x"}}, o); err != nil {
				if !errors.Is(err, ErrRaised) {
					oneLine(t, err)
				}
				return false
			}
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
