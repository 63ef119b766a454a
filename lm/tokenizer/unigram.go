package tokenizer

import (
	"encoding/json"

	"fmt"
	"math"
	"unicode/utf8"
)

// unigram takes the tokens whose scores add up to most (Kudo 2018,
// arXiv:1804.10959).
type unigram struct {
	*vocabulary
	trie   *trie
	scores []float64
	unknown
	penalty    float64
	fallback   bool
	byteTokens [256]int64
	hasByte    [256]bool
}

// unknownPenalty is how much less than the worst token an unknown letter scores.
const unknownPenalty = 10

// scored is ["token", score].
type scored struct {
	token string
	score float64
}

func (s *scored) UnmarshalJSON(b []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(b, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("%.60q is not a token with its score", b)
	}
	var score json.Number
	if json.Unmarshal(pair[0], &s.token) != nil || json.Unmarshal(pair[1], &score) != nil {
		return fmt.Errorf("%.60q is not a token with its score", b)
	}
	s.score = parseScore(score.String())
	return nil
}

func readUnigram(b json.RawMessage) (built, error) {
	var f struct {
		named
		UnkID        *int64   `json:"unk_id"`
		ByteFallback bool     `json:"byte_fallback"`
		Vocab        []scored `json:"vocab"`
	}
	if err := strict(b, &f); err != nil {
		return built{}, err
	}
	v := &vocabulary{ids: make(map[string]int64, len(f.Vocab)), tokens: make(map[int64]string, len(f.Vocab)), size: len(f.Vocab)}
	m := &unigram{vocabulary: v, trie: newTrie(), unknown: unknown{id: -1}, fallback: f.ByteFallback, penalty: math.Inf(1)}
	for id, s := range f.Vocab {
		if err := tooLong(s.token); err != nil {
			return built{}, err
		}
		v.ids[s.token], v.tokens[int64(id)] = int64(id), s.token
		if s.token != "" {
			m.trie.add(s.token, int32(id))
		}
		m.scores = append(m.scores, s.score)
		m.penalty = min(m.penalty, s.score)
	}
	m.penalty -= unknownPenalty
	if f.UnkID != nil {
		if m.unknown.id = *f.UnkID; m.unknown.id < 0 || m.unknown.id >= int64(len(f.Vocab)) {
			return built{}, fmt.Errorf("its unk_id %d is not one of its %d tokens", m.unknown.id, len(f.Vocab))
		}
	}
	m.byteTokens, m.hasByte = v.bytes()
	return built{m, v}, nil
}

// ending is the best way to a place of a text: its last token.
type ending struct {
	score float64
	start int32 // -1 where no way is known yet
	id    int32
}

func (m *unigram) encode(ids []int64, text string, s *scratch) ([]int64, error) {
	if known, ok := s.words[text]; ok {
		return append(ids, known...), nil
	}
	ends, err := m.best(text, s.avoid)
	if err != nil {
		return nil, err
	}
	// From the end back: the tokens, of which neighbouring unknown ones are one.
	var parts []span
	for end := len(text); end > 0; end = int(ends[end].start) {
		unknown := int64(ends[end].id) == m.unknown.id
		start := int(ends[end].start)
		if n := len(parts); n > 0 && unknown && parts[n-1].match {
			parts[n-1].start = start
		} else {
			parts = append(parts, span{start, end, unknown})
		}
	}
	first := len(ids)
	for i := len(parts) - 1; i >= 0; i-- {
		if ids, err = m.appendToken(ids, text[parts[i].start:parts[i].end]); err != nil {
			return nil, err
		}
	}
	if len(text) <= maxCachedWord {
		s.words[text] = append([]int64(nil), ids[first:]...)
	}
	return ids, nil
}

// best finds for each place of a text the best way to it from the start.
func (m *unigram) best(text string, avoid func(int64) bool) ([]ending, error) {
	ends := make([]ending, len(text)+1)
	for i := range ends {
		ends[i].start = -1
	}
	reach := func(start, end int, id int64, score float64) {
		score += ends[start].score
		if e := &ends[end]; e.start < 0 || score > e.score {
			*e = ending{score, int32(start), int32(id)}
		}
	}
	for start := 0; start < len(text); {
		_, letter := utf8.DecodeRuneInString(text[start:])
		single := false
		node, ok := int32(0), true
		for end := start; end < len(text); {
			if node, ok = m.trie.step(node, text[end]); !ok {
				break
			}
			end++
			if id := m.trie.id[node]; id >= 0 && (avoid == nil || !avoid(int64(id))) {
				reach(start, end, int64(id), m.scores[id])
				single = single || end-start == letter
			}
		}
		if !single {
			if m.unknown.id < 0 {
				return nil, m.unknown.missing(text[start : start+letter])
			}
			reach(start, start+letter, m.unknown.id, m.penalty)
		}
		start += letter
	}
	return ends, nil
}

func (m *unigram) appendToken(ids []int64, token string) ([]int64, error) {
	if id, ok := m.ids[token]; ok {
		return append(ids, id), nil
	}
	all := m.fallback
	for i := 0; all && i < len(token); i++ {
		all = m.hasByte[token[i]]
	}
	if all {
		for i := range len(token) {
			ids = append(ids, m.byteTokens[token[i]])
		}
		return ids, nil
	}
	if m.unknown.id < 0 {
		return nil, m.unknown.missing(token)
	}
	return append(ids, m.unknown.id), nil
}
