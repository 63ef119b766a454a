package chat_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/links"
	"github.com/rope-rewrite/rope-rewrite/lm/chat"
)

// A template that is a link out of the model's folder would show the user's own text to everyone who talks to the model.
func TestLinksOut(t *testing.T) {
	for name, to := range map[string]string{
		"chat_template.jinja": "private/default.jinja", "additional_chat_templates/default.jinja": "../private/default.jinja", "additional_chat_templates": "private",
		"chat_template.json": "private/config.json", "tokenizer_config.json": "private/config.json", "special_tokens_map.json": "private/config.json",
	} {
		home := t.TempDir()
		folder := filepath.Join(home, "folder")
		for path, text := range map[string]string{"private/default.jinja": "a secret", "private/config.json": `{"chat_template": "a secret"}`} {
			path = filepath.Join(home, path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.Symlink("../"+to, path)); err != nil {
			t.Skip("this system does not let the test make links: ", err)
		}
		if name == "special_tokens_map.json" {
			if err := os.WriteFile(filepath.Join(folder, "chat_template.jinja"), nil, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := chat.Open(folder); !errors.Is(err, links.ErrOut) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
