package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/lm/sample"
)

const (
	atChat     = "/v1/chat/completions"
	atComplete = "/v1/completions"
)

// Bad input gets a status and a sentence in OpenAI's form, with the field that is wrong.
func TestRefuses(t *testing.T) {
	s, _ := newTestServer(t, modelFolder(t, template, 0), lm.Options{Context: 100}, usualLimits)
	url := s.listen(t)
	say := `"messages": [{"role": "user", "content": "a"}]`
	tool := `"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]`
	for _, c := range []struct {
		path, body  string
		status      int
		param, code string
	}{
		{atChat, ``, 400, "", ""},
		{atChat, `{"messages": `, 400, "", ""},
		{atChat, `[]`, 400, "", ""},
		{atChat, `null`, 400, "", ""},
		{atChat, "{\"messages\": \"\xff\"}", 400, "", ""},
		{atChat, `{}`, 400, "messages", ""},
		{atChat, `{"messages": []}`, 400, "messages", ""},
		{atChat, `{"messages": "a"}`, 400, "messages", ""},
		{atChat, `{"messages": [1]}`, 400, "messages[0]", ""},
		{atChat, `{"messages": [{"content": "a"}]}`, 400, "messages[0].role", ""},
		{atChat, `{"messages": [{"role": "robot", "content": "a"}]}`, 400, "messages[0].role", ""},
		{atChat, `{"messages": [{"role": "user"}]}`, 400, "messages[0].content", ""},
		{atChat, `{"messages": [{"role": "user", "content": null}]}`, 400, "messages[0].content", ""},
		{atChat, `{"messages": [{"role": "user", "content": 1}]}`, 400, "messages[0].content", ""},
		{atChat, `{"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "a"}}]}]}`, 400, "messages[0].content", ""},
		{atChat, `{"model": "gpt", ` + say + `}`, 404, "model", "model_not_found"},
		{atChat, `{"temperature": "hot", ` + say + `}`, 400, "temperature", ""},
		{atChat, `{"temperature": 2.1, ` + say + `}`, 400, "temperature", ""},
		{atChat, `{"temperature": -1, ` + say + `}`, 400, "temperature", ""},
		{atChat, `{"top_p": 1.1, ` + say + `}`, 400, "top_p", ""},
		{atChat, `{"min_p": 1.1, ` + say + `}`, 400, "min_p", ""},
		{atChat, `{"repetition_penalty": 0, ` + say + `}`, 400, "repetition_penalty", ""},
		{atChat, `{"stop": "` + strings.Repeat("a", 1001) + `", ` + say + `}`, 400, "stop", ""},
		{atChat, `{"top_k": -2, ` + say + `}`, 400, "top_k", ""},
		{atChat, `{"top_k": 1099511627776, ` + say + `}`, 400, "top_k", ""},
		{atChat, `{"chat_template_kwargs": 1, ` + say + `}`, 400, "chat_template_kwargs", ""},
		{atChat, `{"chat_template_kwargs": {"messages": []}, ` + say + `}`, 400, "chat_template_kwargs", ""},
		{atChat, `{"chat_template_kwargs": {"n": 99999999999999999999}, ` + say + `}`, 400, "chat_template_kwargs", ""},
		{atChat, `{"chat_template_kwargs": {"deep": ` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}, ` + say + `}`, 400, "chat_template_kwargs", ""},
		{atChat, `{"seed": 1.5, ` + say + `}`, 400, "seed", ""},
		{atChat, `{"n": 0, ` + say + `}`, 400, "n", ""},
		{atChat, `{"n": 5, ` + say + `}`, 400, "n", ""},
		{atChat, `{"max_tokens": 0, ` + say + `}`, 400, "max_tokens", ""},
		{atChat, `{"max_tokens": "many", ` + say + `}`, 400, "max_tokens", ""},
		{atChat, `{"max_tokens": 1, "max_completion_tokens": 2, ` + say + `}`, 400, "max_tokens", ""},
		{atChat, `{"stream": "yes", ` + say + `}`, 400, "stream", ""},
		{atChat, `{"stop": 1, ` + say + `}`, 400, "stop", ""},
		{atChat, `{"stop": [""], ` + say + `}`, 400, "stop", ""},
		{atChat, `{"stop": ["a", "b", "c", "d", "e"], ` + say + `}`, 400, "stop", ""},
		{atChat, `{"presence_penalty": 1, ` + say + `}`, 400, "presence_penalty", ""},
		{atChat, `{"frequency_penalty": 1, ` + say + `}`, 400, "frequency_penalty", ""},
		{atChat, `{"logit_bias": {"1": 2}, ` + say + `}`, 400, "logit_bias", ""},
		{atChat, `{"top_logprobs": 2, ` + say + `}`, 400, "top_logprobs", ""},
		{atChat, `{"logprobs": true, "top_logprobs": 21, ` + say + `}`, 400, "top_logprobs", ""},
		{atChat, `{"response_format": {"type": "json_object"}, ` + say + `}`, 400, "response_format", ""},
		{atChat, `{"functions": [{}], ` + say + `}`, 400, "functions", ""},
		{atChat, `{"tools": [{}], ` + say + `}`, 400, "tools[0]", ""},
		{atChat, `{"tool_choice": "required", ` + tool + `, ` + say + `}`, 400, "tool_choice", ""},
		{atChat, `{"messages": [{"role": "user", "content": "` + strings.Repeat("a", 100) + `"}]}`, 400, "", "context_length_exceeded"},
		{atChat, `{"messages": [{"role": "user", "content": "` + strings.Repeat("a", 1<<16) + `"}]}`, 413, "", "body_too_large"},
		{atComplete, `{}`, 400, "prompt", ""},
		{atComplete, `{"prompt": ""}`, 400, "prompt", ""},
		{atComplete, `{"prompt": 1}`, 400, "prompt", ""},
		{atComplete, `{"prompt": ["a", "b"]}`, 400, "prompt", ""},
		{atComplete, `{"prompt": [1, 128]}`, 400, "prompt", ""},
		{atComplete, `{"prompt": [-1]}`, 400, "prompt", ""},
		{atComplete, `{"prompt": "a", "echo": true}`, 400, "echo", ""},
		{atComplete, `{"prompt": "a", "suffix": "b"}`, 400, "suffix", ""},
		{atComplete, `{"prompt": "a", "best_of": 2}`, 400, "best_of", ""},
		{atComplete, `{"prompt": "a", "logprobs": 6}`, 400, "logprobs", ""},
		{atComplete, `{"prompt": "` + strings.Repeat("a", 101) + `", "stream": true}`, 400, "", "context_length_exceeded"},
		{"/v1/embeddings", `{}`, 404, "", "unknown_url"},
	} {
		status, header, body := post(t, url+c.path, c.body)
		message, kind, param, code := failed(t, body)
		if status != c.status || param != c.param || code != c.code || kind != "invalid_request_error" {
			t.Errorf("%s %.100s: %d %s, want %d %s %s", c.path, c.body, status, body, c.status, c.param, c.code)
		}
		if len(message) < 10 || strings.Contains(message, "Go ") || header.Get("X-Request-Id") == "" {
			t.Errorf("%s %.100s: %q, %v", c.path, c.body, message, header)
		}
	}
}

// What a client sends comes back shortened, in answers and in the log.
func TestShortened(t *testing.T) {
	s, lines := newTestServer(t, modelFolder(t, template, 0), lm.Options{}, usualLimits)
	url := s.listen(t)
	long := strings.Repeat("é", 15_000)
	say := `"messages": [{"role": "user", "content": "a"}]`
	for path, body := range map[string]string{
		atChat:                     `{"model": "` + long + `", ` + say + `}`,
		atChat + "?":               `{"chat_template_kwargs": {"` + long + `": 99999999999999999999}, ` + say + `}`,
		atChat + "??":              `{"response_format": {"type": "` + long + `"}, ` + say + `}`,
		"/v1/" + long:              `{}`,
		"/v1/models/" + long[:999]: ``,
	} {
		status, _, answer := post(t, url+path, body)
		if message, _, _, _ := failed(t, answer); status/100 != 4 || len(message) > mostOfText+100 {
			t.Errorf("%.40s: %d, %d bytes: %.300s", path, status, len(message), message)
		}
	}
	if written := lines.String(); len(written) > 10_000 || !strings.Contains(written, "more bytes") {
		t.Errorf("the log has %d bytes", len(written))
	}
}

// Variables of the template are a client's, as messages are: a special token in one is text.
func TestVariablesAreGuarded(t *testing.T) {
	folder := modelFolder(t, `{{ v }}<end>{{ messages[0].content }}`, 0)
	path := filepath.Join(folder, "tokenizer.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(b, []byte(`"special": false`), []byte(`"special": true`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "tokenizer_config.json"), []byte(`{"bos_token": "<end>"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := newTestServer(t, folder, lm.Options{}, usualLimits)
	status, _, body := post(t, s.listen(t)+atChat, `{"messages": [{"role": "user", "content": "a"}], "chat_template_kwargs": {"bos_token": "<end>"}}`)
	if _, _, param, _ := failed(t, body); status != 400 || param != "chat_template_kwargs" {
		t.Errorf("%d %s", status, body)
	}
	var q chatRequest
	if err := json.Unmarshal([]byte(`{"messages": [{"role": "user", "content": "<end>"}], "chat_template_kwargs": {"v": "<end>"}}`), &q); err != nil {
		t.Fatal(err)
	}
	j, err := s.chatJob(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(j.input.Tokens); n != 11 { // two times five letters, and the template's token
		t.Errorf("%d tokens: %v", n, j.input.Tokens)
	}
}

// On this machine's own address the server answers to no other machine's name.
func TestOtherHosts(t *testing.T) {
	s, _ := newTestServer(t, modelFolder(t, "", 0), lm.Options{}, usualLimits)
	for address, others := range map[string]int{"127.0.0.1:0": 421, "0.0.0.0:0": 200} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.serve(ctx, listener, time.Second) }()
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		for host, want := range map[string]int{
			"localhost": 200, "localhost:" + port: 200, "127.0.0.1:" + port: 200, "127.1.2.3": 200, "[::1]:8080": 200,
			"rebound.example": others, "rebound.example:" + port: others, "localhost.example": others, "10.0.0.1": others, "[::2]": others,
		} {
			for _, path := range []string{"/v1/models", "/", "/healthz"} {
				r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+port+path, nil)
				r.Host = host
				answer, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				answer.Body.Close()
				if answer.StatusCode != want {
					t.Errorf("at %s, %s of %s: %d, want %d", address, path, host, answer.StatusCode, want)
				}
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// A model without a chat template, and one whose template shows no tools, say so.
func TestTemplatesRefuse(t *testing.T) {
	for _, c := range []struct{ template, body, param, want string }{
		{"", `{"messages": [{"role": "user", "content": "a"}]}`, "messages", "no chat template"},
		{`{{ messages[0].content }}`, `{"messages": [{"role": "user", "content": "a"}], "tools": [{"type": "function", "function": {"name": "f"}}]}`, "tools", "does not show tools"},
		{`{{ raise_exception("only sonnets") }}`, `{"messages": [{"role": "user", "content": "a"}]}`, "messages", "only sonnets"},
	} {
		s, _ := newTestServer(t, modelFolder(t, c.template, 0), lm.Options{}, usualLimits)
		status, _, body := post(t, s.listen(t)+atChat, c.body)
		if message, _, param, _ := failed(t, body); status != 400 || param != c.param || !strings.Contains(message, c.want) {
			t.Errorf("%s: %d %s", c.template, status, body)
		}
	}
}

// Who comes when all rows are in use and the queue is full is told to come again.
func TestQueueFull(t *testing.T) {
	s, _ := newTestServer(t, modelFolder(t, template, 0), lm.Options{Rows: 1, Queue: 1}, usualLimits)
	url := s.listen(t)
	ask := `{"prompt": "a", "max_tokens": 1}`
	waits := make(chan int, 1)
	for range s.model.Generate(t.Context(), lm.Input{Text: "a"}, lm.GenerateOptions{MaxTokens: 1, Sample: &sample.Options{}}) {
		go func() {
			status, _, _ := post(t, url+atComplete, ask)
			waits <- status
		}()
		for s.model.Load().Waiting == 0 {
			time.Sleep(time.Millisecond)
		}
		status, header, body := post(t, url+atComplete, ask)
		if _, kind, _, code := failed(t, body); status != 429 || kind != "rate_limit_error" || code != "queue_full" || header.Get("Retry-After") == "" {
			t.Errorf("%d %v %s", status, header, body)
		}
	}
	if status := <-waits; status != 200 {
		t.Errorf("who waited got %d", status)
	}
}

// An answer that takes too long ends with an error: a status, or an event behind what was sent.
func TestTimeout(t *testing.T) {
	l := usualLimits
	l.time = time.Second
	s, _ := newTestServer(t, modelFolder(t, template, 0), lm.Options{}, l)
	url := s.listen(t)
	s.generate = script(lm.FinishStop, nil, "never")
	status, _, body := post(t, url+atComplete, `{"prompt": "a"}`)
	if _, _, _, code := failed(t, body); status != 504 || code != "timeout" {
		t.Errorf("%d %s", status, body)
	}
	s.generate = script(lm.FinishStop, nil, "some", "never")
	status, _, body = post(t, url+atComplete, `{"prompt": "a", "stream": true}`)
	_, last, _ := strings.Cut(strings.TrimSpace(body), "\n\ndata: ")
	if _, _, _, code := failed(t, last); status != 200 || code != "timeout" {
		t.Errorf("%d %s", status, body)
	}
}

// With a key only its owner is let in, and everybody sees the page and whether the server is healthy.
func TestKey(t *testing.T) {
	s, _ := newTestServer(t, modelFolder(t, template, 0), lm.Options{}, usualLimits)
	s.key = "secret"
	url := s.listen(t)
	for _, c := range []struct {
		path, sent string
		want       int
	}{
		{"/v1/models", "", 401}, {"/v1/models", "Bearer other", 401}, {"/v1/models", "secret", 401}, {"/v1/models", "Bearer secret", 200},
		{"/metrics", "", 401}, {"/metrics", "Bearer secret", 200}, {"/v1/nothing", "", 401}, {"/healthz", "", 200}, {"/", "", 200}, {"/page.mjs", "", 200},
	} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url+c.path, nil)
		r.Header.Set("Authorization", c.sent)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != c.want {
			t.Errorf("%s with %q: %d, want %d", c.path, c.sent, answer.StatusCode, c.want)
		}
	}
}

// A page of another website cannot use the server of who visits it.
func TestOtherWebsites(t *testing.T) {
	s, _ := newTestServer(t, modelFolder(t, template, 0), lm.Options{}, usualLimits)
	for site, want := range map[string]int{"cross-site": 403, "same-origin": 200} {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, atComplete, strings.NewReader(`{"prompt": "a", "max_tokens": 1}`))
		r.Header.Set("Sec-Fetch-Site", site)
		w := httptest.NewRecorder()
		s.handler().ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d %s", site, w.Code, w.Body)
		}
		if want == 403 {
			failed(t, w.Body.String())
		}
	}
}

// When one choice fails, the others end at once.
func TestOneChoiceFails(t *testing.T) {
	l := usualLimits
	l.time = 5 * time.Second // after which the others would end anyway, for another cause
	s, lines := newTestServer(t, modelFolder(t, "", 0), lm.Options{}, l)
	other := make(chan error, 1)
	var calls atomic.Int32
	s.generate = func(ctx context.Context, _ lm.Input, _ lm.GenerateOptions) iter.Seq2[lm.Token, error] {
		return func(yield func(lm.Token, error) bool) {
			if calls.Add(1) == 1 {
				yield(lm.Token{}, errors.New("out of memory in /secret/place"))
				return
			}
			<-ctx.Done()
			other <- context.Cause(ctx)
		}
	}
	status, _, body := post(t, s.listen(t)+atComplete, `{"prompt": "a", "n": 2}`)
	if _, kind, _, code := failed(t, body); status != 500 || kind != "server_error" || code != "internal" || strings.Contains(body, "secret") {
		t.Errorf("%d %s", status, body)
	}
	if err := <-other; !errors.Is(err, context.Canceled) {
		t.Errorf("the other choice ended because %v", err)
	}
	lines.wait(t, "secret")
}

// A full queue refuses a request before its answer begins, and no choice of an answer that has begun.
func TestQueueFullWithinAnAnswer(t *testing.T) {
	s, _ := newTestServer(t, modelFolder(t, "", 0), lm.Options{}, usualLimits)
	var calls, refused atomic.Int32
	begun := make(chan struct{})
	s.generate = func(ctx context.Context, in lm.Input, o lm.GenerateOptions) iter.Seq2[lm.Token, error] {
		if calls.Add(1) == 1 {
			return script(lm.FinishStop, nil, "some", "never")(ctx, in, o)
		}
		return func(yield func(lm.Token, error) bool) {
			<-begun
			if refused.Add(1) <= 3 {
				yield(lm.Token{}, lm.ErrQueueFull)
				return
			}
			yield(lm.Token{ID: 30, Text: "more", Finish: lm.FinishStop}, nil)
		}
	}
	seen := map[string]bool{}
	j := job{choices: 2}
	j.options.Sample = &s.model.Generation.Sample
	for next, err := range s.steps(t.Context(), j) {
		if err != nil {
			t.Fatal(err)
		}
		if next.token.Text == "some" {
			close(begun)
		}
		if seen[next.token.Text] = true; next.token.Finish != "" {
			break
		}
	}
	if !seen["some"] || !seen["more"] || refused.Load() != 4 {
		t.Errorf("%v after %d tries", seen, refused.Load())
	}
	s.generate = func(context.Context, lm.Input, lm.GenerateOptions) iter.Seq2[lm.Token, error] {
		return func(yield func(lm.Token, error) bool) { yield(lm.Token{}, lm.ErrQueueFull) }
	}
	status, _, body := post(t, s.listen(t)+atComplete, `{"prompt": "a", "n": 2, "stream": true}`)
	if _, _, _, code := failed(t, body); status != 429 || code != "queue_full" {
		t.Errorf("%d %s", status, body)
	}
}
