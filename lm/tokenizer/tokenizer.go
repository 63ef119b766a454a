package tokenizer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
)

// Tokenizer turns texts into the ids of tokens and back. Several goroutines can
// use one at the same time: nothing in it changes.
type Tokenizer struct {
	normalizer   normalizer   // nil if there is none
	preTokenizer preTokenizer // nil if there is none
	model        model
	vocabulary   *vocabulary
	added        *added
	frame        frame
	decoders     []decoder
	size         int
	floor        floor
}

// Open reads tokenizer.json in a folder, where it is no link out of it, or the file itself. The error wraps
// fs.ErrNotExist where there is none.
func Open(path string) (*Tokenizer, error) {
	read := configfile.Read
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path, read = filepath.Join(path, "tokenizer.json"), configfile.ReadBeside
	}
	b, err := read(path, configfile.Text)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no tokenizer %s: copy the model's tokenizer.json there (%w)", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("read the tokenizer: %w", err)
	}
	t, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("read the tokenizer %s: %w", path, err)
	}
	return t, nil
}

// Parse reads the contents of a tokenizer.json.
func Parse(json []byte) (*Tokenizer, error) {
	f, err := readFile(json)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{}
	m, err := readModel(f.Model)
	if err != nil {
		return nil, err
	}
	t.model, t.vocabulary = m.model, m.vocabulary
	if !absent(f.Normalizer) {
		if t.normalizer, err = readNormalizer(f.Normalizer, outermost()); err != nil {
			return nil, err
		}
	}
	if !absent(f.PreTokenizer) {
		if t.preTokenizer, err = readPreTokenizer(f.PreTokenizer, outermost()); err != nil {
			return nil, err
		}
	}
	if !absent(f.PostProcessor) {
		if t.frame, err = readPostProcessor(f.PostProcessor, outermost()); err != nil {
			return nil, err
		}
	}
	t.decoders = []decoder{decoderFunc(spaced)}
	if !absent(f.Decoder) {
		if t.decoders, err = readDecoder(f.Decoder, outermost()); err != nil {
			return nil, err
		}
	}
	if t.added, err = newAdded(f.AddedTokens, t.vocabulary, t.normalizer); err != nil {
		return nil, err
	}
	for id := range t.vocabulary.tokens {
		t.size = max(t.size, int(id)+1)
	}
	for id := range t.added.tokens {
		t.size = max(t.size, int(id)+1)
	}
	t.floor = newFloor(f, t.model, t.vocabulary, t.added)
	return t, nil
}

// maxText is the longest text that is encoded at once, in bytes.
const maxText = 1 << 28

// Encode gives a text's ids. Added tokens in it, such as <|im_start|>, are
// recognised. No tokens are put around it. Bytes that are not UTF-8 are read as
// U+FFFD. Text without a token, not even an unknown token, is left out, as
// Hugging Face's library does.
func (t *Tokenizer) Encode(text string) ([]int64, error) {
	return t.EncodeWith(context.Background(), text, Options{})
}

// Options say how EncodeWith reads a text. The zero value is Encode.
type Options struct {
	Guarded []Span // parts that are from users, as EncodeGuarded has them
	Special bool   // adds what EncodeWithSpecial adds
	Most    int    // tokens; 0 is any number
}

// LengthError is that of a text with more than Options.Most tokens, as its number of bytes shows before anything is done with it.
type LengthError struct {
	Least int // tokens that the text has at least
	Most  int
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("the text has at least %d tokens, and may have %d", e.Least, e.Most)
}

// EncodeWith is Encode with options. It ends soon after the context ends, with the context's error. A text that is longer than the options
// allow is encoded if its number of bytes does not show that.
func (t *Tokenizer) EncodeWith(ctx context.Context, text string, o Options) ([]int64, error) {
	if err := check(text, o.Guarded); err != nil {
		return nil, err
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("the text has %d MiB, and at most %d are encoded at once; split it", len(text)>>20, maxText>>20)
	}
	text = validUTF8(text)
	if least := t.floor.least(text); o.Most > 0 && least > o.Most {
		return nil, &LengthError{least, o.Most}
	}
	w := newWork(ctx, len(text))
	defer w.end()
	ids, err := t.encode(text, o.Guarded, w)
	if err == nil && o.Special {
		ids = t.frame.around(ids)
	}
	return ids, err
}

func (t *Tokenizer) encode(text string, guarded []Span, w *work) ([]int64, error) {
	ids := []int64{}
	s := &scratch{words: map[string][]int64{}, work: w}
	if len(guarded) > 0 {
		s.avoid = t.forbidden
	}
	for _, part := range t.added.plain.find(text, guarded) {
		if part.id >= 0 {
			ids = append(ids, part.id)
			continue
		}
		p := newPiece(text[part.start:part.end])
		if part.start > 0 {
			p.lead = 0
		}
		first := len(ids)
		var err error
		if ids, err = t.encodePart(ids, p, s); err != nil {
			return nil, err
		}
		if err := t.stayedText(text, part, guarded, ids[first:], w); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// encodePart is for what stands between added tokens.
func (t *Tokenizer) encodePart(ids []int64, p piece, s *scratch) ([]int64, error) {
	var err error
	if t.normalizer != nil {
		if p, err = t.normalizer.normalize(p, s.work); err != nil {
			return nil, err
		}
		if err := s.work.fits(len(p.text)); err != nil {
			return nil, err
		}
		s.work.bytes -= len(p.text)
	}
	for _, part := range t.added.normalized.find(p.text, nil) {
		if part.id >= 0 {
			ids = append(ids, part.id)
			continue
		}
		pieces := p.cut(nil, []span{{start: part.start, end: part.end}})
		if t.preTokenizer != nil {
			if pieces, err = t.preTokenizer.split(nil, pieces[0], s.work); err != nil {
				return nil, err
			}
		}
		for _, word := range pieces {
			if err := s.work.look(); err != nil {
				return nil, err
			}
			if ids, err = t.model.encode(ids, word.text, s); err != nil {
				return nil, err
			}
		}
	}
	return ids, nil
}

// EncodeWithSpecial is Encode, and adds the special tokens of the file's
// post-processor, such as one for the beginning.
func (t *Tokenizer) EncodeWithSpecial(text string) ([]int64, error) {
	return t.EncodeWith(context.Background(), text, Options{Special: true})
}

// Decode gives the text of ids. Special tokens are left out unless keepSpecial;
// ids that have no token are left out.
func (t *Tokenizer) Decode(ids []int64, keepSpecial bool) string {
	var out output
	s := chain(t.decoders, &out, false)
	for _, id := range ids {
		if token, ok := t.decoded(id, keepSpecial); ok {
			s.write(token)
			s.end()
		}
	}
	s.close()
	return out.take()
}

// decoded is what the decoders get for an id.
func (t *Tokenizer) decoded(id int64, keepSpecial bool) (string, bool) {
	token, ok := t.added.decoded[id]
	if !ok {
		token, ok = t.Token(id)
	}
	return token, ok && (keepSpecial || !t.added.special[token])
}

// ID is the id of a token as the file writes it; special ones are tokens too.
func (t *Tokenizer) ID(token string) (id int64, ok bool) {
	if id, ok = t.added.ids[token]; !ok {
		id, ok = t.vocabulary.ids[token]
	}
	return id, ok
}

// Token is the token of an id as the file writes it, which can differ from its
// text: Ġthe stands for " the".
func (t *Tokenizer) Token(id int64) (token string, ok bool) {
	if a, ok := t.added.tokens[id]; ok {
		return a.Content, true
	}
	token, ok = t.vocabulary.tokens[id]
	return token, ok
}

// IsSpecial reports whether Decode leaves the token out.
func (t *Tokenizer) IsSpecial(id int64) bool { return t.added.tokens[id].Special }

// Size is one more than the largest id.
func (t *Tokenizer) Size() int { return t.size }

// Stream decodes ids as they come.
func (t *Tokenizer) Stream(keepSpecial bool) *Stream {
	return &Stream{tokenizer: t, keepSpecial: keepSpecial}
}

// Stream makes text of ids that come one by one. What Add and Flush return is
// valid UTF-8 and, put together, what Decode gives. A Stream is for one
// goroutine.
type Stream struct {
	tokenizer   *Tokenizer
	keepSpecial bool
	stage       stage // nil before the first id
	out         output
}

// Add takes the next id and returns what can be shown now. That can be nothing: a
// token may hold a part of a letter.
func (s *Stream) Add(id int64) string {
	s.begin()
	if token, ok := s.tokenizer.decoded(id, s.keepSpecial); ok {
		s.stage.write(token)
		s.stage.end()
	}
	return s.out.take()
}

// Flush ends the text and returns what is left of it. The next id begins another.
func (s *Stream) Flush() string {
	s.begin()
	s.stage.close()
	s.stage = nil
	return s.out.take()
}

func (s *Stream) begin() {
	if s.stage == nil {
		s.stage = chain(s.tokenizer.decoders, &s.out, true)
	}
}
