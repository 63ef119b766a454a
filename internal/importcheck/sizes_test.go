package importcheck

import (
	"bytes"
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"
)

// Packages of more files than maxFiles, and why. The list may only shrink.
var largePackages = map[string]string{
	"cmd/rope-rewrite":         "a file for each sub-command",
	"lm/chat/jinja":            "a language: each of its parts is small",
	"lm/tokenizer":             "each kind of normalizer, model and decoder that tokenizer.json may name",
	"onnx":                     "one file for each message of the format",
	"rewrite/internal/eval":    "each kind of piece that is run by itself",
	"rewrite/internal/measure": "each thing that is measured of a site",
	"rewrite/internal/site":    "each thing that a site may have around it",
	"rope":                     "one file for each method",
}

const (
	maxFiles = 18
	maxLines = 400
)

// Packages and files are small enough to be read at once. Tests and generated files do not count.
func TestSizes(t *testing.T) {
	out, err := exec.Command("git", "-C", "../..", "ls-files", "*.go").Output()
	if err != nil {
		t.Skip("these sources are no git repository: ", err)
	}
	files := map[string]int{}
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		data, err := os.ReadFile("../../" + name)
		if err != nil || strings.HasSuffix(name, "_test.go") || bytes.Contains(data[:min(len(data), 2000)], []byte("// Code generated")) {
			continue // a file that was removed and is not committed yet
		}
		files[path.Dir(name)]++
		if n := bytes.Count(data, []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines, more than %d: cut it by subject", name, n, maxLines)
		}
	}
	for folder, n := range files {
		if n > maxFiles && largePackages[folder] == "" {
			t.Errorf("%s has %d files, more than %d: cut it, or say why in this test", folder, n, maxFiles)
		}
	}
	for folder := range largePackages {
		if files[folder] <= maxFiles {
			t.Errorf("%s has %d files: take it from the list", folder, files[folder])
		}
	}
}
