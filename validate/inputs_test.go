package validate_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/validate"
)

// Texts become rows that are long enough, and no longer than asked for.
func TestReadTexts(t *testing.T) {
	folder := t.TempDir()
	tokens, err := os.ReadFile("../testdata/lm/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("tokenizer.json", string(tokens))
	model := filepath.Join(folder, "model.onnx")
	long := write("long.txt", "It was the best of times, it was the worst of times,\n\nit was the age of wisdom.\n")
	rows, err := validate.ReadText(long, model, 12)
	if err != nil || len(rows) != 2 || len(rows[0]) != 12 || !slices.Equal(rows[1], rows[0][:6]) {
		t.Errorf("a text: %v, %v", rows, err)
	}
	rows, err = validate.ReadPrompts(long, model, 0)
	if err != nil || len(rows) != 2 || len(rows[0]) <= len(rows[1]) {
		t.Errorf("prompts: %v, %v", rows, err)
	}
	if _, err := validate.ReadPrompts(write("short.txt", "ab\n"), model, 0); err == nil || !strings.Contains(err.Error(), "at least 8 are needed") {
		t.Errorf("a short prompt: %v", err)
	}
	if _, err := validate.ReadPrompts(write("many.txt", strings.Repeat("It was the age of foolishness.\n", 17)), model, 0); err == nil || !strings.Contains(err.Error(), "more than 16 prompts") {
		t.Errorf("many prompts: %v", err)
	}
	if _, err := validate.ReadArrays(long, 0); !errors.As(err, new(*validate.ArchiveError)) {
		t.Errorf("a text as an archive: %v", err)
	}
}
