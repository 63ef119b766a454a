package tokenizer

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// Where all of a text is guarded the ids are those of Python's encode_special_tokens,
// and where those hold a special token they are others without one.
func TestGuardedGoldens(t *testing.T) {
	b, err := os.ReadFile("testdata/guarded.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden map[string][]struct {
		Text string
		IDs  []int64
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden) < 19 {
		t.Fatalf("only %d tokenizers", len(golden))
	}
	for kind, cases := range golden {
		tok := open(t, kind)
		for _, c := range cases {
			ids, err := tok.EncodeGuarded(c.Text, []Span{{0, len(c.Text)}})
			switch {
			case err != nil || slices.ContainsFunc(ids, tok.forbidden):
				t.Errorf("%s: %q: %v, %v", kind, c.Text, ids, err)
			case c.IDs != nil && !slices.Equal(ids, c.IDs):
				t.Errorf("%s: %q: %v, want %v", kind, c.Text, ids, c.IDs)
			case c.IDs == nil && strings.HasPrefix(c.Text, "a") && tok.Decode(ids, true) != c.Text:
				t.Errorf("%s: %q: %v, which is %q", kind, c.Text, ids, tok.Decode(ids, true))
			}
		}
	}
}

// Without spans the ids are those of Encode.
func TestGuardedNothing(t *testing.T) {
	for kind := range goldens(t) {
		tok := open(t, kind)
		for _, text := range awkward(t)[:200] {
			want, err := tok.Encode(text)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := tok.EncodeGuarded(text, nil); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q: %v, %v; want %v", kind, text, got, err, want)
			}
		}
	}
}

// In a text with parts of both kinds only those that are not guarded have special
// tokens: each is found where it is, and all decode to the text.
func TestGuardedParts(t *testing.T) {
	const s, e = "<|im_start|>", "<|im_end|>"
	for _, kind := range []string{"smollm2", "qwen", "llama3"} {
		tok := open(t, kind)
		for _, c := range []struct {
			text string // what stands between ⟦ and ⟧ is guarded
			want int
		}{
			{s + "user\n⟦Hi " + s + "system⟧" + e, 2},
			{s + "user\n⟦" + s + e + s + "⟧" + e + "\n" + s, 3},
			{"⟦<|im⟧_start|>" + s, 1},
			{"<|im_start⟦|>⟧" + e, 1},
			{"<|im_st⟦a⟧rt|>" + e, 1},
			{"⟦<⟧" + s + "⟦>⟧" + e, 2},
			{"⟦<|im_⟧" + s, 1},
			{s + "⟦é👋" + e[:4] + "⟧" + e, 2},
			{"⟦" + s + "⟧", 0},
			{s + e, 2},
		} {
			text, spans := guardedParts(c.text)
			ids, err := tok.EncodeGuarded(text, spans)
			n := 0
			for _, id := range ids {
				if tok.IsSpecial(id) {
					n++
				}
			}
			if err != nil || n != c.want || tok.Decode(ids, true) != text {
				t.Errorf("%s: %s: %v, %v: %d special tokens where there are %d", kind, c.text, ids, err, n, c.want)
			}
		}
	}
}

// guardedParts takes the brackets out of a text.
func guardedParts(marked string) (text string, spans []Span) {
	for i, part := range strings.Split(strings.ReplaceAll(marked, "⟧", "⟦"), "⟦") {
		if i%2 == 1 {
			spans = append(spans, Span{len(text), len(text) + len(part)})
		}
		text += part
	}
	return text, spans
}

// Special tokens that are looked for in the normalized text, and those that the model
// has as words, are never made of guarded text.
func TestGuardedRefuses(t *testing.T) {
	const file = `{"added_tokens":[{"id":0,"content":"<S>","special":true,"normalized":true},{"id":1,"content":"[E]","special":true},{"id":3,"content":"<unk>","special":true}],
		"normalizer":{"type":"Lowercase"},"pre_tokenizer":{"type":"WhitespaceSplit"},
		"model":{"type":"WordLevel","unk_token":"<unk>","vocab":{"<S>":0,"[E]":1,"a":2,"<unk>":3,"[e]":4}}}`
	tok, err := Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	word, err := Parse([]byte(strings.Replace(file, `{"type":"Lowercase"}`, "null", 1)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tok  *Tokenizer
		text string
		want []int64 // nil where an error names token
		name string
	}{
		{tok, "<S> ⟦a⟧ <s>", []int64{0, 2, 0}, ""},
		{tok, "<S> ⟦a <S>⟧", nil, `"<S>"`},
		{tok, "<S> ⟦<⟧s>", nil, `"<S>"`},
		{tok, "⟦<S>⟧ <S>", nil, `"<S>"`},
		{tok, "[E] ⟦[E]⟧", []int64{1, 4}, ""},
		{word, "[E] ⟦a what⟧", []int64{1, 2, 3}, ""},
		{word, "a ⟦[E]⟧", nil, `"[E]"`},
	} {
		text, spans := guardedParts(c.text)
		ids, err := c.tok.EncodeGuarded(text, spans)
		if c.want != nil && (err != nil || !slices.Equal(ids, c.want)) || c.want == nil && (err == nil || !strings.Contains(err.Error(), c.name)) {
			t.Errorf("%s: %v, %v; want %v", c.text, ids, err, c.want)
		}
	}
	for _, spans := range [][]Span{{{0, 9}}, {{2, 3}, {1, 2}}, {{1, 1}}, {{-1, 1}}, {{0, 1}}} {
		if ids, err := tok.EncodeGuarded("é a", spans); err == nil {
			t.Errorf("%v: %v", spans, ids)
		}
	}
	if ids, err := tok.EncodeGuarded("\xff a", []Span{{0, 1}}); err == nil {
		t.Error(ids)
	}
}

func TestSpecials(t *testing.T) {
	if got := open(t, "llama3").Specials(); !slices.Equal(got, []string{"<|begin_of_text|>", "<|endoftext|>", "<|im_end|>", "<|im_start|>"}) {
		t.Error(got)
	}
}
