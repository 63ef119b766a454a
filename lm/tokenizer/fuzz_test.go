package tokenizer

import (
	"encoding/json"
	"testing"
	"time"
	"unicode/utf8"
)

// Whatever a file says, it is read or refused, and what is read encodes and
// decodes without a panic and in time.
func FuzzParse(f *testing.F) {
	for _, p := range parts(f) {
		for name, part := range map[string]json.RawMessage{"normalizer": p.Normalizer, "pre_tokenizer": p.PreTokenizer, "decoder": p.Decoder} {
			if part != nil {
				f.Add([]byte(with(`"`+name+`":`+string(part))), "Hello, wörld <s> 12!")
			}
		}
	}
	for _, file := range tiny {
		f.Add([]byte(file), "a b ab <t>")
	}
	f.Fuzz(func(t *testing.T, file []byte, text string) {
		if len(file) > 1<<14 || len(text) > 1<<12 {
			return
		}
		start := time.Now()
		tok, err := Parse(file)
		if err != nil {
			return
		}
		ids, err := tok.EncodeWithSpecial(text)
		if err != nil {
			return
		}
		_ = tok.Decode(ids, true)
		stream := tok.Stream(false)
		for _, id := range ids {
			stream.Add(id)
		}
		stream.Flush()
		if spent := time.Since(start); spent > 2*maxRegexTime {
			t.Errorf("took %v", spent)
		}
	})
}

// Any text and any ids: the same text from a stream, all of it valid.
func FuzzText(f *testing.F) {
	var all []*Tokenizer
	for _, kind := range []string{"gpt2", "o200k", "llama2", "mistral", "clip", "words", "t5", "albert", "bert-uncased"} {
		all = append(all, open(f, kind))
	}
	for _, text := range awkward(f)[:150] {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
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
	})
}

// Any regular expression is translated to one that compiles, or refused.
func FuzzRegex(f *testing.F) {
	for _, source := range []string{gpt2Pattern, `[^\W\d&&[a-z]]{2,}?|(?i:x)\b`, `[[:alpha:]\p{^Han}]++(?<n>a)(?m).`, `^\x{41}$|\u4f60{,3}`} {
		f.Add(source, "Hello, wörld 12!")
	}
	f.Fuzz(func(t *testing.T, source, text string) {
		if len(source) > 60 || len(text) > 60 || !utf8.ValidString(source) {
			return
		}
		p, err := newRegex(source)
		if err != nil {
			return
		}
		p.re.MatchTimeout = time.Second
		at := 0
		spans, _ := p.find(validUTF8(text))
		for _, s := range spans {
			if s.start != at || s.end < s.start {
				t.Fatalf("%q on %q: %v", source, text, spans)
			}
			at = s.end
		}
	})
}
