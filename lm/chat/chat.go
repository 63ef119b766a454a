package chat

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/lm/chat/jinja"
)

// ErrRaised is wrapped by the error of a template that refuses a conversation
// with raise_exception, for example if its roles do not alternate.
var ErrRaised = jinja.ErrRaised

// Options say what a conversation is rendered with. The zero value renders the
// messages and nothing else.
//
// A value in Tools, Documents, Variables and Extra may be anything that
// encoding/json writes, and a template sees what Python's json.loads reads from
// that: a json.RawMessage and a struct keep the order of their keys, which tools
// are printed in, and a Go map is sorted.
type Options struct {
	// AddGenerationPrompt ends the text with the beginning of the assistant's
	// answer.
	AddGenerationPrompt bool
	// ContinueFinalMessage ends the text within the last message, so that the model
	// continues it.
	ContinueFinalMessage bool
	// ContinuedField is the key of the last message that ContinueFinalMessage
	// continues, as reasoning_content. Empty is content.
	ContinuedField string
	// Tools are JSON schemas of functions. Nil means none; a few templates treat an
	// empty list differently.
	Tools []any
	// Documents are objects, most often with a title and a text.
	Documents []any
	// Variables are further variables of the template, such as enable_thinking.
	// One with the name of a special token replaces it (Template.Special).
	Variables map[string]any
	// Now is the present time for templates. Zero is time.Now().
	Now time.Time
}

// Template is a model's chat template. It may be used by several goroutines.
type Template struct {
	text, tools *variant // tools is nil where one template is for everything
	specials    map[string]string
	unset       []string // names of special tokens that only Python knows the texts of
}

// variant is one of a model's templates. An error is kept for those who use it.
type variant struct {
	text     string
	template *jinja.Template
	err      error
}

func newVariant(text, from string) *variant {
	t, err := jinja.Parse(text)
	if err != nil {
		err = fmt.Errorf("%s cannot be read: %w", from, err)
	}
	return &variant{text, t, err}
}

// Parse reads a template. Specials are the texts of the special tokens by their
// names in tokenizer_config.json, as bos_token. A feature of Jinja that this
// package does not have is an error that names it, here or from Render.
func Parse(text string, specials map[string]string) (*Template, error) {
	v := newVariant(text, "the chat template")
	if v.err != nil {
		return nil, v.err
	}
	return &Template{text: v, specials: maps.Clone(specials)}, nil
}

// Render gives the text of a conversation, special tokens included: the tokenizer
// must add none to it.
func (t *Template) Render(messages []Message, o Options) (string, error) {
	r, err := t.prepare(messages, o)
	if err != nil {
		return "", err
	}
	return r.render()
}

// rendering is a conversation on its way to a text.
type rendering struct {
	use       *variant
	variables map[string]any
	given     []string // those that are from users
	now       time.Time
	continued string // a field of the last message, or empty
}

func (t *Template) prepare(messages []Message, o Options) (*rendering, error) {
	if len(messages) == 0 {
		return nil, errors.New("the conversation is empty: give at least one message")
	}
	if o.AddGenerationPrompt && o.ContinueFinalMessage {
		return nil, errors.New("give only one of AddGenerationPrompt (begin an answer) and ContinueFinalMessage (continue one)")
	}
	if o.ContinuedField != "" && !o.ContinueFinalMessage {
		return nil, errors.New("ContinuedField is given without ContinueFinalMessage, which it belongs to")
	}
	r := &rendering{use: t.text, now: o.Now}
	if o.Tools != nil && t.tools != nil {
		r.use = t.tools
	}
	if r.use == nil {
		return nil, errors.New("the model has several chat templates but none named default, which conversations without tools need")
	}
	if r.use.err != nil {
		return nil, r.use.err
	}
	if r.now.IsZero() {
		r.now = time.Now()
	}
	if o.ContinueFinalMessage {
		r.continued = cmp.Or(o.ContinuedField, "content")
	}
	for _, name := range t.unset {
		if _, given := o.Variables[name]; !given && strings.Contains(r.use.text, name) {
			return nil, fmt.Errorf("the chat template reads %s, and tokenizer_config.json does not have it: transformers takes that of the tokenizer's class, so put it, or null, into the file", short.Name(name))
		}
	}
	var err error
	if r.variables, err = t.variables(messages, o); err != nil {
		return nil, err
	}
	r.given = []string{"messages", "documents", "tools"}
	for name := range o.Variables {
		if !t.Special(name) {
			r.given = append(r.given, name)
		}
	}
	return r, r.textsForParts()
}

// Special reports whether a variable of this name replaces a special token, as bos_token. What it says is not guarded: a server does not
// take it from clients.
func (t *Template) Special(name string) bool {
	_, known := t.specials[name]
	return known || slices.Contains(t.unset, name)
}

// render gives the text. It does not change the variables.
func (r *rendering) render() (string, error) {
	variables := maps.Clone(r.variables)
	behind := ""
	if r.continued != "" {
		var err error
		if behind, err = mark(variables, r.continued, r.use.text); err != nil {
			return "", err
		}
	}
	text, err := r.use.template.Render(variables, r.now)
	if err != nil {
		return "", fmt.Errorf("the chat template cannot be rendered: %w", err)
	}
	if r.continued != "" {
		return cut(text, behind)
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
			return nil, fmt.Errorf("the variable %s is set by Render: leave it out of Variables", short.Name(name))
		}
		v, err := value(o.Variables[name])
		if err != nil {
			return nil, fmt.Errorf("the variable %s: %w", short.Name(name), err)
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
				return nil, fmt.Errorf("%s, number %d: %w", short.Name(name), i+1, err)
			}
			list = append(list, v)
		}
		d[name] = list
	}
	d["add_generation_prompt"] = o.AddGenerationPrompt
	return d, nil
}
