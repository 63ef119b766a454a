package lm_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/lm"
)

const smollm2 = "../testdata/smollm2"

// The ids are those of the Python package tokenizers (testdata/scripts/tokens.py).
func TestEncodeEqualsPython(t *testing.T) {
	tokenizer, err := lm.OpenTokenizer(smollm2)
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
		ids, err := tokenizer.Encode(c.Text)
		if err != nil || !slices.Equal(ids, c.IDs) {
			t.Errorf("%q: %v, want %v, %v", c.Text, ids, c.IDs, err)
		}
		var stream lm.Stream
		var text strings.Builder
		for _, id := range c.IDs {
			text.WriteString(stream.Add(tokenizer.Decode(id)))
		}
		text.WriteString(stream.Flush())
		if text.String() != c.Text {
			t.Errorf("%q decodes to %q", c.Text, text.String())
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	tokenizer, err := lm.OpenTokenizer(smollm2)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"a\x04b": "0x04", "a\xffb": "UTF-8"} {
		if _, err := tokenizer.Encode(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want a word of %s", text, err, want)
		}
	}
}

func TestStreamKeepsLettersWhole(t *testing.T) {
	for _, text := range []string{"plain", "é", "日本", "🙂🙂", "a🙂é日"} {
		for size := 1; size <= 4; size++ {
			var stream lm.Stream
			var got strings.Builder
			for piece := range slices.Chunk([]byte(text), size) {
				part := stream.Add(piece)
				if strings.ToValidUTF8(part, "") != part {
					t.Errorf("%q in pieces of %d: %q is no whole text", text, size, part)
				}
				got.WriteString(part)
			}
			if got.String() != text || stream.Flush() != "" {
				t.Errorf("%q in pieces of %d came out as %q", text, size, got.String())
			}
		}
	}
	var stream lm.Stream
	if got := stream.Add([]byte("a\xf0\x9f")); got != "a" || stream.Flush() != "\xf0\x9f" {
		t.Errorf("an unfinished letter: %q", got)
	}
}

func TestOpenTokenizerRefuses(t *testing.T) {
	const byteLevel = `"pre_tokenizer": {"type": "ByteLevel", "use_regex": true}`
	for name, c := range map[string]struct{ file, want string }{
		"other type":          {`{"model": {"type": "Unigram"}, ` + byteLevel + `}`, "Unigram"},
		"other pre-tokenizer": {`{"model": {"type": "BPE"}, "pre_tokenizer": {"type": "Metaspace"}}`, "pre-tokenizer"},
		"no pre-tokenizer":    {`{"model": {"type": "BPE"}}`, "pre-tokenizer"},
		"normalizer":          {`{"model": {"type": "BPE"}, ` + byteLevel + `, "normalizer": {"type": "NFC"}}`, "NFC"},
		"order of merges":     {`{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 3, "ba": 2}, "merges": ["a b", "b a"]}, ` + byteLevel + `}`, "order"},
		"not byte-level":      {`{"model": {"type": "BPE", "vocab": {"日": 0}}, ` + byteLevel + `}`, "byte-level"},
		"no JSON":             {`{`, "tokenizer"},
	} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "tokenizer.json"), []byte(c.file), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := lm.OpenTokenizer(folder); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want a word of %s", name, err, c.want)
		}
	}
	if _, err := lm.OpenTokenizer(t.TempDir()); err == nil {
		t.Error("a folder without a tokenizer was accepted")
	}
}
