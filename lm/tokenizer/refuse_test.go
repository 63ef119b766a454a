package tokenizer

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tiny are the smallest files of their kinds.
var tiny = []string{
	`{"model":{"type":"WordLevel","vocab":{"a":0,"b":1},"unk_token":"a"}}`,
	`{"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]},"added_tokens":[{"id":3,"content":"<t>","special":true}]}`,
	`{"model":{"vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]]},"decoder":{"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":1}]}}`,
	`{"model":{"type":"Unigram","unk_id":0,"vocab":[["u",0],["a",-1.5],["b",-2e-1]]},"normalizer":{"type":"Sequence","normalizers":[{"type":"NFKC"}]}}`,
	`{"model":{"type":"WordPiece","unk_token":"u","continuing_subword_prefix":"##","max_input_chars_per_word":9,"vocab":{"u":0,"a":1,"##b":2}},"pre_tokenizer":{"type":"Split","pattern":{"Regex":"\\w+"},"behavior":"Removed","invert":true}}`,
}

// with puts parts into the smallest file.
func with(parts string) string {
	return strings.Replace(tiny[0], `{"model"`, "{"+parts+`,"model"`, 1)
}

// What is not known is refused by its name, and what is broken in one sentence.
func TestRefuse(t *testing.T) {
	for file, want := range map[string]string{
		``:                                    "EOF",
		`[]`:                                  "cannot unmarshal",
		`{}`:                                  "no model",
		"{\"\xff\":1}":                        "UTF-8",
		tiny[0] + `{}`:                        "text after the end",
		`{"model":{"type":"Magic"}}`:          `model "Magic" is not known here`,
		`{"model":{"type":"BPE","vocab":{}}}`: "no vocab or no merges",
		with(`"version":"2.0"`):               `version is "2.0"`,
		with(`"surprise":1`):                  `unknown field "surprise"`,
		with(`"normalizer":{"type":"Rot13"}`): `normalizer "Rot13" is not known here`,
		with(`"normalizer":{"type":"NFC","deep":1}`):                                                                                                 `unknown field "deep"`,
		with(`"normalizer":{"type":"Precompiled","precompiled_charsmap":"AAAA"}`):                                                                    "too short",
		with(`"normalizer":{"type":"Precompiled","precompiled_charsmap":"////fw=="}`):                                                                "does not have the size",
		with(`"normalizer":` + strings.Repeat(`{"type":"Sequence","normalizers":[`, 30) + `{"type":"NFC"}` + strings.Repeat(`]}`, 30)):               "more than 16 deep",
		with(`"pre_tokenizer":{"type":"UnicodeScripts"}`):                                                                                            `pre-tokenizer "UnicodeScripts" is not known here`,
		with(`"pre_tokenizer":{"type":"Metaspace","replacement":"__"}`):                                                                              "not one letter",
		with(`"pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"often"}`):                                                      `prepend_scheme "often"`,
		with(`"pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"first","add_prefix_space":false}`):                             "contradict",
		with(`"pre_tokenizer":{"type":"FixedLength","length":0}`):                                                                                    "at least 1",
		with(`"pre_tokenizer":{"type":"Split","pattern":{"Regex":"("},"behavior":"Isolated","invert":false}`):                                        "a ( has no )",
		with(`"pre_tokenizer":{"type":"Split","pattern":{"Regex":"a"},"behavior":"Shuffled","invert":false}`):                                        `behavior "Shuffled"`,
		with(`"pre_tokenizer":{"type":"Split","pattern":{},"behavior":"Isolated","invert":false}`):                                                   "neither a String nor a Regex",
		with(`"post_processor":{"type":"Stamp"}`):                                                                                                    `post-processor "Stamp" is not known here`,
		with(`"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x","type_id":0}}],"pair":[],"special_tokens":{}}`):      `names the token "x"`,
		with(`"post_processor":{"type":"TemplateProcessing","single":[],"pair":[],"special_tokens":{}}`):                                             "the text 0 times",
		with(`"post_processor":{"type":"BertProcessing","sep":["x",1]}`):                                                                             "no sep or no cls",
		with(`"decoder":{"type":"Enigma"}`):                                                                                                          `decoder "Enigma" is not known here`,
		with(`"added_tokens":[{"id":7,"content":"x"}]`):                                                                                              "gives it 2",
		with(`"added_tokens":[{"id":2,"content":"` + strings.Repeat("x", 2000) + `"}]`):                                                              "more than 1024 bytes",
		with(`"normalizer":{"type":"Lowercase"},"added_tokens":[{"id":2,"content":"X","normalized":true},{"id":3,"content":"x","normalized":true}]`): "the same when normalized",
		`{"model":{"type":"BPE","dropout":0.1,"vocab":{},"merges":[]}}`:                                                                              "dropout is 0.1",
		`{"model":{"type":"BPE","vocab":{"a":0,"b":0},"merges":[]}}`:                                                                                 `"a" and "b" both have the id 0`,
		`{"model":{"type":"BPE","vocab":{"a":4000000000},"merges":[]}}`:                                                                              "too large",
		`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a a"]}}`:                                                                                  `needs the token "aa"`,
		`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a a a"]}}`:                                                                                "is not a pair",
		`{"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":["a b"],"continuing_subword_prefix":"##"}}`:                                           "lacks the continuing_subword_prefix",
		`{"model":{"type":"Unigram","unk_id":3,"vocab":[["a",0]]}}`:                                                                                  "unk_id 3",
		`{"model":{"type":"Unigram","unk_id":0,"vocab":[["a"]]}}`:                                                                                    "not a token with its score",
	} {
		_, err := Parse([]byte(file))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; an error with %q was expected", file, err, want)
		}
	}
	for _, file := range tiny {
		if _, err := Parse([]byte(file)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// Regular expressions that are not understood are refused, not guessed.
func TestRefuseRegex(t *testing.T) {
	for source, want := range map[string]string{
		`\X`: `\X is not known`, `\1`: `\1 is not known`, `\G`: `\G is not known`, `(?x)a`: "starts with (?x", `a{2}?`: "behind {}", `a{2}+`: "behind {}", `*a`: "nothing that * repeats",
		`[a`: "has no ]", `[]`: "has no ]", `[z-a]`: "later one", `\p{Klingon}`: `\p{Klingon}`, `\pL`: "no {name}", `[[:foo:]]`: "[:foo:]", `a)`: "has no (", `\x{110000}`: "no letter", `\xFF`: "no letter", `\`: `ends in \`, `(?<n`: "does not end",
		strings.Repeat("(", 200): "too deep", strings.Repeat("[a", 200): "too deep",
	} {
		if _, err := newRegex(source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; an error with %q was expected", source, err, want)
		}
	}
}

// A regular expression that would take for ever ends with an error.
func TestEndlessRegex(t *testing.T) {
	p, err := newRegex(`(a|aa)+$x`)
	if err != nil {
		t.Fatal(err)
	}
	p.re.MatchTimeout = 100e6
	if _, err := p.find(strings.Repeat("a", 200), newWork(context.Background(), 0)); err == nil || !strings.Contains(err.Error(), "cannot split this text") {
		t.Errorf("%v", err)
	}
}

// Texts that need a token that is not there.
func TestNoUnknown(t *testing.T) {
	for file, want := range map[string]string{
		`{"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`:                                                                           "",
		`{"model":{"type":"BPE","vocab":{"a":0},"merges":[],"unk_token":"u"}}`:                                                           `unk_token "u"`,
		`{"model":{"type":"WordLevel","vocab":{"a":0},"unk_token":"u"}}`:                                                                 `unk_token "u"`,
		`{"model":{"type":"WordPiece","vocab":{"a":0},"unk_token":"u","continuing_subword_prefix":"##","max_input_chars_per_word":100}}`: `unk_token "u"`,
		`{"model":{"type":"Unigram","unk_id":null,"vocab":[["a",0]]}}`:                                                                   "no unknown token",
	} {
		tok, err := Parse([]byte(file))
		if err != nil {
			t.Fatal(err)
		}
		if ids, err := tok.Encode("a"); err != nil || len(ids) != 1 {
			t.Errorf("%s: %v, %v", file, ids, err)
		}
		_, err = tok.Encode("x")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v; %q was expected", file, err, want)
		}
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	path := filepath.Join(dir, "tokenizer.json")
	if err := os.WriteFile(path, []byte(tiny[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{dir, path} {
		tok, err := Open(at)
		if err != nil {
			t.Fatal(err)
		}
		if tok.Size() != 4 || !tok.IsSpecial(3) || tok.IsSpecial(2) || tok.IsSpecial(99) {
			t.Errorf("size %d, special %v %v", tok.Size(), tok.IsSpecial(3), tok.IsSpecial(2))
		}
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("["), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a broken file: %v", err)
	}
}
