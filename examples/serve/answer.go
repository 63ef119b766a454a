package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/rope-rewrite/rope-rewrite/lm"
)

// answer is the JSON of an answer, or of a chunk of one.
type answer struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
	Choices []any  `json:"choices"`
	Usage   *usage `json:"usage,omitempty"`
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// form is what differs between answers of the two kinds of request.
type form struct {
	prefix, object, chunk string
	choice                func(p part, stream bool) any // its JSON
}

// part is a choice, or what is new of one.
type part struct {
	index  int
	first  bool // nothing came before
	text   string
	calls  []call
	scores []score // of each token, if they were asked for
	finish string  // why the choice ended; else empty
}

func (p part) empty() bool {
	return !p.first && p.text == "" && len(p.calls) == 0 && len(p.scores) == 0 && p.finish == ""
}

func (p *part) add(next part) {
	p.text += next.text
	p.calls = append(p.calls, next.calls...)
	p.scores = append(p.scores, next.scores...)
	p.finish = next.finish
}

const finishCalls = "tool_calls"

// answer generates what a job asks for and writes it, whole or as a stream.
func (s *server) answer(ctx context.Context, w http.ResponseWriter, j job, e *entry) error {
	e.prompt = len(j.input.Tokens)
	head := answer{ID: j.form.prefix + rand.Text(), Object: j.form.object, Created: time.Now().Unix(), Model: s.name, Choices: []any{}}
	if j.stream {
		head.Object = j.form.chunk
	}
	cached := 0 // tokens of the first choice's prompt
	send := func(parts ...part) error {
		a := head
		for _, p := range parts {
			a.Choices = append(a.Choices, j.form.choice(p, j.stream))
		}
		if !j.stream || len(parts) == 0 {
			a.Usage = &usage{Prompt: e.prompt, Completion: e.completion, Total: e.prompt + e.completion}
			a.Usage.Details.Cached = cached
		}
		return e.send(w, a, j.stream)
	}

	wholes := make([]part, j.choices)
	filters := make([]*callFilter, j.choices)
	for i := range wholes {
		wholes[i], filters[i] = part{index: i, first: true}, j.tools.filter()
	}
	for step, err := range s.steps(ctx, j) {
		if err != nil {
			return err
		}
		e.token()
		if step.choice == 0 {
			cached += step.token.Cached
		}
		p := s.part(step, filters[step.choice], j)
		if p.finish != "" {
			e.finish = append(e.finish, p.finish)
		}
		if !j.stream {
			wholes[p.index].add(p)
			continue
		}
		p.first, wholes[p.index].first = wholes[p.index].first, false
		if p.empty() {
			continue
		}
		if err := send(p); err != nil {
			return err
		}
	}
	if !j.stream {
		return send(wholes...)
	}
	if j.usage {
		if err := send(); err != nil {
			return err
		}
	}
	return e.done(w)
}

// part is what a token adds to its choice.
func (s *server) part(next step, filter *callFilter, j job) part {
	t := next.token
	p := part{index: next.choice, text: t.Text, finish: string(t.Finish)}
	ends := slices.Contains(s.model.Generation.End, t.ID)
	if (j.options.Sample.LogProbs || j.options.Sample.Top > 0) && !ends {
		p.scores = []score{s.score(t)}
	}
	if filter == nil {
		return p
	}
	if s.model.Tokenizer.IsSpecial(t.ID) && !ends { // [TOOL_CALLS] is one, which Text leaves out
		name, _ := s.model.Tokenizer.Token(t.ID)
		p.text += name
	}
	p.text = filter.add(p.text)
	if t.Finish != "" {
		rest, calls := filter.end()
		p.text += rest
		if p.calls = calls; len(calls) > 0 && t.Finish == lm.FinishStop {
			p.finish = finishCalls
		}
	}
	return p
}

// raw is JSON of a value that always has one.
func raw(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // numbers that JSON does not have are replaced where they come from
	}
	return b
}
