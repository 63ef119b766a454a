package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Flags that cannot be are refused in a sentence, before a model is loaded.
func TestFlags(t *testing.T) {
	dir := t.TempDir()
	empty, key := filepath.Join(dir, "empty"), filepath.Join(dir, "key")
	for path, text := range map[string]string{empty: "\n", key: "from a file\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(keyVariable, "from the environment")
	for _, c := range []struct {
		name            string
		change          func(*options)
		model, key, err string
	}{
		{"usual", func(*options) {}, "chat", "from the environment", ""},
		{"a file", func(o *options) { o.model = "models/chat/onnx/model.onnx" }, "chat", "from the environment", ""},
		{"a name", func(o *options) { o.name = "mine" }, "mine", "from the environment", ""},
		{"a key", func(o *options) { o.keyFile = key }, "chat", "from a file", ""},
		{"no model", func(o *options) { o.model = "" }, "", "", "give -model"},
		{"no rows", func(o *options) { o.lm.Rows = 0 }, "", "", "must be above 0"},
		{"no time", func(o *options) { o.limits.time = 0 }, "", "", "must be above 0"},
		{"a short queue", func(o *options) { o.lm.Queue = 3 }, "", "", "-queue must be as large"},
		{"a log", func(o *options) { o.log = "xml" }, "", "", "expected text or json"},
		{"an empty key", func(o *options) { o.keyFile = empty }, "", "", "is empty"},
		{"a lost key", func(o *options) { o.keyFile = dir + "/none" }, "", "", "no such file"},
	} {
		o := options{model: "models/chat", log: "text", limits: limits{body: 1, tokens: 1, choices: 4, time: time.Second}}
		o.lm.Rows, o.lm.Queue = 1, 4
		c.change(&o)
		_, key, err := o.check()
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %s", c.name, err, c.err)
			}
			continue
		}
		if err != nil || o.name != c.model || key != c.key {
			t.Errorf("%s: %v, the model %q and the key %q, want %q and %q", c.name, err, o.name, key, c.model, c.key)
		}
	}
}
