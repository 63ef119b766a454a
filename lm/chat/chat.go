package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/rope-rewrite/rope-rewrite/lm/chat/jinja"
)

// ErrRaised is wrapped by the error of a template that refuses a conversation by
// raise_exception, as one whose roles do not alternate.
var ErrRaised = jinja.ErrRaised

// Message is one message of a conversation.
type Message struct {
	Role    string // "system", "user", "assistant", "tool" or what the template knows
	Content string
	// Extra holds what else a template reads: tool_calls, name, tool_call_id. A
	// content here stands in for Content: nil is Python's None, and a list holds
	// parts. Values are those of Options.
	Extra map[string]any
}

// Options say what a conversation is rendered with. The zero value renders the
// messages and nothing else.
//
// A value in Tools, Documents, Variables and Extra may be anything that
// encoding/json writes, and a template sees what Python's json.loads reads from
// that: a json.RawMessage and a struct keep the order of their keys, which tools
// are printed in, and a Go map is sorted.
type Options struct {
	// AddGenerationPrompt ends the text with the begin of the assistant's answer.
	AddGenerationPrompt bool
	// ContinueFinalMessage ends the text within the last message, so that the model
	// continues it.
	ContinueFinalMessage bool
	// Tools are JSON schemas of functions. Nil is none; an empty list is one, which
	// a few templates tell from none.
	Tools []any
	// Documents are objects, most often with a title and a text.
	Documents []any
	// Variables are further ones of the template, as enable_thinking. One with the
	// name of a special token stands in for it.
	Variables map[string]any
	// Now is what templates take for the present time. Zero is time.Now().
	Now time.Time
}

// Template is a model's chat template. It may be used by several goroutines.
type Template struct {
	text, tools *variant // tools is nil where one template is for everything
	specials    map[string]string
}

// variant is one of a model's templates. An error is kept for those who use it.
type variant struct {
	text     string
	template *jinja.Template
	err      error
}

func newVariant(text string) *variant {
	t, err := jinja.Parse(text)
	return &variant{text, t, err}
}

// Parse reads a template. Specials are the texts of the special tokens by their
// names in tokenizer_config.json, as bos_token. What Jinja has and this package
// does not is an error that names it, here or from Render.
func Parse(text string, specials map[string]string) (*Template, error) {
	v := newVariant(text)
	if v.err != nil {
		return nil, fmt.Errorf("the chat template cannot be read: %w", v.err)
	}
	return &Template{text: v, specials: maps.Clone(specials)}, nil
}

// Render gives the text of a conversation, special tokens included: the tokenizer
// must add none to it.
func (t *Template) Render(messages []Message, o Options) (string, error) {
	if len(messages) == 0 {
		return "", errors.New("the conversation is empty: give at least one message")
	}
	if o.AddGenerationPrompt && o.ContinueFinalMessage {
		return "", errors.New("AddGenerationPrompt and ContinueFinalMessage exclude each other: an answer is begun or continued")
	}
	use := t.text
	if o.Tools != nil && t.tools != nil {
		use = t.tools
	}
	if use == nil {
		return "", errors.New("the model has several chat templates and none named default, so there is none without tools")
	}
	if use.err != nil {
		return "", fmt.Errorf("the chat template cannot be read: %w", use.err)
	}
	variables, err := t.variables(messages, o)
	if err != nil {
		return "", err
	}
	continued := ""
	if o.ContinueFinalMessage {
		if continued, err = mark(variables, use.text); err != nil {
			return "", err
		}
	}
	now := o.Now
	if now.IsZero() {
		now = time.Now()
	}
	text, err := use.template.Render(variables, now)
	if err != nil {
		return "", fmt.Errorf("the chat template cannot be rendered: %w", err)
	}
	if o.ContinueFinalMessage {
		return cut(text, continued)
	}
	return text, nil
}

func (t *Template) variables(messages []Message, o Options) (map[string]any, error) {
	d := map[string]any{}
	for name, text := range t.specials {
		d[name] = text
	}
	for _, name := range slices.Sorted(maps.Keys(o.Variables)) {
		switch name {
		case "messages", "tools", "documents", "add_generation_prompt":
			return nil, fmt.Errorf("the variable %s is set by Render: leave it out of Variables", name)
		}
		v, err := value(o.Variables[name])
		if err != nil {
			return nil, fmt.Errorf("the variable %s: %w", name, err)
		}
		d[name] = v
	}
	all := jinja.List{}
	for i, m := range messages {
		v, err := m.value()
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
		all = append(all, v)
	}
	d["messages"] = all
	for name, given := range map[string][]any{"tools": o.Tools, "documents": o.Documents} {
		if given == nil {
			d[name] = nil
			continue
		}
		list := jinja.List{}
		for i, one := range given {
			v, err := value(one)
			if _, object := v.(*jinja.Dict); err == nil && !object {
				err = errors.New("it is not a JSON object")
			}
			if err != nil {
				return nil, fmt.Errorf("%s, number %d: %w", name, i+1, err)
			}
			list = append(list, v)
		}
		d[name] = list
	}
	d["add_generation_prompt"] = o.AddGenerationPrompt
	return d, nil
}

// value is what a message is in a template: role, content, and the rest by name.
func (m Message) value() (*jinja.Dict, error) {
	d := &jinja.Dict{}
	for name, text := range map[string]string{"role": m.Role, "content": m.Content} {
		if !utf8.ValidString(text) {
			return nil, fmt.Errorf("its %s is not UTF-8", name)
		}
	}
	d.Set("role", m.Role)
	d.Set("content", m.Content)
	for _, name := range slices.Sorted(maps.Keys(m.Extra)) {
		v, err := value(m.Extra[name])
		if err != nil {
			return nil, fmt.Errorf("its %s: %w", name, err)
		}
		d.Set(name, v)
	}
	return d, nil
}

func value(v any) (any, error) {
	if s, ok := v.(string); ok && !utf8.ValidString(s) {
		return nil, errors.New("the text is not UTF-8")
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("it cannot be written as JSON: %w", err)
	}
	return jinja.FromJSON(data)
}
