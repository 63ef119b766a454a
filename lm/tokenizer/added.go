package tokenizer

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// addedToken is a token that is found in a text before the model sees it.
type addedToken struct {
	ID         int64  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // not inside of a word
	LStrip     bool   `json:"lstrip"`      // with the blanks before it
	RStrip     bool   `json:"rstrip"`      // with the blanks behind it
	Normalized bool   `json:"normalized"`  // looked for in the normalized text
	Special    bool   `json:"special"`     // left out when decoding
}

// added is the added tokens of a tokenizer.
type added struct {
	ids        map[string]int64
	tokens     map[int64]addedToken
	decoded    map[int64]string // how a decoder gets a token: as the normalizer writes it
	special    map[string]bool
	plain      *matcher
	normalized *matcher
	// specialNormalized says whether a special token is looked for in the normalized
	// text.
	specialNormalized bool
}

// maxToken bounds tokens, in bytes: looking for one takes that many steps a
// letter. Those of models have at most some 400.
const maxToken = 1024

// newAdded numbers the tokens: as the model's vocabulary does, and those that are
// not in it from its end on, in the order of the file. Hugging Face's library
// does not use the ids in the file either.
func newAdded(tokens []addedToken, v *vocabulary, n normalizer) (*added, error) {
	a := &added{ids: map[string]int64{}, tokens: map[int64]addedToken{}, decoded: map[int64]string{}, special: map[string]bool{}}
	next := int64(v.size)
	all := 0
	for _, t := range tokens {
		all += len(t.Content)
	}
	w := newWork(context.Background(), all)
	defer w.end()
	for _, t := range tokens {
		if t.Content == "" {
			continue
		}
		if len(t.Content) > maxToken {
			return nil, fmt.Errorf("its added token %.40q... has more than %d bytes", short.Name(t.Content), maxToken)
		}
		id, ok := a.ids[t.Content]
		if !ok {
			id, ok = v.ids[t.Content]
		}
		if !ok {
			id = next
			next++
		}
		if t.ID != id {
			return nil, fmt.Errorf("its added token %q has the id %d in the file, but Hugging Face's library gives it %d; put it into the vocabulary with the id that the model uses", short.Name(t.Content), t.ID, id)
		}
		a.ids[t.Content], a.tokens[id] = id, t
		if t.Special {
			a.special[t.Content] = true
		}
		if t.Normalized && n != nil {
			p, err := n.normalize(newPiece(t.Content), w)
			if err != nil {
				return nil, err
			}
			if len(p.text) > maxToken {
				return nil, fmt.Errorf("its added token %.40q has more than %d bytes when normalized", t.Content, maxToken)
			}
			a.decoded[id] = p.text
		}
	}
	return a, a.match()
}

func (a *added) match() error {
	a.plain, a.normalized = newMatcher(), newMatcher()
	for id, t := range a.tokens {
		m, text := a.plain, t.Content
		if t.Normalized {
			m = a.normalized
			a.specialNormalized = a.specialNormalized || t.Special
			if decoded, ok := a.decoded[id]; ok {
				text = decoded
			}
		}
		if err := m.add(text, id, t); err != nil {
			return err
		}
	}
	return nil
}

// matcher finds tokens in a text.
type matcher struct {
	trie   *trie
	tokens []matchable
	starts [256]bool // bytes that a token starts with
}

type matchable struct {
	addedToken
	id int64
}

func newMatcher() *matcher { return &matcher{trie: newTrie()} }

func (m *matcher) add(text string, id int64, t addedToken) error {
	if text == "" {
		return nil // nothing of it is left by the normalizer
	}
	if found, length := m.trie.longest(text); length == len(text) {
		other := m.tokens[found].Content
		return fmt.Errorf("its added tokens %q and %q are the same when normalized", short.Name(min(other, t.Content)), short.Name(max(other, t.Content)))
	}
	m.trie.add(text, int32(len(m.tokens)))
	m.tokens = append(m.tokens, matchable{t, id})
	m.starts[text[0]] = true
	return nil
}

// section is a part of a text: an added token, or what stands between two.
type section struct {
	start, end int
	id         int64 // -1 if it is no token
}

// find cuts a text at the tokens in it, at each place at the longest. Special tokens
// stay text where they overlap a guarded span.
func (m *matcher) find(text string, guarded []Span) []section {
	var out []section
	last := 0
	for at := 0; at < len(text); {
		if !m.starts[text[at]] {
			at++
			continue
		}
		found, length := m.longest(text, at, guarded)
		if length == 0 {
			at++
			continue
		}
		t, start, end := m.tokens[found], at, at+length
		at = end
		if t.SingleWord && (wordEnds(text[:start]) || wordStarts(text[end:])) {
			continue
		}
		if t.LStrip {
			start = max(last, len(strings.TrimRightFunc(text[:start], isWhitespace)))
		}
		if t.RStrip {
			end = len(text) - len(strings.TrimLeftFunc(text[end:], isWhitespace))
		}
		if last < start {
			out = append(out, section{last, start, -1})
		}
		out = append(out, section{start, end, t.id})
		last = end
	}
	if last < len(text) {
		out = append(out, section{last, len(text), -1})
	}
	return out
}

// longest finds the longest token at a place.
func (m *matcher) longest(text string, at int, guarded []Span) (found int32, length int) {
	if len(guarded) == 0 {
		return m.trie.longest(text[at:])
	}
	node, ok := int32(0), true
	for end := at; end < len(text); {
		if node, ok = m.trie.step(node, text[end]); !ok {
			break
		}
		end++
		if id := m.trie.id[node]; id >= 0 && !(m.tokens[id].Special && overlap(guarded, at, end)) {
			found, length = id, end-at
		}
	}
	return found, length
}

func wordEnds(text string) bool {
	r, n := utf8.DecodeLastRuneInString(text)
	return n > 0 && isWord(r)
}

func wordStarts(text string) bool {
	r, n := utf8.DecodeRuneInString(text)
	return n > 0 && isWord(r)
}
