package chat

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folder writes files: texts as they are, all else as JSON.
func folder(t *testing.T, files map[string]json.RawMessage) string {
	dir := t.TempDir()
	for name, content := range files {
		var text string
		if strings.HasSuffix(name, ".jinja") {
			if err := json.Unmarshal(content, &text); err != nil {
				t.Fatal(err)
			}
			content = json.RawMessage(text)
		}
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The template and the special tokens are those that transformers takes.
func TestOpen(t *testing.T) {
	var golden map[string]struct {
		Files     map[string]json.RawMessage
		Text      *string
		WithTools *string `json:"with_tools"`
		WithATool *string `json:"with_a_tool"`
	}
	readGolden(t, "folders.json", &golden)
	for name, c := range golden {
		template, openErr := Open(folder(t, c.Files))
		for _, given := range []struct {
			tools []any
			want  *string
		}{{nil, c.Text}, {[]any{}, c.WithTools}, {[]any{map[string]any{}}, c.WithATool}} {
			got, err := "", openErr
			if err == nil {
				got, err = template.Render([]Message{{Role: "user", Content: "x"}}, Options{Tools: given.tools})
			}
			switch {
			case given.want == nil && err == nil:
				t.Errorf("%s, tools %v: transformers refuses it, and here it is %q", name, given.tools, got)
			case given.want != nil && (err != nil || got != *given.want):
				t.Errorf("%s, tools %v: %q, %v; transformers has %q", name, given.tools, got, err, *given.want)
			}
		}
		if openErr != nil && name != "nothing" && name != "null" {
			t.Errorf("%s: %v, and it is to be said by Render", name, openErr)
		}
		if missing := name == "nothing" || name == "null"; errors.Is(openErr, fs.ErrNotExist) != missing {
			t.Errorf("%s: %v", name, openErr)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "no such folder")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
}

// Processors have their template in chat_template.json, which the tokenizer of
// transformers does not read.
func TestOpenProcessor(t *testing.T) {
	template, err := Open(folder(t, map[string]json.RawMessage{
		"chat_template.json": json.RawMessage(`{"chat_template": "{{ bos_token }}processor"}`), "tokenizer_config.json": json.RawMessage(`{"chat_template": "config", "bos_token": "<b>"}`),
	}))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := template.Render([]Message{{}}, Options{}); got != "<b>processor" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// In Python the class LlamaTokenizer has a bos_token, <s>, where the file has none, and
// null says that there is none. A folder that leaves that to the class is refused if
// the template reads the token.
func TestOpenUnset(t *testing.T) {
	const template = `"chat_template": "{{ bos_token }}x"`
	for config, want := range map[string]string{
		`{` + template + `, "tokenizer_class": "LlamaTokenizer"}`:                     "",
		`{` + template + `, "tokenizer_class": "LlamaTokenizer", "bos_token": null}`:  "x",
		`{` + template + `, "tokenizer_class": "LlamaTokenizer", "bos_token": "<s>"}`: "<s>x",
		`{` + template + `, "tokenizer_class": "PreTrainedTokenizerFast"}`:            "x",
		`{` + template + `}`: "x",
		`{"chat_template": "x", "tokenizer_class": "LlamaTokenizer"}`: "x",
	} {
		opened, err := Open(folder(t, map[string]json.RawMessage{"tokenizer_config.json": json.RawMessage(config)}))
		if err != nil {
			t.Fatal(err)
		}
		got, err := opened.Render([]Message{{}}, Options{})
		if got != want || (err != nil) != (want == "") || err != nil && !strings.Contains(err.Error(), "bos_token") {
			t.Errorf("%s: %q, %v; expected %q", config, got, err, want)
		}
		if got, err := opened.Render([]Message{{}}, Options{Variables: map[string]any{"bos_token": "<b>"}}); err != nil || !strings.HasSuffix(got, "x") {
			t.Errorf("%s: %q, %v where the caller gives it", config, got, err)
		}
	}
}

// Files that are not what they should be are refused by a sentence that names them.
func TestOpenRefuses(t *testing.T) {
	for content, name := range map[string]string{
		`[]`: "tokenizer_config.json", `{"chat_template": 5}`: "tokenizer_config.json", `{"chat_template": [{"name": "default"}]}`: "tokenizer_config.json",
		`{`: "chat_template.json", "\"\xff\"": "chat_template.jinja",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", content, err)
		}
	}
}
