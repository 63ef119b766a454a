package tokenizer

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rope-rewrite/rope-rewrite/internal/testfuzz"
)

// FuzzParse: a file, and behind a zero byte a text. Whatever the file says, it is read or refused in one
// line. What is read gives the same ids each time, and decodes them to the same valid text at once and id by id.
func FuzzParse(f *testing.F) {
	var seeds []string
	for _, p := range parts(f) {
		for name, part := range map[string]json.RawMessage{"normalizer": p.Normalizer, "pre_tokenizer": p.PreTokenizer, "decoder": p.Decoder} {
			if part != nil {
				seeds = append(seeds, with(`"`+name+`":`+string(part))+"\x00Hello, wörld <s> 12!")
			}
		}
	}
	slices.Sort(seeds) // maps have no order
	for _, file := range tiny {
		seeds = append(seeds, file+"\x00a b ab <t>")
	}
	testfuzz.Run(f, seeds, 2000, func(t testing.TB, input []byte) bool {
		file, rest, _ := bytes.Cut(input, []byte{0})
		text := string(rest)
		if len(file) > 1<<14 || len(text) > 1<<12 {
			return false
		}
		start := time.Now()
		tok, err := Parse(file)
		if err != nil {
			oneLine(t, err)
			return false
		}
		ids, err := tok.EncodeWithSpecial(text)
		if err != nil {
			oneLine(t, err)
			return false
		}
		if again, err := tok.EncodeWithSpecial(text); err != nil || !slices.Equal(again, ids) {
			t.Errorf("%v and then %v, %v", ids, again, err)
		}
		if whole := decoded(t, tok, ids, true); !utf8.ValidString(whole) {
			t.Errorf("%q is not valid", whole)
		}
		if spent := time.Since(start); spent > 4*maxMatch {
			t.Errorf("took %v", spent)
		}
		return true
	})
}

// Any text and any ids: the same text from a stream, all of it valid.
func FuzzText(f *testing.F) {
	var all []*Tokenizer
	for _, kind := range []string{"gpt2", "o200k", "llama2", "mistral", "clip", "words", "t5", "albert", "bert-uncased"} {
		all = append(all, open(f, kind))
	}
	testfuzz.Run(f, awkward(f)[:150], 100, func(t testing.TB, input []byte) bool {
		text := string(input)
		for _, tok := range all {
			ids, err := tok.EncodeWithSpecial(text)
			if err != nil {
				t.Fatal(err)
			}
			for i := range min(len(text), 40) { // and what no text gives
				ids = append(ids, int64(text[i])*7%int64(tok.Size()+2))
			}
			if whole := decoded(t, tok, ids, true); !utf8.ValidString(whole) {
				t.Errorf("%q is not valid", whole)
			}
		}
		return true
	})
}

// FuzzRegex: an expression, and behind a zero byte a text. The expression is translated to one that
// compiles, or refused. It cuts the text into parts that are the text.
func FuzzRegex(f *testing.F) {
	var seeds []string
	for _, source := range []string{gpt2Pattern, `[^\W\d&&[a-z]]{2,}?|(?i:x)\b`, `[[:alpha:]\p{^Han}]++(?<n>a)(?m).`, `^\x{41}$|\u4f60{,3}`, "[[:alpha:]\\\n{^n}]+"} {
		seeds = append(seeds, source+"\x00Hello, wörld 12!")
	}
	testfuzz.Run(f, seeds, 1000, func(t testing.TB, input []byte) bool {
		source, text, _ := strings.Cut(string(input), "\x00")
		if len(source) > 200 || len(text) > 60 || !utf8.ValidString(source) {
			return false
		}
		p, err := newRegex(source)
		if err != nil {
			oneLine(t, err)
			return false
		}
		p.re.MatchTimeout = time.Second
		at := 0
		text = validUTF8(text)
		spans, err := p.find(text, newWork(context.Background(), len(text)))
		if err != nil {
			oneLine(t, err)
			return false
		}
		for _, s := range spans {
			if s.start != at || s.end < s.start {
				t.Fatalf("%q on %q: %v", source, text, spans)
			}
			at = s.end
		}
		if at != len(text) {
			t.Fatalf("%q on %q ends at %d", source, text, at)
		}
		return true
	})
}

func oneLine(t testing.TB, err error) {
	t.Helper()
	if text := err.Error(); text == "" || strings.Contains(text, "\n") {
		t.Errorf("the error is not one line: %q", text)
	}
}
