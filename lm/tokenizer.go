package lm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"

	"github.com/rope-rewrite/rope-rewrite/internal/sidefile"
)

// Tokenizer turns texts into token ids and back. It reads Hugging Face's
// tokenizer.json of the byte-level BPE kind (GPT-2, SmolLM2 and their like).
type Tokenizer struct {
	bpe     *tiktoken.Tiktoken
	known   [256]bool // bytes that have a token
	special map[string]int64
	size    int
}

// gpt2Pattern cuts a text into words before merging; Radford et al. 2019,
// and what tokenizer.json means by ByteLevel with use_regex.
const gpt2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// tokenizerFile is the part of tokenizer.json that matters here.
type tokenizerFile struct {
	AddedTokens []struct {
		ID      int    `json:"id"`
		Content string `json:"content"`
	} `json:"added_tokens"`
	Normalizer *struct {
		Type        string            `json:"type"`
		Normalizers []json.RawMessage `json:"normalizers"`
	} `json:"normalizer"`
	PreTokenizer *struct {
		Type           string `json:"type"`
		AddPrefixSpace bool   `json:"add_prefix_space"`
		UseRegex       bool   `json:"use_regex"`
	} `json:"pre_tokenizer"`
	Model struct {
		Type   string         `json:"type"`
		Vocab  map[string]int `json:"vocab"`
		Merges []merge        `json:"merges"`
	} `json:"model"`
}

// merge is a pair of tokens, in the file a list of two or a text with a blank.
type merge string

func (m *merge) UnmarshalJSON(b []byte) error {
	var pair [2]string
	if json.Unmarshal(b, &pair) == nil {
		*m = merge(pair[0] + pair[1])
		return nil
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	var left, right string
	if _, err := fmt.Sscan(text, &left, &right); err != nil {
		return fmt.Errorf("merge %q: %w", text, err)
	}
	*m = merge(left + right)
	return nil
}

// OpenTokenizer reads tokenizer.json in a model's folder. The error wraps
// fs.ErrNotExist where there is none.
func OpenTokenizer(folder string) (*Tokenizer, error) {
	path := filepath.Join(folder, "tokenizer.json")
	b, err := sidefile.Read(path, sidefile.Text)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no tokenizer %s: copy the model's tokenizer.json there (%w)", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("read the tokenizer: %w", err)
	}
	var file tokenizerFile
	if err := json.Unmarshal(b, &file); err != nil {
		return nil, fmt.Errorf("read the tokenizer %s: %w", path, err)
	}
	if err := file.supported(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return file.tokenizer()
}

// supported refuses what this tokenizer would silently do otherwise.
func (f *tokenizerFile) supported() error {
	switch {
	case f.Model.Type != "BPE":
		return fmt.Errorf("a tokenizer of type %q is not supported, only byte-level BPE is", f.Model.Type)
	case f.PreTokenizer == nil || f.PreTokenizer.Type != "ByteLevel" || !f.PreTokenizer.UseRegex || f.PreTokenizer.AddPrefixSpace:
		return errors.New("its pre-tokenizer is not supported, only ByteLevel with GPT-2's pattern and no added blank is")
	case f.Normalizer != nil && (f.Normalizer.Type != "Sequence" || len(f.Normalizer.Normalizers) > 0):
		return fmt.Errorf("its normalizer %s is not supported", f.Normalizer.Type)
	}
	last := -1
	for _, m := range f.Model.Merges {
		id, ok := f.Model.Vocab[string(m)]
		if !ok || id <= last {
			return fmt.Errorf("its merges are not in the order of their ids (at %q), which is needed here", string(m))
		}
		last = id
	}
	return nil
}

func (f *tokenizerFile) tokenizer() (*Tokenizer, error) {
	t := &Tokenizer{special: map[string]int64{}}
	special := map[string]int{}
	for _, a := range f.AddedTokens {
		special[a.Content], t.special[a.Content] = a.ID, int64(a.ID)
	}
	for _, id := range f.Model.Vocab {
		t.size = max(t.size, id+1)
	}
	for _, id := range special {
		t.size = max(t.size, id+1)
	}
	letters := byteOfLetter()
	ranks := make(map[string]int, len(f.Model.Vocab))
	for token, id := range f.Model.Vocab {
		if _, ok := special[token]; ok {
			continue
		}
		text := make([]byte, 0, len(token))
		for _, letter := range token {
			b, ok := letters[letter]
			if !ok {
				return nil, fmt.Errorf("token %d (%q) is not byte-level", id, token)
			}
			text = append(text, b)
		}
		ranks[string(text)] = id
		if len(text) == 1 {
			t.known[text[0]] = true
		}
	}
	core, err := tiktoken.NewCoreBPE(ranks, special, gpt2Pattern)
	if err != nil {
		return nil, fmt.Errorf("build the tokenizer: %w", err)
	}
	all := map[string]any{}
	for content := range special {
		all[content] = true
	}
	t.bpe = tiktoken.NewTiktoken(core, &tiktoken.Encoding{Name: "tokenizer.json", PatStr: gpt2Pattern, MergeableRanks: ranks, SpecialTokens: special}, all)
	return t, nil
}

// byteOfLetter inverts GPT-2's writing of bytes as printable letters.
func byteOfLetter() map[rune]byte {
	letters := map[rune]byte{}
	next := rune(256)
	for b := range 256 {
		if b >= '!' && b <= '~' || b >= '¡' && b <= '¬' || b >= '®' && b <= 'ÿ' {
			letters[rune(b)] = byte(b)
			continue
		}
		letters[next] = byte(b)
		next++
	}
	return letters
}

// Encode gives a text's ids; special tokens in it are recognised.
func (t *Tokenizer) Encode(text string) ([]int64, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("the text is not valid UTF-8")
	}
	for i := range len(text) {
		if !t.known[text[i]] {
			return nil, fmt.Errorf("the tokenizer has no token for byte 0x%02x, number %d of the text", text[i], i)
		}
	}
	ids := []int64{}
	for _, id := range t.bpe.Encode(text, []string{"all"}, nil) {
		ids = append(ids, int64(id))
	}
	return ids, nil
}

// Special is the id of a special token such as <|im_end|>.
func (t *Tokenizer) Special(content string) (id int64, ok bool) {
	id, ok = t.special[content]
	return id, ok
}

// Size is one more than the largest id.
func (t *Tokenizer) Size() int { return t.size }

// Decode gives the bytes of a token, which may be part of a letter.
func (t *Tokenizer) Decode(id int64) []byte {
	return []byte(t.bpe.Decode([]int{int(id)}))
}

// Stream collects the bytes of tokens and hands out whole letters.
type Stream struct{ rest []byte }

// Add takes a token's bytes and returns what can be shown now.
func (s *Stream) Add(b []byte) string {
	s.rest = append(s.rest, b...)
	whole := len(s.rest)
	// At most the last three bytes can be the start of an unfinished letter.
	for back := 1; back < utf8.UTFMax && back <= len(s.rest); back++ {
		at := len(s.rest) - back
		if utf8.RuneStart(s.rest[at]) {
			if !utf8.FullRune(s.rest[at:]) {
				whole = at
			}
			break
		}
	}
	text := string(s.rest[:whole])
	s.rest = append(s.rest[:0], s.rest[whole:]...)
	return text
}

// Flush returns what is left, an unfinished letter.
func (s *Stream) Flush() string {
	text := string(s.rest)
	s.rest = nil
	return text
}
