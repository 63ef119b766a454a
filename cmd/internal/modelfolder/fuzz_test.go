package modelfolder

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/links"
	"github.com/rope-rewrite/rope-rewrite/internal/testfuzz"
)

// FuzzRecord: a rope_rewrite.json, and behind a zero byte the config.json that it is about. Both are read
// or refused in one line, and what was before is JSON.
func FuzzRecord(f *testing.F) {
	seeds := []string{
		`{"version": 1, "tool": "x", "edits": ["a"], "models": ["model.onnx"], "configurations": {"config.json": [{"key": "a.b", "before": 1, "after": 2}, {"key": "c", "after": {}}]}, "added": ["x.so"], "originals": {"config.json": {"sha256": "0", "at": 1, "length": 2, "text": "e30="}}}` + "\x00" + `{"a": {"b": 2}, "c": {}}`,
		`{"version": 2}`, `{"configurations": {"config.json": [{"key": "", "before": null}, {"key": "a.#", "before": [], "after": 1}]}}` + "\x00" + `{"a": [1]}`,
	}
	dir := f.TempDir()
	testfuzz.Run(f, seeds, 500, func(t testing.TB, input []byte) bool {
		earlier, config, _ := strings.Cut(string(input), "\x00")
		for name, text := range map[string]string{recordFile: earlier, configFile: config} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		oneLine := func(err error) bool {
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is not one line: %q", err)
			}
			return err == nil
		}
		r, err := readRecord(links.Folder{Path: dir})
		if !oneLine(err) {
			return false
		}
		before, err := r.configuration(links.Folder{Path: dir}, "model.onnx")
		if !oneLine(err) {
			return false
		}
		if before != nil && !json.Valid(before) {
			t.Errorf("before it was %q", before)
		}
		return before != nil
	})
}
