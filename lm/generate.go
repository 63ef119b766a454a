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

// GenerateOptions says how a text is continued. The zero value follows the
// model's configuration.
type GenerateOptions struct {
	MaxTokens int             // the most tokens; 0 is max_new_tokens, or 256 where the configuration does not say
	Sample    *sample.Options // nil is the configuration's; &sample.Options{} is greedy
	Stop      []string        // texts that end the generation; they are not returned
	IgnoreEnd bool            // do not stop at end tokens

	// Mask may forbid tokens: it sets their logits to −∞, for a grammar. tokens are those of the answer so far.
	// With several rows it is called between the steps of all texts, so it should be quick.
	Mask func(tokens []int64, logits []float32)
}

// usualTokens is the most tokens of a text where nobody says.
const usualTokens = 256

// Finish says why a text ended.
type Finish string

// Why a text ended, in the words of OpenAI's interface.
const (
	FinishStop   Finish = "stop"   // an end token, or a stop text
	FinishLength Finish = "length" // MaxTokens, or the end of the context
)

// Token is one step of a generation.
type Token struct {
	ID      int64
	Text    string              // what can be shown now, valid UTF-8; may be empty, and may hold what earlier tokens held back
	LogProb float64             // of the token after those before it, by the model's own logits; 0 unless sample.Options.LogProbs or Top
	Top     []sample.Likelihood // the likeliest tokens in its place, the best first (sample.Options.Top)
	Finish  Finish              // of the last token, why the text ended; else empty
	Cached  int                 // of the first token, how many tokens of the prompt a cache held; else 0
}

// Generate continues an input token by token. The last token has Finish: an end token (without text), the token
// that completed a stop text, or the last one that there was room for. Otherwise an error is the last element:
// the context's own when it ends, ErrClosed, ErrQueueFull, a *ContextError, or what the model's call gave.
//
// Many goroutines may generate at the same time (Options.Rows). Each text begins with what a cache holds of
// it already, so that a prompt that several texts share is computed once.
func (m *Model) Generate(ctx context.Context, in Input, o GenerateOptions) iter.Seq2[Token, error] {
	return func(yield func(Token, error) bool) {
		row, err := m.row(ctx, in)
		if err == nil {
			err = m.generate(ctx, m.texts, row, o, yield)
		}
		if err != nil {
			yield(Token{}, err)
		}
	}
}

// GenerateIn is Generate in a sequence of the caller's, which then holds the input and all tokens but the last.
func (m *Model) GenerateIn(ctx context.Context, s *Sequence, in Input, o GenerateOptions) iter.Seq2[Token, error] {
	return func(yield func(Token, error) bool) {
		row, err := m.row(ctx, in)
		if err == nil {
			err = m.generate(ctx, alone{s}, row, o, yield)
		}
		if err != nil {
			yield(Token{}, err)
		}
	}
}

// alone is a generator of one text.
type alone struct{ *Sequence }

func (alone) load() Load   { return Load{} }
func (alone) close() error { return nil }

// row has an input's tokens, and refuses what is longer than the context.
func (m *Model) row(ctx context.Context, in Input) (Row, error) {
	tokens, err := m.Tokens(ctx, in)
	if err != nil {
		return Row{}, err
	}
	row, err := Row{Tokens: tokens, Documents: in.Row.Documents}.complete()
	if err != nil {
		return Row{}, err
	}
	if err := m.decoder.known(tokens); err != nil {
		return Row{}, err
	}
	return row, m.room(len(tokens))
}

func (m *Model) generate(ctx context.Context, texts generator, row Row, o GenerateOptions, yield func(Token, error) bool) error {
	a, err := m.newAnswer(row, o)
	if err != nil {
		return err
	}
	stopped := false
	err = texts.generate(ctx, row, func(logits []float32) (Token, error) {
		m.chosen.Add(1)
		return a.next(logits)
	}, func(t Token) bool {
		stopped = !yield(t, nil)
		return !stopped
	})
	if stopped {
		return nil // nobody listens any more
	}
	return err
}

// answer is a text that is being generated.
type answer struct {
	options GenerateOptions
	end     []int64
	sampler *sample.Sampler
	text    writing
	tokens  []int64 // of the prompt and the answer, for the repetition penalty
	prompt  int
	most    int // tokens of the answer
	scores  []float32
}

func (m *Model) newAnswer(row Row, o GenerateOptions) (*answer, error) {
	choose := m.Generation.Sample
	if o.Sample != nil {
		choose = *o.Sample
	}
	sampler, err := sample.New(choose)
	if err != nil {
		return nil, err
	}
	a := &answer{options: o, sampler: sampler, prompt: len(row.Tokens), most: o.MaxTokens}
	switch {
	case a.most < 0:
		return nil, fmt.Errorf("MaxTokens %d: expected a number above 0", a.most)
	case a.most == 0 && m.Generation.MaxTokens > 0:
		a.most = m.Generation.MaxTokens
	case a.most == 0:
		a.most = usualTokens
	}
	if n := m.ContextLength(); n > 0 {
		a.most = min(a.most, n-a.prompt+1) // the last token needs no room: nothing is computed behind it
	}
	if !o.IgnoreEnd {
		a.end = m.Generation.End
	}
	a.tokens = slices.Clip(slices.Clone(row.Tokens))
	a.text = writing{stream: m.Tokenizer.Stream(false), stop: o.Stop}
	return a, nil
}

// next chooses a token by the logits.
func (a *answer) next(logits []float32) (Token, error) {
	if a.options.Mask != nil {
		a.scores = append(a.scores[:0], logits...)
		a.options.Mask(a.tokens[a.prompt:], a.scores)
		logits = a.scores
	}
	choice, err := a.sampler.Next(logits, a.tokens)
	if err != nil {
		return Token{}, err
	}
	t := Token{ID: choice.Token, LogProb: choice.LogProb, Top: choice.Top}
	if slices.Contains(a.end, t.ID) {
		t.Text, t.Finish = a.text.end(), FinishStop
		return t, nil
	}
	a.tokens = append(a.tokens, t.ID)
	stopped := false
	if t.Text, stopped = a.text.add(t.ID); stopped {
		t.Finish = FinishStop
	} else if len(a.tokens)-a.prompt >= a.most {
		t.Text, t.Finish = t.Text+a.text.end(), FinishLength
	}
	return t, nil
}

// writing makes text of tokens. It holds back text that may be the beginning of a stop text.
type writing struct {
	stream *tokenizer.Stream
	stop   []string
	held   string
}

// add returns what can be shown after a token, and whether a stop text ended the text.
func (w *writing) add(token int64) (text string, stopped bool) {
	return w.show(w.stream.Add(token), false)
}

// end returns what was held back.
func (w *writing) end() string {
	text, _ := w.show(w.stream.Flush(), true)
	return text
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
