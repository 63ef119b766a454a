package tokenizer

import (
	"encoding/json"
	"slices"
	"unicode"
	"unicode/utf8"
)

// floor says how few tokens a text can have, from its bytes alone: those that no part of the tokenizer leaves out, by the most that one
// token stands for. The parts that are known to leave out nothing are listed here. With any other there is no floor, which is 0 tokens.
type floor struct {
	kept    [256]bool // bytes that become a part of a token
	longest int       // bytes of a text that one token stands for, at most; 0 is no floor
}

// least is how many tokens a text has at least. The text is UTF-8.
func (f *floor) least(text string) int {
	if f.longest == 0 {
		return 0
	}
	kept := 0
	for i := range len(text) {
		if f.kept[text[i]] {
			kept++
		}
	}
	return (kept + f.longest - 1) / f.longest
}

// shape is what a floor needs to know of a normalizer or pre-tokenizer that was read.
type shape struct {
	Type          string      `json:"type"`
	Normalizers   []shape     `json:"normalizers"`
	PreTokenizers []shape     `json:"pretokenizers"`
	Behavior      behavior    `json:"behavior"`
	Pattern       patternFile `json:"pattern"`
	Content       string      `json:"content"`
}

// newFloor is of parts that were read without an error.
func newFloor(f *file, m model, v *vocabulary, a *added) (out floor) {
	before, cuts := readShape(f.Normalizer), readShape(f.PreTokenizer)
	shrink := before.shrink()
	levels, keeps := cuts.byteLevels()
	b, isBPE := m.(*bpe)
	if shrink == 0 || !keeps || levels > 1 || !isBPE || b.prefix != "" || b.suffix != "" {
		return floor{}
	}
	size := func(token string) int { return len(token) }
	all := true      // of the bytes that UTF-8 has
	if levels == 1 { // one letter stands for a byte
		size = utf8.RuneCountInString
		letters := newByteLetters()
		for i := range out.kept {
			letter, _ := utf8.DecodeRuneInString(letters.write(string([]byte{byte(i)})))
			_, out.kept[i] = b.letters[letter]
			all = all && (out.kept[i] || i == 0xC0 || i == 0xC1 || i > 0xF4)
		}
	} else {
		for i := range out.kept {
			out.kept[i] = true
		}
		all = b.fallback && b.hasByte == out.kept
	}
	if !all && (levels == 0 || before.Type != "" || cuts.has("Metaspace")) {
		return floor{} // letters that others are made into may have no token
	}
	for token := range v.ids {
		out.longest = max(out.longest, size(token))
	}
	blanks := true
	for id, t := range a.tokens {
		out.longest = max(out.longest, len(t.Content), len(a.decoded[id]))
		if t.LStrip || t.RStrip {
			if t.Normalized && before.Type != "" {
				return floor{} // blanks may be what the normalizer makes of other letters
			}
			blanks = false
		}
	}
	for r := rune(0); !blanks && r <= unicode.MaxRune; r++ { // any number of them belongs to a token beside them
		if isWhitespace(r) {
			for _, b := range []byte(string(r)) {
				out.kept[b] = false
			}
		}
	}
	out.longest *= shrink
	return out
}

// readShape reads a part again; one that is absent has no type.
func readShape(raw json.RawMessage) (p shape) {
	if !absent(raw) && json.Unmarshal(raw, &p) != nil {
		p.Type = "of another form"
	}
	if p.Type == "Sequence" && len(p.Normalizers)+len(p.PreTokenizers) == 0 {
		p.Type = ""
	}
	return p
}

func (p shape) has(kind string) bool {
	return p.Type == kind || slices.ContainsFunc(p.PreTokenizers, func(inner shape) bool { return inner.has(kind) })
}

// shrink is how many bytes may become one, at most; 0 where that is not known.
func (p shape) shrink() int {
	switch p.Type {
	case "", "Prepend":
		return 1
	case "NFC":
		return 4 // TestNFCShrinks looks at all letters
	case "Replace":
		if p.Pattern.String == nil || *p.Pattern.String == "" || p.Content == "" {
			return 0
		}
		return max(1, (len(*p.Pattern.String)+len(p.Content)-1)/len(p.Content))
	case "Sequence":
		all := 1
		for _, inner := range p.Normalizers {
			if all *= inner.shrink(); all > maxText {
				return 0
			}
		}
		return all
	}
	return 0
}

// byteLevels is how often a pre-tokenizer writes bytes as letters. It keeps the text if it leaves nothing out.
func (p shape) byteLevels() (levels int, keeps bool) {
	switch p.Type {
	case "ByteLevel":
		return 1, true
	case "", "Digits", "Metaspace", "FixedLength":
		return 0, true
	case "Punctuation", "Split":
		return 0, p.Behavior != removed
	case "Sequence":
		for _, inner := range p.PreTokenizers {
			n, ok := inner.byteLevels()
			if !ok {
				return 0, false
			}
			levels += n
		}
		return levels, true
	}
	return 0, false
}
