package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// bpe merges letters to tokens, pair by pair, in the order of a list (byte-pair
// encoding; Sennrich et al. 2016, arXiv:1508.07909).
type bpe struct {
	*vocabulary
	merges  map[pairKey]merged
	letters map[rune]int64 // tokens of one letter
	prefix  string         // of what does not begin a word
	suffix  string         // of what ends a word
	unknown
	fuseUnknown  bool
	fallback     bool // a letter without a token becomes those of its bytes
	byteTokens   [256]int64
	hasByte      [256]bool
	ignoreMerges bool
}

// pairKey is two ids next to one another.
type pairKey struct{ left, right int32 }

// merged is what a pair becomes; those of lower rank come first.
type merged struct{ rank, id int32 }

func readBPE(b json.RawMessage) (built, error) {
	var f struct {
		named
		Dropout      *float64          `json:"dropout"`
		UnkToken     *string           `json:"unk_token"`
		Prefix       string            `json:"continuing_subword_prefix"`
		Suffix       string            `json:"end_of_word_suffix"`
		FuseUnk      bool              `json:"fuse_unk"`
		ByteFallback bool              `json:"byte_fallback"`
		IgnoreMerges bool              `json:"ignore_merges"`
		Vocab        map[string]uint32 `json:"vocab"`
		Merges       json.RawMessage   `json:"merges"`
	}
	if err := strict(b, &f); err != nil {
		return built{}, err
	}
	if f.Dropout != nil && *f.Dropout != 0 {
		return built{}, fmt.Errorf("its dropout is %v, which makes ids random; set it to null", *f.Dropout)
	}
	if f.Vocab == nil || f.Merges == nil {
		return built{}, errors.New("it has no vocab or no merges")
	}
	v, err := newVocabulary(f.Vocab)
	if err != nil {
		return built{}, err
	}
	m := &bpe{vocabulary: v, prefix: f.Prefix, suffix: f.Suffix, unknown: v.unknown(f.UnkToken), fuseUnknown: f.FuseUnk, fallback: f.ByteFallback, ignoreMerges: f.IgnoreMerges}
	pairs, err := readMerges(f.Merges)
	if err != nil {
		return built{}, err
	}
	m.byteTokens, m.hasByte = v.bytes()
	m.letters = map[rune]int64{}
	for token, id := range v.ids {
		if r, n := utf8.DecodeRuneInString(token); n == len(token) && n > 0 {
			m.letters[r] = id
		}
	}
	return built{m, v}, m.addMerges(pairs)
}

// readMerges reads "a b" or ["a", "b"].
func readMerges(b json.RawMessage) ([][]string, error) {
	var pairs [][]string
	inner := bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(b), []byte("[")))
	if bytes.HasPrefix(inner, []byte("[")) {
		if err := json.Unmarshal(b, &pairs); err != nil {
			return nil, fmt.Errorf("its merges cannot be read: %w", err)
		}
	} else {
		var lines []string
		if err := json.Unmarshal(b, &lines); err != nil {
			return nil, fmt.Errorf("its merges cannot be read: %w", err)
		}
		for _, line := range lines {
			if !strings.HasPrefix(line, "#version") {
				pairs = append(pairs, strings.Split(line, " "))
			}
		}
	}
	for i, p := range pairs {
		if len(p) != 2 {
			return nil, fmt.Errorf("its merge number %d, %q, is not a pair", i, short.Names(p))
		}
	}
	return pairs, nil
}

func (m *bpe) addMerges(pairs [][]string) error {
	m.merges = make(map[pairKey]merged, len(pairs))
	for rank, p := range pairs {
		rest, ok := strings.CutPrefix(p[1], m.prefix)
		if !ok {
			return fmt.Errorf("its merge number %d, %q, lacks the continuing_subword_prefix %q", rank, short.Names(p), short.Name(m.prefix))
		}
		var ids [3]int64
		for i, token := range []string{p[0], p[1], p[0] + rest} {
			id, ok := m.ids[token]
			if !ok {
				return fmt.Errorf("its merge number %d needs the token %q, which is not in its vocabulary", rank, short.Name(token))
			}
			ids[i] = id
		}
		m.merges[pairKey{int32(ids[0]), int32(ids[1])}] = merged{int32(rank), int32(ids[2])}
	}
	return nil
}

// maxCachedWord is the longest piece, in bytes, that is looked up before it is
// merged: longer ones seldom come twice.
const maxCachedWord = 64

func (m *bpe) encode(ids []int64, text string, s *scratch) ([]int64, error) {
	if m.ignoreMerges {
		if id, ok := m.ids[text]; ok {
			return append(ids, id), nil
		}
	}
	if known, ok := s.words[text]; ok {
		return append(ids, known...), nil
	}
	start := len(ids)
	if err := m.letterSymbols(text, s); err != nil {
		return nil, err
	}
	m.merge(s)
	for _, symbol := range s.symbols {
		if !symbol.gone {
			ids = append(ids, int64(symbol.id))
		}
	}
	if len(text) <= maxCachedWord {
		s.words[text] = append([]int64(nil), ids[start:]...)
	}
	return ids, nil
}

// letterSymbols begins with a symbol for each letter.
func (m *bpe) letterSymbols(text string, s *scratch) error {
	s.symbols = s.symbols[:0]
	unknown := false // one is to come before the next known letter
	for at, r := range text {
		end := at + utf8.RuneLen(r)
		id, written, ok := m.letter(text, at, end, r)
		switch {
		case ok:
			if unknown {
				s.add(m.unknown.id)
				unknown = false
			}
			s.add(id)
		case m.fallback && m.haveBytes(written):
			// Bytes do not end a run of unknown letters, which comes behind them: so does
			// the library that models are trained with.
			for i := range len(written) {
				s.add(m.byteTokens[written[i]])
			}
		case m.unknown.id >= 0:
			if unknown && !m.fuseUnknown {
				s.add(m.unknown.id)
			}
			unknown = true
		case m.unknown.named:
			return m.unknown.missing(text[at:end])
		}
	}
	if unknown {
		s.add(m.unknown.id)
	}
	return nil
}

// letter finds the token of a letter, and how it is written in the vocabulary.
func (m *bpe) letter(text string, at, end int, r rune) (id int64, written string, ok bool) {
	written = text[at:end]
	if (m.prefix == "" || at == 0) && (m.suffix == "" || end < len(text)) {
		id, ok = m.letters[r]
		return id, written, ok
	}
	if at > 0 {
		written = m.prefix + written
	}
	if end == len(text) {
		written += m.suffix
	}
	id, ok = m.ids[written]
	return id, written, ok
}

func (m *bpe) haveBytes(text string) bool {
	for i := range len(text) {
		if !m.hasByte[text[i]] {
			return false
		}
	}
	return true
}
