package tokenizer

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// model turns a piece of a text into ids.
type model interface {
	// encode appends the ids of a piece that is not empty.
	encode(ids []int64, text string, s *scratch) ([]int64, error)
	// unknownID is the id of what has no token, or -1.
	unknownID() int64
}

// scratch is what encoding one text needs again for every piece of it.
type scratch struct {
	work    *work
	words   map[string][]int64  // pieces that have been encoded already
	avoid   func(id int64) bool // tokens that must not be taken where there is a choice; may be nil
	symbols []symbol
	queue   mergeQueue
}

// vocabulary is the tokens of a model.
type vocabulary struct {
	ids    map[string]int64
	tokens map[int64]string
	size   int // tokens, of which some may have larger ids
}

func newVocabulary(ids map[string]uint32) (*vocabulary, error) {
	v := &vocabulary{ids: make(map[string]int64, len(ids)), tokens: make(map[int64]string, len(ids)), size: len(ids)}
	for token, id := range ids {
		if id > math.MaxInt32 {
			return nil, fmt.Errorf("its token %q has the id %d, which is too large", short.Name(token), id)
		}
		if other, ok := v.tokens[int64(id)]; ok {
			return nil, fmt.Errorf("its tokens %q and %q both have the id %d", short.Name(min(token, other)), short.Name(max(token, other)), id)
		}
		v.ids[token], v.tokens[int64(id)] = int64(id), token
	}
	return v, nil
}

// unknown is the token that stands for what has none. A file may name one that
// is not in its vocabulary, which matters to texts that need it only.
type unknown struct {
	named bool
	token string
	id    int64 // -1 if it is not in the vocabulary
}

func (v *vocabulary) unknown(token *string) unknown {
	if token == nil {
		return unknown{id: -1}
	}
	u := unknown{named: true, token: *token, id: -1}
	if id, ok := v.ids[*token]; ok {
		u.id = id
	}
	return u
}

func (u unknown) unknownID() int64 { return u.id }

// missing is the error for a text that cannot be written in tokens.
func (u unknown) missing(text string) error {
	if !u.named {
		return fmt.Errorf("the tokenizer has no token for %.40q and no unknown token", short.Name(text))
	}
	return fmt.Errorf("the tokenizer has no token for %.40q, and its unk_token %q is not in its vocabulary", short.Name(text), short.Name(u.token))
}

// bytes gives the tokens of bytes such as <0x0A>; ok is false if one has none.
func (v *vocabulary) bytes() (tokens [256]int64, ok [256]bool) {
	for b := range 256 {
		tokens[b], ok[b] = v.ids[fmt.Sprintf("<0x%02X>", b)]
	}
	return tokens, ok
}

// built is a model with its tokens.
type built struct {
	model model
	*vocabulary
}

func readModel(part json.RawMessage) (built, error) {
	name, err := typeOf(part)
	if err != nil {
		return built{}, fmt.Errorf("its model cannot be read: %w", err)
	}
	if name == "" {
		name = guessModel(part)
	}
	read, ok := map[string]func(json.RawMessage) (built, error){
		"BPE": readBPE, "Unigram": readUnigram, "WordPiece": readWordPiece, "WordLevel": readWordLevel,
	}[name]
	if !ok {
		return built{}, fmt.Errorf("its model %q is not known here", short.Name(name))
	}
	m, err := read(part)
	if err != nil {
		return built{}, fmt.Errorf("model %s: %w", short.Name(name), err)
	}
	return m, nil
}

// guessModel is for old files, whose models do not say what they are.
func guessModel(part json.RawMessage) string {
	var f map[string]json.RawMessage
	if json.Unmarshal(part, &f) != nil {
		return ""
	}
	switch {
	case f["merges"] != nil:
		return "BPE"
	case f["max_input_chars_per_word"] != nil:
		return "WordPiece"
	case f["unk_id"] != nil:
		return "Unigram"
	}
	return ""
}
