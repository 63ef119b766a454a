package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// preTokenizer cuts a text into pieces that the model sees one by one. It
// appends the pieces of p to a list.
type preTokenizer interface {
	split(into []piece, p piece, w *work) ([]piece, error)
}

// splitFunc is a pre-tokenizer that cannot fail.
type splitFunc func(into []piece, p piece) []piece

func (f splitFunc) split(into []piece, p piece, _ *work) ([]piece, error) { return f(into, p), nil }

func readPreTokenizer(part json.RawMessage, at nesting) (preTokenizer, error) {
	return readPart("pre-tokenizer", part, map[string]reader[preTokenizer]{
		"BertPreTokenizer":   plainPreTokenizer(splitBert),
		"Whitespace":         plainPreTokenizer(splitWords),
		"WhitespaceSplit":    plainPreTokenizer(splitAt(isWhitespace, removed)),
		"ByteLevel":          readByteLevel,
		"CharDelimiterSplit": readCharDelimiter,
		"Digits":             readDigits,
		"FixedLength":        readFixedLength,
		"Metaspace":          readMetaspace,
		"Punctuation":        readPunctuation,
		"Split":              readSplit,
		"Sequence":           readPreTokenizers,
	}, at)
}

func plainPreTokenizer(p splitFunc) reader[preTokenizer] {
	return func(b json.RawMessage, _ nesting) (preTokenizer, error) {
		var f named
		return p, strict(b, &f)
	}
}

// splitAt cuts at each letter of a kind.
func splitAt(kind func(rune) bool, b behavior) splitFunc {
	return func(into []piece, p piece) []piece { return p.cut(into, b.apply(findRunes(p.text, kind))) }
}

type preTokenizers []preTokenizer

func readPreTokenizers(b json.RawMessage, at nesting) (preTokenizer, error) {
	var f struct {
		named
		PreTokenizers []json.RawMessage `json:"pretokenizers"`
	}
	if err := strict(b, &f); err != nil {
		return nil, err
	}
	all, err := readAll(f.PreTokenizers, at, readPreTokenizer)
	return preTokenizers(all), err
}

func (all preTokenizers) split(into []piece, p piece, w *work) ([]piece, error) {
	pieces := []piece{p}
	for _, pre := range all {
		var next []piece
		for _, p := range pieces {
			var err error
			if next, err = pre.split(next, p, w); err != nil {
				return nil, err
			}
		}
		bytes := 0
		for _, p := range next {
			bytes += len(p.text)
		}
		if err := w.fits(bytes); err != nil {
			return nil, err
		}
		pieces = next
	}
	return append(into, pieces...), nil
}

func splitBert(into []piece, p piece) []piece {
	for _, word := range splitAt(isWhitespace, removed)(nil, p) {
		into = splitAt(isPunctuation, isolated)(into, word)
	}
	return into
}

// splitWords keeps runs of \w and runs of what is neither that nor a blank.
func splitWords(into []piece, p piece) []piece {
	kind := func(r rune) int {
		switch {
		case isWord(r):
			return 1
		case isWhitespace(r):
			return 0
		}
		return 2
	}
	start, last := 0, 0
	for at, r := range p.text {
		k := kind(r)
		if k == last {
			continue
		}
		if last != 0 {
			into = p.cut(into, []span{{start: start, end: at}})
		}
		start, last = at, k
	}
	if last != 0 {
		into = p.cut(into, []span{{start: start, end: len(p.text)}})
	}
	return into
}

// gpt2Pattern cuts a text into words before merging; Radford et al. 2019.
const gpt2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

func readByteLevel(b json.RawMessage, _ nesting) (preTokenizer, error) {
	f := struct {
		named
		AddPrefixSpace bool `json:"add_prefix_space"`
		TrimOffsets    bool `json:"trim_offsets"`
		UseRegex       bool `json:"use_regex"`
	}{UseRegex: true}
	if err := strict(b, &f); err != nil {
		return nil, err
	}
	p := &byteLevel{letters: newByteLetters(), addPrefixSpace: f.AddPrefixSpace}
	if !f.UseRegex {
		return p, nil
	}
	var err error
	p.words, err = newRegex(gpt2Pattern)
	return p, err
}

// byteLevel writes the bytes of words as letters.
type byteLevel struct {
	letters        *byteLetters
	words          *pattern // nil where something else has cut the text
	addPrefixSpace bool
}

func (b *byteLevel) split(into []piece, p piece, w *work) ([]piece, error) {
	if b.addPrefixSpace && !strings.HasPrefix(p.text, " ") {
		p = p.prepend(" ")
	}
	if b.words == nil {
		return append(into, p.mapped(b.letters.write)), nil
	}
	spans, err := b.words.find(p.text, w)
	if err != nil {
		return nil, err
	}
	start := len(into)
	into = p.cut(into, spans)
	for i := start; i < len(into); i++ {
		into[i] = into[i].mapped(b.letters.write)
	}
	return into, nil
}

func readCharDelimiter(b json.RawMessage, _ nesting) (preTokenizer, error) {
	var f struct {
		named
		Delimiter letter `json:"delimiter"`
	}
	err := strict(b, &f)
	return splitAt(func(r rune) bool { return r == rune(f.Delimiter) }, removed), err
}

func readDigits(b json.RawMessage, _ nesting) (preTokenizer, error) {
	var f struct {
		named
		Individual bool `json:"individual_digits"`
	}
	err := strict(b, &f)
	if f.Individual {
		return splitAt(isNumeric, isolated), err
	}
	return splitAt(isNumeric, contiguous), err
}

func readFixedLength(b json.RawMessage, _ nesting) (preTokenizer, error) {
	f := struct {
		named
		Length int `json:"length"`
	}{Length: 5}
	if err := strict(b, &f); err != nil {
		return nil, err
	}
	if f.Length < 1 {
		return nil, fmt.Errorf("its length is %d, and must be at least 1", f.Length)
	}
	return splitFunc(func(into []piece, p piece) []piece {
		start, letters := 0, 0
		for at := range p.text {
			if letters == f.Length {
				into = p.cut(into, []span{{start: start, end: at}})
				start, letters = at, 0
			}
			letters++
		}
		return p.cut(into, []span{{start: start, end: len(p.text)}})
	}), nil
}

func readPunctuation(b json.RawMessage, _ nesting) (preTokenizer, error) {
	f := struct {
		named
		Behavior behavior `json:"behavior"`
	}{Behavior: isolated}
	err := strict(b, &f)
	return splitAt(isPunctuation, f.Behavior), err
}

// splitter is a Split of tokenizer.json.
type splitter struct {
	pattern  *pattern
	behavior behavior
	invert   bool
}

func readSplit(b json.RawMessage, _ nesting) (preTokenizer, error) {
	var f struct {
		named
		Pattern  patternFile `json:"pattern"`
		Behavior behavior    `json:"behavior"`
		Invert   bool        `json:"invert"`
	}
	if err := strict(b, &f); err != nil {
		return nil, err
	}
	if f.Behavior == "" {
		return nil, errors.New("it has no behavior")
	}
	p, err := f.Pattern.compile()
	return &splitter{p, f.Behavior, f.Invert}, err
}

func (s *splitter) split(into []piece, p piece, w *work) ([]piece, error) {
	spans, err := s.pattern.find(p.text, w)
	if err != nil {
		return nil, err
	}
	for i := range spans {
		spans[i].match = spans[i].match != s.invert
	}
	return p.cut(into, s.behavior.apply(spans)), nil
}
