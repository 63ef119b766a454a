package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rope-rewrite/rope-rewrite/lm"
)

// limits are what one request may ask for.
type limits struct {
	body    int64         // bytes
	tokens  int           // of an answer; more are not refused, and the answer is cut there
	choices int           // n
	time    time.Duration // for an answer, from when its request was read
	wait    time.Duration // for a body to arrive, and for a client to take a piece of an answer
}

// common are the fields that requests of both kinds have.
type common struct {
	Model         string `json:"model"`
	N             *int   `json:"n"`
	MaxTokens     *int   `json:"max_tokens"`
	Stream        bool   `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Stop json.RawMessage `json:"stop"` // a text or a list of texts

	Seed        *int64   `json:"seed"`
	Temperature *float64 `json:"temperature"`
	TopP        *float64 `json:"top_p"`
	// Not OpenAI's, but other servers have them by these names.
	TopK              *int     `json:"top_k"`
	MinP              *float64 `json:"min_p"`
	RepetitionPenalty *float64 `json:"repetition_penalty"`

	// Refused unless they ask for nothing.
	PresencePenalty  float64        `json:"presence_penalty"`
	FrequencyPenalty float64        `json:"frequency_penalty"`
	LogitBias        map[string]any `json:"logit_bias"`
}

// job is a request that was understood.
type job struct {
	input   lm.Input // tokens
	options lm.GenerateOptions
	choices int
	seed    *int64 // nil is a random one
	stream  bool
	usage   bool // of a stream: say at its end how many tokens there were
	tools   toolbox
	form    form
}

// read reads a request's JSON.
func (s *server) read(w http.ResponseWriter, r *http.Request, into any) error {
	control := http.NewResponseController(w)
	control.SetReadDeadline(time.Now().Add(s.limits.wait)) // not every ResponseWriter can, as those of tests
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.limits.body))
	if err == nil {
		control.SetReadDeadline(time.Time{}) // else net/http would wait for the rest of the body, for ever
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return err
	case err != nil:
		return refuse("", "the body could not be read to its end")
	case !utf8.Valid(body):
		return refuse("", "the body is not UTF-8")
	case !strings.HasPrefix(strings.TrimLeft(string(body), " \t\r\n"), "{"):
		return refuse("", "the body must be a JSON object")
	}
	return inWords(json.Unmarshal(body, into))
}

// limited is the context of an answer: it ends with the client, and after the time that an answer may take.
func (s *server) limited(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(r.Context(), s.limits.time, errTime)
}

// tokens are those of an input. param is the field that it comes from.
func (s *server) tokens(ctx context.Context, param string, in lm.Input) ([]int64, error) {
	tokens, err := s.model.Tokens(ctx, in)
	var long *lm.ContextError
	switch {
	case err == nil, errors.As(err, &long):
		return tokens, err
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, refuse(param, "%v", err)
}

// inWords says what is wrong with JSON in the words of JSON.
func inWords(err error) error {
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &kind):
		field := strings.TrimPrefix(kind.Field, "common.")
		return refuse(field, "%s must be %s, not %s", field, kindOf(kind.Type), strings.Fields(kind.Value)[0])
	}
	return refuse("", "the body is not JSON: %v", err)
}

func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

// job checks the fields that all requests have. most is the number of tokens of an answer where the request names none.
func (s *server) job(c common, most int, form form) (job, error) {
	j := job{choices: 1, seed: c.Seed, stream: c.Stream, usage: c.StreamOptions.IncludeUsage, form: form}
	if c.Model != "" && c.Model != s.name {
		return j, refuse("model", "there is no model %q here, only %q", c.Model, s.name).with(http.StatusNotFound, "model_not_found")
	}
	if c.N != nil {
		j.choices = *c.N
	}
	if j.choices < 1 || j.choices > s.limits.choices {
		return j, refuse("n", "n must be 1 to %d", s.limits.choices)
	}
	if c.MaxTokens != nil {
		most = *c.MaxTokens
	}
	if most < 1 {
		return j, refuse("max_tokens", "max_tokens must be at least 1")
	}
	j.options.MaxTokens = min(most, s.limits.tokens)
	switch {
	case c.PresencePenalty != 0:
		return j, refuse("presence_penalty", "presence_penalty is not supported: leave it out, or use repetition_penalty")
	case c.FrequencyPenalty != 0:
		return j, refuse("frequency_penalty", "frequency_penalty is not supported: leave it out, or use repetition_penalty")
	case len(c.LogitBias) > 0:
		return j, refuse("logit_bias", "logit_bias is not supported: leave it out")
	}
	var err error
	if j.options.Stop, err = stops(c.Stop); err != nil {
		return j, err
	}
	j.options.Sample, err = s.sampling(c)
	return j, err
}

// stops reads a text, a list of texts, or null.
func stops(raw json.RawMessage) ([]string, error) {
	var list []string
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(raw, &list) != nil {
		return nil, refuse("stop", "stop must be a string or a list of strings")
	}
	if len(list) > 4 {
		return nil, refuse("stop", "stop must have at most 4 strings")
	}
	for _, text := range list {
		if text == "" || len(text) > 1000 {
			return nil, refuse("stop", "each string of stop must have 1 to 1000 bytes")
		}
	}
	return list, nil
}
