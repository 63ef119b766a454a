package main

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/rope-rewrite/rope-rewrite/lm"
)

type completionRequest struct {
	common
	Prompt   json.RawMessage `json:"prompt"`   // a text or tokens, or a list with one of them
	LogProbs *int            `json:"logprobs"` // how many of the likeliest tokens

	// Refused unless they ask for nothing.
	Echo   bool   `json:"echo"`
	Suffix string `json:"suffix"`
	BestOf *int   `json:"best_of"`
}

// usualTokens are those of a completion where the request names no number, as OpenAI's interface has it.
const usualTokens = 16

var completionForm = form{"cmpl-", "text_completion", "text_completion", completionChoice}

func (s *server) complete(w http.ResponseWriter, r *http.Request, e *entry) error {
	var q completionRequest
	if err := s.read(w, r, &q); err != nil {
		return err
	}
	ctx, cancel := s.limited(r)
	defer cancel()
	j, err := s.completionJob(ctx, q)
	if err != nil {
		return err
	}
	return s.answer(ctx, w, j, e)
}

func (s *server) completionJob(ctx context.Context, q completionRequest) (job, error) {
	j, err := s.job(q.common, usualTokens, completionForm)
	if err != nil {
		return j, err
	}
	switch {
	case q.Echo:
		return j, refuse("echo", "echo is not supported: leave it out")
	case q.Suffix != "":
		return j, refuse("suffix", "suffix is not supported: leave it out")
	case q.BestOf != nil && *q.BestOf != j.choices:
		return j, refuse("best_of", "best_of is not supported: leave it out")
	case q.LogProbs != nil && (*q.LogProbs < 0 || *q.LogProbs > 5):
		return j, refuse("logprobs", "logprobs must be 0 to 5")
	}
	if q.LogProbs != nil {
		j.options.Sample.LogProbs, j.options.Sample.Top = true, *q.LogProbs
	}
	in, err := prompt(q.Prompt)
	if err != nil {
		return j, err
	}
	if j.input.Tokens, err = s.tokens(ctx, "prompt", in); err != nil {
		return j, err
	}
	if len(j.input.Tokens) == 0 {
		return j, refuse("prompt", "prompt has no tokens")
	}
	return j, nil
}

// prompt reads a text or a list of tokens. A list of one of them is read as well, since clients send it.
func prompt(raw json.RawMessage) (in lm.Input, err error) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) == 1 {
		if in, err := prompt(list[0]); err == nil {
			return in, nil
		}
	}
	switch {
	case json.Unmarshal(raw, &in.Text) == nil && in.Text != "":
	case json.Unmarshal(raw, &in.Tokens) == nil && len(in.Tokens) > 0:
	default:
		return in, refuse("prompt", "prompt must be one string or one list of tokens, and not empty: send several prompts in several requests")
	}
	return in, nil
}

func completionChoice(p part, _ bool) any {
	choice := map[string]any{"index": p.index, "text": p.text, "logprobs": nil, "finish_reason": orNull(p.finish)}
	if p.scores == nil {
		return choice
	}
	var (
		tokens = []string{}
		probs  = []float64{}
		top    = []map[string]float64{}
	)
	for _, one := range p.scores {
		tokens, probs = append(tokens, one.Token), append(probs, one.LogProb)
		likeliest := map[string]float64{}
		for _, l := range one.Top {
			likeliest[l.Token] = l.LogProb
		}
		top = append(top, likeliest)
	}
	choice["logprobs"] = map[string]any{"tokens": tokens, "token_logprobs": probs, "top_logprobs": top}
	return choice
}
