package tokenizer

import (
	"encoding/json"
	"unicode/utf8"
)

// wordPiece takes the longest token that a word begins with, and so on (BERT;
// Devlin et al. 2019).
type wordPiece struct {
	*vocabulary
	starts, continuations *trie
	unknown
	maxLetters int // words of more are unknown
}

func readWordPiece(b json.RawMessage) (built, error) {
	f := struct {
		named
		UnkToken   string            `json:"unk_token"`
		Prefix     string            `json:"continuing_subword_prefix"`
		MaxLetters int               `json:"max_input_chars_per_word"`
		Vocab      map[string]uint32 `json:"vocab"`
	}{UnkToken: "[UNK]", Prefix: "##", MaxLetters: 100}
	if err := strict(b, &f); err != nil {
		return built{}, err
	}
	v, err := newVocabulary(f.Vocab)
	if err != nil {
		return built{}, err
	}
	m := &wordPiece{vocabulary: v, starts: newTrie(), continuations: newTrie(), unknown: v.unknown(&f.UnkToken), maxLetters: f.MaxLetters}
	for token, id := range v.ids {
		if err := tooLong(token); err != nil {
			return built{}, err
		}
		m.starts.add(token, int32(id))
		if len(token) > len(f.Prefix) && token[:len(f.Prefix)] == f.Prefix {
			m.continuations.add(token[len(f.Prefix):], int32(id))
		}
	}
	return built{m, v}, nil
}

func (m *wordPiece) encode(ids []int64, text string, _ *scratch) ([]int64, error) {
	if utf8.RuneCountInString(text) > m.maxLetters {
		return m.appendUnknown(ids, text)
	}
	first := len(ids)
	pieces := m.starts
	for rest := text; rest != ""; {
		id, length := pieces.longest(rest)
		if length == 0 {
			return m.appendUnknown(ids[:first], text)
		}
		ids = append(ids, int64(id))
		rest, pieces = rest[length:], m.continuations
	}
	return ids, nil
}

func (m *wordPiece) appendUnknown(ids []int64, text string) ([]int64, error) {
	if m.unknown.id < 0 {
		return nil, m.unknown.missing(text)
	}
	return append(ids, m.unknown.id), nil
}

// wordLevel has whole words only.
type wordLevel struct {
	*vocabulary
	unknown
}

func readWordLevel(b json.RawMessage) (built, error) {
	var f struct {
		named
		UnkToken string            `json:"unk_token"`
		Vocab    map[string]uint32 `json:"vocab"`
	}
	if err := strict(b, &f); err != nil {
		return built{}, err
	}
	v, err := newVocabulary(f.Vocab)
	if err != nil {
		return built{}, err
	}
	return built{&wordLevel{v, v.unknown(&f.UnkToken)}, v}, nil
}

func (m *wordLevel) encode(ids []int64, text string, _ *scratch) ([]int64, error) {
	id, ok := m.ids[text]
	if !ok {
		id = m.unknown.id
	}
	if id < 0 {
		return nil, m.unknown.missing(text)
	}
	return append(ids, id), nil
}
