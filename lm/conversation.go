package lm

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/lm/chat"
	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
)

// Conversation is a talk with a model. Its messages are rendered as a whole each time, by the model's own chat
// template, and only what differs from what its cache holds is computed: messages may be added, changed and
// taken back.
//
//	talk, err := model.NewConversation()
//	talk.Messages = append(talk.Messages, chat.Message{Role: "user", Content: "Why is the sky blue?"})
//	for token, err := range talk.Reply(ctx, lm.GenerateOptions{}) { … }
//
// It serves one caller at a time; a second one gets ErrBusy.
type Conversation struct {
	Messages []chat.Message
	Options  chat.Options // tools, documents and variables of the template

	model    *Model
	sequence *Sequence // nil where the model's rows hold the texts
	gate     gate

	// As long as the conversation's text begins with what was said, these are its tokens: another tokenization of
	// what was generated would be computed anew.
	said []piece
}

// piece is a part of a conversation's text: what was asked, and behind it what was generated.
type piece struct {
	text   string
	tokens []int64
}

// NewConversation begins a conversation. Close it to free its cache.
func (m *Model) NewConversation(messages ...chat.Message) (*Conversation, error) {
	if m.Chat == nil {
		return nil, ErrNoTemplate
	}
	c := &Conversation{Messages: messages, model: m, gate: gate{most: 1, free: func() error { return nil }}}
	if _, own := m.texts.(*pool); own {
		var err error
		if c.sequence, err = m.decoder.NewSequence(); err != nil {
			return nil, err
		}
		c.gate.free = c.sequence.Close
	}
	return c, nil
}

// Close frees the conversation's cache.
func (c *Conversation) Close() error {
	if c.sequence != nil {
		return errors.Join(c.sequence.Close(), c.gate.close())
	}
	return c.gate.close()
}

// Reply generates the assistant's answer to the messages. Behind its last token the answer is added to
// Messages. One that is broken off, by an error or by the caller, is not: Reply then answers the same messages
// again.
func (c *Conversation) Reply(ctx context.Context, o GenerateOptions) iter.Seq2[Token, error] {
	return func(yield func(Token, error) bool) {
		if err := c.reply(ctx, o, yield); err != nil {
			yield(Token{}, err)
		}
	}
}

func (c *Conversation) reply(ctx context.Context, o GenerateOptions, yield func(Token, error) bool) (err error) {
	if err := c.gate.enter(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.gate.leave()) }()
	said, asked, err := c.read(ctx)
	if err != nil {
		return err
	}
	var tokens []int64
	for _, p := range append(said, asked) {
		tokens = append(tokens, p.tokens...)
	}
	row, err := Row{Tokens: tokens}.complete()
	if err == nil {
		err = c.model.room(len(tokens))
	}
	if err != nil {
		return err
	}
	texts := c.model.texts
	if c.sequence != nil {
		texts = ownSequence{c.model.texts.(*pool), c.sequence}
	}
	var answer strings.Builder
	var chosen []int64
	return c.model.generate(ctx, texts, row, o, func(t Token, err error) bool {
		answer.WriteString(t.Text)
		chosen = append(chosen, t.ID)
		if t.Finish != "" {
			if c.ended(t) {
				chosen = chosen[:len(chosen)-1]
			}
			c.Messages = append(c.Messages, chat.Message{Role: "assistant", Content: answer.String()})
			c.said = append(said, c.answered(asked, tokens, chosen)...)
		}
		return yield(t, err)
	})
}

// ended reports whether the last token is one that ends a text, which its message does not have.
func (c *Conversation) ended(t Token) bool {
	return t.Finish == FinishStop && slices.Contains(c.model.Generation.End, t.ID)
}

// read gives what was said already of the conversation's text up to where the assistant speaks, and the rest. What was said counts only if
// a special token follows it: only there the tokens of the rest are what they are within the whole.
func (c *Conversation) read(ctx context.Context) (said []piece, rest piece, err error) {
	leave, err := c.model.read(ctx)
	if err != nil {
		return nil, piece{}, err
	}
	defer leave()
	options := c.Options
	options.AddGenerationPrompt = true
	text, err := c.model.Chat.RenderGuarded(c.Messages, options, c.model.Tokenizer.Specials())
	if err != nil {
		return nil, piece{}, err
	}
	at := 0
	for _, p := range c.said {
		if !strings.HasPrefix(text.Text[at:], p.text) {
			break
		}
		at += len(p.text)
		said = append(said, p)
	}
	for ; ; said = said[:len(said)-1] {
		rest.text = text.Text[at:]
		if rest.tokens, err = c.model.encode(ctx, rest.text, tokenizer.Options{Guarded: behind(text.Guarded, at)}); err != nil {
			return nil, piece{}, err
		}
		if len(said) == 0 || c.beginsSpecial(rest) {
			return said, rest, nil
		}
		at -= len(said[len(said)-1].text)
	}
}

func (c *Conversation) beginsSpecial(p piece) bool {
	if len(p.tokens) == 0 || !c.model.Tokenizer.IsSpecial(p.tokens[0]) {
		return false
	}
	name, _ := c.model.Tokenizer.Token(p.tokens[0])
	return strings.HasPrefix(p.text, name)
}

// answered is a question with what was generated behind it, nothing if their text cannot be known: a tokenizer
// may change the beginning of a text.
func (c *Conversation) answered(asked piece, prompt, chosen []int64) []piece {
	t := c.model.Tokenizer
	made, same := strings.CutPrefix(t.Decode(slices.Concat(prompt, chosen), true), t.Decode(prompt, true))
	if !same {
		return nil
	}
	return []piece{{asked.text + made, slices.Concat(asked.tokens, chosen)}}
}

// behind are the spans of a text from a place on, counted from there.
func behind(spans []chat.Span, at int) (list []chat.Span) {
	for _, s := range spans {
		if s.End > at {
			list = append(list, chat.Span{Start: max(s.Start, at) - at, End: s.End - at})
		}
	}
	return list
}

// ownSequence generates in a sequence that is not the pool's, by the pool's limits.
type ownSequence struct {
	*pool
	sequence *Sequence
}

func (o ownSequence) generate(ctx context.Context, row Row, choose chooseToken, yield func(Token) bool) error {
	if err := o.enter(ctx); err != nil {
		return err
	}
	if o.free != nil {
		defer func() { o.free <- struct{}{} }()
	}
	return o.count(ctx, o.sequence, row, choose, yield)
}
