package lm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testfuzz"
)

// FuzzGeneration: config.json, generation_config.json and genai_config.json, with zero bytes between them,
// are read, or refused in one line.
func FuzzGeneration(f *testing.F) {
	seeds := []string{
		`{"eos_token_id": 2, "max_position_embeddings": 2048}` + "\x00" + `{"eos_token_id": [2, 3], "do_sample": true, "temperature": 0.6, "top_p": 0.9, "top_k": 20, "min_p": 0.1, "repetition_penalty": 1.1, "max_new_tokens": 64}`,
		"{}\x00null\x00" + `{"model": {"context_length": 4096, "eos_token_id": [1], "decoder": {"filename": "m.onnx"}}, "search": {"do_sample": false, "top_k": 1}}`,
	}
	dir := f.TempDir()
	testfuzz.Run(f, seeds, 500, func(t testing.TB, input []byte) bool {
		texts := append(strings.SplitN(string(input), "\x00", 3), "", "")
		for i, name := range []string{"config.json", "generation_config.json", "genai_config.json"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(texts[i]), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := readGeneration(dir); err != nil {
			if text := err.Error(); text == "" || strings.Contains(text, "\n") {
				t.Errorf("the error is not one line: %q", text)
			}
			return false
		}
		return true
	})
}
