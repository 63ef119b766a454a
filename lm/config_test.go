package lm

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReadGeneration(t *testing.T) {
	const generation, config = "generation_config.json", "config.json"
	for name, c := range map[string]struct {
		files map[string]string
		want  []int64
	}{
		"number":            {map[string]string{generation: `{"eos_token_id": 2}`, config: `{"eos_token_id": 3}`}, []int64{2}},
		"list":              {map[string]string{generation: `{"eos_token_id": [2, 5]}`}, []int64{2, 5}},
		"only in config":    {map[string]string{generation: `{}`, config: `{"eos_token_id": 3}`}, []int64{3}},
		"null, then config": {map[string]string{generation: `{"eos_token_id": null}`, config: `{"eos_token_id": 3}`}, []int64{3}},
		"none":              {nil, nil},
	} {
		folder := t.TempDir()
		for file, content := range c.files {
			if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := readGeneration(folder); err != nil || !slices.Equal(got.End, c.want) {
			t.Errorf("%s: %v, want %v, %v", name, got, c.want, err)
		}
	}
	for content, want := range map[string]string{
		`{"eos_token_id": "</s>"}`: "eos_token_id",
		`{"top_k": "many"}`:        "top_k",
		`{`:                        "config.json",
	} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, config), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readGeneration(folder); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", content, err)
		}
	}
}
