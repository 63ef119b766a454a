package tokenizer_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
)

const smollm2 = "../../testdata/smollm2"

// The ids of a real file are those of the Python package tokenizers (testdata/scripts/tokens.py).
func TestSmolLM2(t *testing.T) {
	tk, err := tokenizer.Open(smollm2)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(smollm2, "tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Text string
		IDs  []int64
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 18 {
		t.Fatalf("only %d texts", len(cases))
	}
	for _, c := range cases {
		ids, err := tk.Encode(c.Text)
		if err != nil || !slices.Equal(ids, c.IDs) {
			t.Errorf("%q: %v, want %v, %v", c.Text, ids, c.IDs, err)
		}
		stream := tk.Stream(true)
		var text strings.Builder
		for _, id := range c.IDs {
			text.WriteString(stream.Add(id))
		}
		text.WriteString(stream.Flush())
		if text.String() != c.Text {
			t.Errorf("%q decodes to %q", c.Text, text.String())
		}
	}
}
