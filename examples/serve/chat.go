package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/lm/chat"
	"github.com/rope-rewrite/rope-rewrite/lm/chat/jinja"
)

type chatRequest struct {
	common
	Messages            []json.RawMessage `json:"messages"`
	MaxCompletionTokens *int              `json:"max_completion_tokens"`
	LogProbs            bool              `json:"logprobs"`
	TopLogProbs         int               `json:"top_logprobs"`
	Tools               []json.RawMessage `json:"tools"`
	ToolChoice          json.RawMessage   `json:"tool_choice"`
	ParallelToolCalls   *bool             `json:"parallel_tool_calls"`
	ResponseFormat      struct {
		Type string `json:"type"`
	} `json:"response_format"`
	Functions []any                      `json:"functions"`            // refused
	Variables map[string]json.RawMessage `json:"chat_template_kwargs"` // of the template, as in vLLM
}

var chatForm = form{"chatcmpl-", "chat.completion", "chat.completion.chunk", chatChoice}

func (s *server) chat(w http.ResponseWriter, r *http.Request, e *entry) error {
	var q chatRequest
	if err := s.read(w, r, &q); err != nil {
		return err
	}
	ctx, cancel := s.limited(r)
	defer cancel()
	j, err := s.chatJob(ctx, q)
	if err != nil {
		return err
	}
	return s.answer(ctx, w, j, e)
}

func (s *server) chatJob(ctx context.Context, q chatRequest) (job, error) {
	if q.MaxCompletionTokens != nil {
		if q.MaxTokens != nil && *q.MaxTokens != *q.MaxCompletionTokens {
			return job{}, refuse("max_tokens", "max_tokens and max_completion_tokens mean the same: give one of them")
		}
		q.MaxTokens = q.MaxCompletionTokens
	}
	j, err := s.job(q.common, s.limits.tokens, chatForm)
	if err != nil {
		return j, err
	}
	switch {
	case q.TopLogProbs < 0 || q.TopLogProbs > 20:
		return j, refuse("top_logprobs", "top_logprobs must be 0 to 20")
	case q.TopLogProbs > 0 && !q.LogProbs:
		return j, refuse("top_logprobs", "top_logprobs needs logprobs: true")
	case q.ResponseFormat.Type != "" && q.ResponseFormat.Type != "text":
		return j, refuse("response_format", "response_format %q is not supported, only text", q.ResponseFormat.Type)
	case len(q.Functions) > 0:
		return j, refuse("functions", "functions is not supported: use tools")
	}
	j.options.Sample.LogProbs, j.options.Sample.Top = q.LogProbs, q.TopLogProbs
	messages, err := messages(q.Messages)
	if err != nil {
		return j, err
	}
	in := lm.Input{Messages: messages}
	if in.Chat.Variables, err = s.variables(q.Variables); err != nil {
		return j, err
	}
	if in.Chat.Tools, j.tools, err = q.tools(); err != nil {
		return j, err
	}
	if j.input.Tokens, err = s.tokens(ctx, "messages", in); err != nil {
		return j, err
	}
	return j, s.readsTools(ctx, in, j.input.Tokens)
}

// readsTools refuses tools that the model would never see.
func (s *server) readsTools(ctx context.Context, in lm.Input, with []int64) error {
	if in.Chat.Tools == nil {
		return nil
	}
	in.Chat.Tools = nil
	without, err := s.model.Tokens(ctx, in)
	if err == nil && slices.Equal(with, without) {
		return refuse("tools", "the chat template of this model does not show tools: leave them out")
	}
	return nil // some templates refuse a conversation about tools without them
}

// messages reads a conversation. Models know the role developer as system.
func messages(list []json.RawMessage) ([]chat.Message, error) {
	if len(list) == 0 {
		return nil, refuse("messages", "messages must be a list of at least one message")
	}
	var all []chat.Message
	for i, one := range list {
		param := fmt.Sprintf("messages[%d]", i)
		var fields struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		if json.Unmarshal(one, &fields) != nil {
			return nil, refuse(param, "%s must be an object with role and content", param)
		}
		if !slices.Contains([]string{"system", "developer", "user", "assistant", "tool"}, fields.Role) {
			return nil, refuse(param+".role", "%s.role must be system, developer, user, assistant or tool", param)
		}
		if !isText(fields.Content) && (fields.Role != "assistant" || len(fields.Content) > 0 && string(fields.Content) != "null") {
			return nil, refuse(param+".content", "%s.content must be a string or a list of parts of the type text", param)
		}
		var m chat.Message
		if err := json.Unmarshal(one, &m); err != nil {
			return nil, refuse(param, "%s: %v", param, err)
		}
		if m.Role == "developer" {
			m.Role = "system"
		}
		all = append(all, m)
	}
	return all, nil
}

// variables reads those of the template, as strictly as messages. None may stand for a special token.
func (s *server) variables(given map[string]json.RawMessage) (map[string]any, error) {
	const field = "chat_template_kwargs"
	all := make(map[string]any, len(given))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		switch {
		case slices.Contains([]string{"messages", "tools", "documents", "add_generation_prompt"}, name):
			return nil, refuse(field, "%s: %s is not a variable that a request may set", field, name)
		case s.model.Chat != nil && s.model.Chat.Special(name):
			return nil, refuse(field, "%s: %s is a special token of the model: leave it out", field, name)
		}
		if _, err := jinja.FromJSON(given[name]); err != nil {
			return nil, refuse(field, "%s: %s: %v", field, name, err)
		}
		all[name] = given[name]
	}
	return all, nil
}

// isText reports whether a content is a text or a list of texts.
func isText(content json.RawMessage) bool {
	var text *string
	if json.Unmarshal(content, &text) == nil {
		return text != nil
	}
	var parts []struct {
		Type string
		Text *string
	}
	if json.Unmarshal(content, &parts) != nil || len(parts) == 0 {
		return false
	}
	for _, p := range parts {
		if p.Type != "text" || p.Text == nil {
			return false
		}
	}
	return true
}

// tools are the functions for the template, and their names.
func (q chatRequest) tools() ([]any, toolbox, error) {
	t := toolbox{one: q.ParallelToolCalls != nil && !*q.ParallelToolCalls}
	var choice string
	if len(q.ToolChoice) > 0 && (json.Unmarshal(q.ToolChoice, &choice) != nil || choice != "none" && choice != "auto" && choice != "") {
		return nil, t, refuse("tool_choice", "tool_choice must be none or auto: a call cannot be forced here")
	}
	var shown []any
	for i, one := range q.Tools {
		param := fmt.Sprintf("tools[%d]", i)
		var fields struct {
			Type     string
			Function struct {
				Name       string
				Parameters map[string]any
			}
		}
		if json.Unmarshal(one, &fields) != nil || fields.Type != "function" || fields.Function.Name == "" {
			return nil, t, refuse(param, `%s must be {"type": "function", "function": {"name": …, "parameters": {…}}}`, param)
		}
		if t.names == nil {
			t.names = map[string]bool{}
		}
		t.names[fields.Function.Name] = true
		shown = append(shown, one)
	}
	if choice == "none" {
		return nil, toolbox{}, nil
	}
	return shown, t, nil
}

type chatCall struct {
	Index    *int   `json:"index,omitempty"` // of streams alone
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func chatChoice(p part, stream bool) any {
	m := map[string]any{}
	if p.first {
		m["role"] = "assistant"
	}
	switch {
	case p.text != "" || p.first && len(p.calls) == 0:
		m["content"] = p.text
	case !stream:
		m["content"] = nil // calls alone
	}
	var calls []chatCall
	for i, c := range p.calls {
		one := chatCall{ID: c.id, Type: "function"}
		one.Function.Name, one.Function.Arguments = c.name, c.arguments
		if stream {
			one.Index = &i
		}
		calls = append(calls, one)
	}
	if calls != nil {
		m["tool_calls"] = calls
	}
	choice := map[string]any{"index": p.index, "logprobs": nil, "finish_reason": orNull(p.finish)}
	if p.scores != nil {
		choice["logprobs"] = map[string]any{"content": p.scores, "refusal": nil}
	}
	if stream {
		choice["delta"] = m
	} else {
		choice["message"] = m
	}
	return choice
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
