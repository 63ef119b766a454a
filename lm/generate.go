package lm

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/lm/sample"
	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
)

// GenerateOptions says how a text is continued. The zero value follows the model's
// generation_config.json.
type GenerateOptions struct {
	MaxTokens int             // the most tokens; 0 is max_new_tokens, or 256 where the configuration does not say
	Sample    *sample.Options // nil is the configuration's; &sample.Options{} is greedy
	Stop      []string        // texts that end the generation; they are not returned
	IgnoreEnd bool            // do not stop at end tokens
	Continue  bool            // continue after the tokens in the cache (Begin, Restore, an earlier Generate) instead of resetting it
}

// usualTokens is the most tokens of a text where nobody says.
const usualTokens = 256

// Token is one step of a generation.
type Token struct {
	ID      int64
	Text    string  // what can be shown now, valid UTF-8; may be empty, and may hold what earlier tokens held back
	LogProb float64 // of the token after those before it, by the model's own logits; 0 unless sample.Options.LogProbs
}

// Generate continues an input token by token. The sequence ends after an end token (which
// is not returned), a stop text or MaxTokens tokens; an error is the last element. When the
// context ends, the next element is its error.
//
// The cache then holds the input and all tokens but the last.
func (m *Model) Generate(ctx context.Context, in Input, o GenerateOptions) iter.Seq2[Token, error] {
	return func(yield func(Token, error) bool) {
		if err := m.generate(ctx, in, o, yield); err != nil {
			yield(Token{}, err)
		}
	}
}

func (m *Model) generate(ctx context.Context, in Input, o GenerateOptions, yield func(Token, error) bool) error {
	tokens, err := m.Tokens(in)
	if err != nil {
		return err
	}
	options := m.Generation.Sample
	if o.Sample != nil {
		options = *o.Sample
	}
	sampler, err := sample.New(options)
	if err != nil {
		return err
	}
	most := o.MaxTokens
	switch {
	case most < 0:
		return fmt.Errorf("MaxTokens %d: expected a number above 0", most)
	case most == 0 && m.Generation.MaxTokens > 0:
		most = m.Generation.MaxTokens
	case most == 0:
		most = usualTokens
	}
	if !o.Continue {
		if err := m.Reset(); err != nil {
			return err
		}
	}
	documents := in.documents(tokens)
	logits, err := m.PrefillPacked(ctx, documents, tokens)
	if err != nil {
		return err
	}
	document := documents[len(documents)-1] // of what is generated
	w := &writing{stream: m.Tokenizer.Stream(false), stop: o.Stop, yield: yield}
	for n := 1; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		choice, err := sampler.Next(logits.Last(), tokens)
		if err != nil {
			return err
		}
		if !o.IgnoreEnd && slices.Contains(m.Generation.End, choice.Token) {
			w.end(nil)
			return nil
		}
		t := Token{ID: choice.Token, LogProb: choice.LogProb}
		if n == most {
			w.end(&t)
			return nil
		}
		if !w.add(t) {
			return nil
		}
		tokens = append(tokens, t.ID)
		if logits, err = m.ForwardIn(document, []int64{t.ID}); err != nil {
			return err
		}
	}
}

// writing gives tokens out. It holds back text that may be the beginning of a stop text.
type writing struct {
	stream *tokenizer.Stream
	stop   []string
	yield  func(Token, error) bool
	held   string
}

// add gives out a token, and reports whether the text goes on.
func (w *writing) add(t Token) bool {
	text, stopped := w.show(w.stream.Add(t.ID), false)
	t.Text = text
	return w.yield(t, nil) && !stopped
}

// end gives out the last token, and what was held back. Without a token the held back text
// is an element by itself, with the ID -1.
func (w *writing) end(t *Token) {
	text := ""
	if t != nil {
		text = w.stream.Add(t.ID)
	}
	text, _ = w.show(text+w.stream.Flush(), true)
	switch {
	case t != nil:
		t.Text = text
		w.yield(*t, nil)
	case text != "":
		w.yield(Token{ID: -1, Text: text}, nil)
	}
}

// show returns what of the held and the new text can be given out, and whether a stop text
// stands behind it.
func (w *writing) show(text string, all bool) (shown string, stopped bool) {
	w.held += text
	first := -1
	for _, s := range w.stop {
		if at := strings.Index(w.held, s); s != "" && at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	if first >= 0 {
		shown, w.held = w.held[:first], ""
		return shown, true
	}
	keep := 0
	for _, s := range w.stop {
		for n := min(len(s)-1, len(w.held)); n > keep && !all; n-- {
			if strings.HasSuffix(w.held, s[:n]) {
				keep = n
			}
		}
	}
	shown, w.held = w.held[:len(w.held)-keep], w.held[len(w.held)-keep:]
	return shown, false
}
