package lm

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/lm/chat"
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

	// What was generated, with the text before it. As long as the conversation begins with that text, these are
	// its tokens: another tokenization of the same text would be computed anew.
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
	text, row, err := c.render()
	if err != nil {
		return err
	}
	var texts generator = c.model.texts
	if c.sequence != nil {
		texts = ownSequence{c.model.texts.(*pool), c.sequence}
	}
	var said strings.Builder
	var chosen []int64
	return c.model.generate(ctx, texts, row, o, func(t Token, err error) bool {
		said.WriteString(t.Text)
		chosen = append(chosen, t.ID)
		if t.Finish != "" {
			c.Messages = append(c.Messages, chat.Message{Role: "assistant", Content: said.String()})
			c.remember(text, row.Tokens, chosen, c.ended(t))
		}
		return yield(t, err)
	})
}

// ended reports whether the last token is one that ends a text, which its message does not have.
func (c *Conversation) ended(t Token) bool {
	return t.Finish == FinishStop && slices.Contains(c.model.Generation.End, t.ID)
}

// render is the conversation's text up to where the assistant speaks, and its tokens.
func (c *Conversation) render() (string, Row, error) {
	options := c.Options
	options.AddGenerationPrompt = true
	text, err := c.model.Chat.Render(c.Messages, options)
	if err != nil {
		return "", Row{}, err
	}
	tokens, err := c.tokenize(text)
	if err != nil {
		return "", Row{}, err
	}
	row, err := Row{Tokens: tokens}.complete()
	if err != nil {
		return "", Row{}, err
	}
	return text, row, c.model.room(len(tokens))
}

// tokenize takes the tokens that were generated for the part of the text that they made, if a special token
// follows it: only there the tokens of the rest are what they are within the whole.
func (c *Conversation) tokenize(text string) ([]int64, error) {
	t := c.model.Tokenizer
	if rest, same := strings.CutPrefix(text, c.text); same && c.text != "" {
		tokens, err := t.Encode(rest)
		if err != nil {
			return nil, err
		}
		if len(tokens) > 0 && t.IsSpecial(tokens[0]) {
			if name, _ := t.Token(tokens[0]); strings.HasPrefix(rest, name) {
				return slices.Concat(c.tokens, tokens), nil
			}
		}
	}
	return t.Encode(text)
}

// remember keeps the tokens of a text and of what was generated behind it.
func (c *Conversation) remember(text string, prompt, chosen []int64, ended bool) {
	if ended {
		chosen = chosen[:len(chosen)-1]
	}
	t := c.model.Tokenizer
	all := slices.Concat(prompt, chosen)
	made, same := strings.CutPrefix(t.Decode(all, true), t.Decode(prompt, true))
	if c.text, c.tokens = "", nil; same {
		c.text, c.tokens = text+made, all
	}
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
	return o.count(o.sequence, row, func() error { return o.sequence.generate(ctx, row, choose, yield) })
}
