package main

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/lm/sample"
)

// client is OpenAI's own client for Go.
func client(t *testing.T) (openai.Client, *server) {
	t.Helper()
	s, _ := newTestServer(t, modelFolder(t, template, 512), lm.Options{Rows: 4, Context: 512}, usualLimits)
	return openai.NewClient(option.WithBaseURL(s.listen(t)+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0)), s
}

func question(text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: "small", Messages: []openai.ChatCompletionMessageParamUnion{openai.DeveloperMessage("Be kind"), openai.UserMessage(text)},
		MaxCompletionTokens: param.NewOpt[int64](24), Temperature: param.NewOpt(0.0),
	}
}

// The answer is what package lm gives, whole and as a stream, with the tokens that were counted.
func TestChat(t *testing.T) {
	c, s := client(t)
	in := lm.Input{Text: "[system]Be kind[user]Why?[assistant]"}
	tokens, err := s.model.Tokens(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	text, count, finish := "", 0, lm.Finish("")
	for token, err := range s.model.Generate(t.Context(), in, lm.GenerateOptions{MaxTokens: 24, Sample: &sample.Options{}}) {
		if err != nil {
			t.Fatal(err)
		}
		text, count, finish = text+token.Text, count+1, token.Finish
	}
	whole, err := c.Chat.Completions.New(t.Context(), question("Why?"))
	if err != nil {
		t.Fatal(err)
	}
	if got := whole.Choices[0]; got.Message.Content != text || got.FinishReason != string(finish) {
		t.Errorf("%q, want %q: %s", got.Message.Content, text, got.RawJSON())
	}
	if u := whole.Usage; int(u.PromptTokens) != len(tokens) || int(u.CompletionTokens) != count || int(u.TotalTokens) != len(tokens)+count ||
		int(u.PromptTokensDetails.CachedTokens) != len(tokens)-1 { // the same prompt was computed before
		t.Errorf("%s, want %d and %d", u.RawJSON(), len(tokens), count)
	}
	p := question("Why?")
	p.N = param.NewOpt[int64](3)
	p.StreamOptions.IncludeUsage = param.NewOpt(true)
	stream := c.Chat.Completions.NewStreaming(t.Context(), p)
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		if !all.AddChunk(stream.Current()) {
			t.Fatalf("the client cannot add %s", stream.Current().RawJSON())
		}
	}
	if stream.Err() != nil || len(all.Choices) != 3 || int(all.Usage.CompletionTokens) != 3*count {
		t.Fatalf("%v, %d choices, %d tokens", stream.Err(), len(all.Choices), all.Usage.CompletionTokens)
	}
	for _, got := range all.Choices {
		if got.Message.Content != text || got.FinishReason != string(finish) || got.Message.Role != "assistant" {
			t.Errorf("streamed: %+v, want %q", got, text)
		}
	}
}

// The same seed gives the same choices, and each choice is another.
func TestSeed(t *testing.T) {
	c, _ := client(t)
	draw := func(seed int64) (texts []string) {
		p := question("Why?")
		p.Temperature, p.TopP, p.N, p.Seed = param.NewOpt(1.0), param.NewOpt(0.99), param.NewOpt[int64](2), param.NewOpt(seed)
		answer, err := c.Chat.Completions.New(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		for _, choice := range answer.Choices {
			texts = append(texts, choice.Message.Content)
		}
		return texts
	}
	for _, seed := range []int64{0, 7, -1} {
		a, b := draw(seed), draw(seed)
		if a[0] != b[0] || a[1] != b[1] || a[0] == a[1] {
			t.Errorf("seed %d: %q and %q", seed, a, b)
		}
	}
}

// A share of 0 is the best token alone.
func TestTopP(t *testing.T) {
	c, _ := client(t)
	best, err := c.Chat.Completions.New(t.Context(), question("Why?"))
	if err != nil {
		t.Fatal(err)
	}
	p := question("Why?")
	p.Temperature, p.TopP = param.NewOpt(2.0), param.NewOpt(0.0)
	got, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil || got.Choices[0].Message.Content != best.Choices[0].Message.Content {
		t.Errorf("%v: %+v, want %+v", err, got, best)
	}
}

// A stop text ends the answer in front of it.
func TestStop(t *testing.T) {
	c, _ := client(t)
	whole, err := c.Chat.Completions.New(t.Context(), question("Why?"))
	if err != nil {
		t.Fatal(err)
	}
	text := whole.Choices[0].Message.Content
	p := question("Why?")
	p.Stop.OfStringArray = []string{"never there", text[4:6]}
	stopped, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	want, _, _ := strings.Cut(text, text[4:6])
	if got := stopped.Choices[0]; got.Message.Content != want || got.FinishReason != "stop" {
		t.Errorf("%s, want %q of %q", got.RawJSON(), want, text)
	}
	p.Stop.OfStringArray, p.Stop.OfString = nil, param.NewOpt(text[4:6])
	if stopped, err = c.Chat.Completions.New(t.Context(), p); err != nil || stopped.Choices[0].Message.Content != want {
		t.Errorf("%v %+v", err, stopped)
	}
}

func TestLogProbs(t *testing.T) {
	c, _ := client(t)
	p := question("Why?")
	p.Logprobs, p.TopLogprobs = param.NewOpt(true), param.NewOpt[int64](3)
	answer, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	got := answer.Choices[0].Logprobs.Content
	if len(got) == 0 || len(got) > 24 {
		t.Fatalf("%d tokens", len(got))
	}
	for _, token := range got {
		if len(token.TopLogprobs) != 3 || token.Logprob > 0 || token.Logprob != token.TopLogprobs[0].Logprob || token.Token != token.TopLogprobs[0].Token {
			t.Errorf("without temperature the token is not the likeliest one: %s", token.RawJSON())
		}
	}
}

func TestCompletions(t *testing.T) {
	c, s := client(t)
	tokens, err := s.model.Tokens(t.Context(), lm.Input{Text: "Once"})
	if err != nil {
		t.Fatal(err)
	}
	p := openai.CompletionNewParams{Model: "small", Temperature: param.NewOpt(0.0), Logprobs: param.NewOpt[int64](2), Prompt: openai.CompletionNewParamsPromptUnion{OfString: param.NewOpt("Once")}}
	byText, err := c.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if u := byText.Usage; int(u.PromptTokens) != len(tokens) || u.CompletionTokens < 1 || u.CompletionTokens > usualTokens {
		t.Error(u.RawJSON())
	}
	if l := byText.Choices[0].Logprobs; len(l.Tokens) == 0 || len(l.TopLogprobs) != len(l.Tokens) || len(l.TokenLogprobs) != len(l.Tokens) {
		t.Error(l.RawJSON())
	}
	p.Prompt = openai.CompletionNewParamsPromptUnion{OfArrayOfStrings: []string{"Once"}}
	if listed, err := c.Completions.New(t.Context(), p); err != nil || listed.Choices[0].Text != byText.Choices[0].Text {
		t.Errorf("a list of one text: %v %+v", err, listed)
	}
	p.Prompt = openai.CompletionNewParamsPromptUnion{OfArrayOfTokens: tokens}
	stream, text := c.Completions.NewStreaming(t.Context(), p), ""
	for stream.Next() {
		for _, choice := range stream.Current().Choices {
			text += choice.Text
		}
	}
	if stream.Err() != nil || text != byText.Choices[0].Text || text == "" {
		t.Errorf("%v: %q by tokens, %q by text", stream.Err(), text, byText.Choices[0].Text)
	}
}

// A model calls a function, and is told what it gave.
func TestTools(t *testing.T) {
	c, s := client(t)
	s.generate = script(lm.FinishStop, now(), "I ", "look. <tool", "_call>{\"name\": \"rain\", ", `"arguments": {"at": "Oslo"}}</tool_call>`, "")
	p := question("Does it rain?")
	p.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name: "rain", Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{"at": map[string]string{"type": "string"}}},
	})}
	answer, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	check := func(got openai.ChatCompletionChoice) {
		t.Helper()
		calls := got.Message.ToolCalls
		if got.FinishReason != "tool_calls" || got.Message.Content != "I look. " || len(calls) != 1 || calls[0].Function.Name != "rain" || calls[0].Function.Arguments != `{"at":"Oslo"}` {
			t.Errorf("%+v", got)
		}
	}
	check(answer.Choices[0])
	stream := c.Chat.Completions.NewStreaming(t.Context(), p)
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		all.AddChunk(stream.Current())
	}
	if stream.Err() != nil {
		t.Fatal(stream.Err())
	}
	check(all.Choices[0])

	s.generate = s.model.Generate
	p.Messages = append(p.Messages, answer.Choices[0].Message.ToParam(), openai.ToolMessage("It does.", answer.Choices[0].Message.ToolCalls[0].ID))
	if answer, err = c.Chat.Completions.New(t.Context(), p); err != nil || answer.Usage.PromptTokens < 100 {
		t.Fatalf("%v %+v", err, answer)
	}
	p.ToolChoice.OfAuto = param.NewOpt("none") // the template shows no tools then
	without, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil || without.Usage.PromptTokens >= answer.Usage.PromptTokens {
		t.Errorf("%v: %d tokens without tools, %d with", err, without.Usage.PromptTokens, answer.Usage.PromptTokens)
	}
}

// The token that begins Mistral's calls is a special one, which package lm leaves out of a text.
func TestSpecialToken(t *testing.T) {
	folder := modelFolder(t, template, 0)
	file := filepath.Join(folder, "tokenizer.json")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(b), `"special": false}]`, `"special": false}, {"id": 110, "content": "[TOOL_CALLS]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}]`, 1)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	s, _ := newTestServer(t, folder, lm.Options{Context: 512}, usualLimits)
	s.generate = func(context.Context, lm.Input, lm.GenerateOptions) iter.Seq2[lm.Token, error] {
		return func(yield func(lm.Token, error) bool) {
			_ = yield(lm.Token{ID: 110}, nil) && yield(lm.Token{ID: 30, Text: `[{"name": "rain", "arguments": {}}]`}, nil) && yield(lm.Token{ID: 109, Finish: lm.FinishStop}, nil)
		}
	}
	status, _, body := post(t, s.listen(t)+atChat, `{"messages": [{"role": "user", "content": "a"}], "tools": [{"type": "function", "function": {"name": "rain"}}]}`)
	if status != 200 || !strings.Contains(body, `"finish_reason":"tool_calls"`) || !strings.Contains(body, `"name":"rain"`) {
		t.Errorf("%d %s", status, body)
	}
}

func TestClientErrors(t *testing.T) {
	c, s := client(t)
	var failure *openai.Error
	p := question(strings.Repeat("a", 600))
	if _, err := c.Chat.Completions.New(t.Context(), p); !errors.As(err, &failure) || failure.StatusCode != 400 || failure.Code != "context_length_exceeded" {
		t.Errorf("%v", err)
	}
	s.generate = script(lm.FinishStop, nil, "some", "never")
	s.limits.time = 1e9
	stream := c.Chat.Completions.NewStreaming(context.Background(), question("Why?"))
	for stream.Next() {
	}
	if err := stream.Err(); err == nil || !strings.Contains(err.Error(), "ask for fewer tokens") {
		t.Errorf("an error within a stream: %v", err)
	}
	models, err := c.Models.List(t.Context())
	if err != nil || len(models.Data) != 1 || models.Data[0].ID != "small" {
		t.Errorf("%v %+v", err, models)
	}
	if _, err := c.Models.Get(t.Context(), "other"); !errors.As(err, &failure) || failure.StatusCode != 404 {
		t.Errorf("%v", err)
	}
}
