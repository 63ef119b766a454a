package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// template shows everything that a conversation can have, in letters that the small tokenizer knows.
const template = `{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}[{{ m.role }}]{{ m.content or '' }}` +
	`{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}[assistant]`

// usualLimits are those of tests that try no limit.
var usualLimits = limits{body: 1 << 16, tokens: 200, choices: 4, time: time.Minute, wait: time.Minute}

// modelFolder has a small model whose texts are nonsense. With a capacity its cache is of fixed size.
func modelFolder(t testing.TB, chatTemplate string, capacity int64) string {
	t.Helper()
	library := testruntime.Require(t)
	dir, data := t.TempDir(), filepath.Join("..", "..", "testdata")
	for from, to := range map[string]string{"models/llama__optimum/config.json": "config.json", "lm/tokenizer.json": "tokenizer.json", "lm/generation_config.json": "generation_config.json"} {
		b, err := os.ReadFile(filepath.Join(data, from))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if chatTemplate != "" {
		if err := os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte(chatTemplate), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := onnx.Open(filepath.Join(data, "models/llama__optimum/model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if capacity > 0 {
		o := rewrite.Options{Cache: rewrite.Cache{Capacity: capacity}}
		o.Evaluation.Library = library
		if _, err := rewrite.Rewrite(context.Background(), m, o); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Save(filepath.Join(dir, "model.onnx"), onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// logLines are what a server has written.
type logLines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logLines) wait(t *testing.T, text string) {
	t.Helper()
	for range 1000 {
		if strings.Contains(l.String(), text) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("the log does not say %q:\n%s", text, l)
}

// newTestServer has the model of a folder.
func newTestServer(t testing.TB, folder string, o lm.Options, l limits) (*server, *logLines) {
	t.Helper()
	o.Threads, o.OpsLibrary = 1, testruntime.Require(t)
	m, err := lm.Open(folder, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	lines := &logLines{}
	return newServer(m, "small", "", l, slog.New(slog.NewTextHandler(lines, nil))), lines
}

func (s *server) listen(t testing.TB) string {
	t.Helper()
	web := httptest.NewServer(s.handler())
	t.Cleanup(web.Close)
	return web.URL
}

// script generates texts, each in pieces, in place of a model. After the pieces it waits until the channel is closed.
func script(finish lm.Finish, wait <-chan struct{}, pieces ...string) func(context.Context, lm.Input, lm.GenerateOptions) iter.Seq2[lm.Token, error] {
	return func(ctx context.Context, _ lm.Input, _ lm.GenerateOptions) iter.Seq2[lm.Token, error] {
		return func(yield func(lm.Token, error) bool) {
			for i, p := range pieces {
				token := lm.Token{ID: 30, Text: p}
				if i == len(pieces)-1 {
					select {
					case <-wait:
					case <-ctx.Done():
						yield(lm.Token{}, ctx.Err())
						return
					}
					token.Finish = finish
				}
				if !yield(token, nil) {
					return
				}
			}
		}
	}
}

// now is a channel that nobody waits for.
func now() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func post(t testing.TB, url, body string) (int, http.Header, string) {
	t.Helper()
	answer, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(b)
}

// failed checks that a body has OpenAI's form of an error, and returns it.
func failed(t *testing.T, body string) (message, kind, param, code string) {
	t.Helper()
	var form map[string]map[string]*string
	if err := json.Unmarshal([]byte(body), &form); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	e := form["error"]
	if len(form) != 1 || len(e) != 4 {
		t.Fatalf("no error of message, type, param and code alone: %s", body)
	}
	of := func(key string) string {
		v, there := e[key]
		if !there {
			t.Errorf("no %s: %s", key, body)
		}
		if v == nil {
			return ""
		}
		return *v
	}
	return of("message"), of("type"), of("param"), of("code")
}
