package tokenizer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// Span is a part of a text, in bytes.
type Span = struct{ Start, End int }

// Specials are the texts of the special tokens, which chat.Template.RenderGuarded
// needs to know.
func (t *Tokenizer) Specials() []string { return slices.Sorted(maps.Keys(t.added.special)) }

// EncodeGuarded is Encode for a text with parts that are from users: a special token
// that holds a byte of a guarded span stays text. Spans are in ascending order.
//
// A few tokenizers cannot do that for all tokens: those that look for a special token
// in the normalized text, and those whose model has one as a word. Then there is an
// error that names the token.
func (t *Tokenizer) EncodeGuarded(text string, guarded []Span) ([]int64, error) {
	return t.EncodeWith(context.Background(), text, Options{Guarded: guarded})
}

// check refuses spans that are none of a text.
func check(text string, guarded []Span) error {
	if len(guarded) > 0 && !utf8.ValidString(text) {
		return errors.New("the text is not UTF-8, so its spans have no meaning")
	}
	end := 0
	for _, s := range guarded {
		if s.Start < end || s.End <= s.Start || s.End > len(text) || inLetter(text, s.Start) || inLetter(text, s.End) {
			return fmt.Errorf("the span from %d to %d is none of the text of %d bytes, or not in order", s.Start, s.End, len(text))
		}
		end = s.End
	}
	return nil
}

func inLetter(text string, at int) bool { return at < len(text) && !utf8.RuneStart(text[at]) }

// overlap says whether a part of a text holds a byte of a span.
func overlap(spans []Span, start, end int) bool {
	i := sort.Search(len(spans), func(i int) bool { return spans[i].End > start })
	return i < len(spans) && spans[i].Start < end
}

// forbidden tells the special tokens. The one that stands for what is unknown says
// nothing to a model.
func (t *Tokenizer) forbidden(id int64) bool { return t.IsSpecial(id) && id != t.model.unknownID() }

// stayedText checks that no guarded byte of a part became a special token, where
// find could not see to it.
func (t *Tokenizer) stayedText(text string, part section, guarded []Span, ids []int64, w *work) error {
	if !overlap(guarded, part.start, part.end) {
		return nil
	}
	var want []int64 // special tokens that are there without the guarded letters
	if t.added.specialNormalized {
		p := newPiece(masked(text, part, guarded))
		var err error
		if t.normalizer != nil {
			if p, err = t.normalizer.normalize(p, w); err != nil {
				return err
			}
		}
		for _, s := range t.added.normalized.find(p.text, nil) {
			if s.id >= 0 && t.forbidden(s.id) {
				want = append(want, s.id)
			}
		}
	}
	for _, id := range ids {
		switch {
		case !t.forbidden(id):
		case len(want) > 0 && want[0] == id:
			want = want[1:]
		default:
			token, _ := t.Token(id)
			return fmt.Errorf("a guarded part of the text holds the special token %q, and this tokenizer cannot keep that a text: take it out of the text", short.Name(token))
		}
	}
	return nil
}

// mask is a letter that normalizers keep and tokens do not have.
const mask = "☃"

// masked is a part of a text with a mask in the place of each guarded letter.
func masked(text string, part section, guarded []Span) string {
	var b strings.Builder
	for at, r := range text[part.start:part.end] {
		if at += part.start; overlap(guarded, at, at+1) {
			b.WriteString(mask)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
