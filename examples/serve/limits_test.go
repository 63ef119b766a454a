package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rope-rewrite/rope-rewrite/lm"
)

// An answer has at most -max-tokens tokens, and says length.
func TestMaxTokens(t *testing.T) {
	l := usualLimits
	l.tokens = 5
	s, _ := newTestServer(t, modelFolder(t, template, 0), lm.Options{}, l)
	url := s.listen(t)
	for path, ask := range map[string]string{atComplete: `"prompt": "a", "max_tokens": 300`, atChat: `"messages": [{"role": "user", "content": "a"}]`} {
		status, _, body := post(t, url+path, `{"temperature": 0, `+ask+`}`)
		var a struct {
			Choices []struct {
				Finish string `json:"finish_reason"`
			}
			Usage usage
		}
		if err := json.Unmarshal([]byte(body), &a); err != nil || status != 200 || len(a.Choices) != 1 || a.Choices[0].Finish != "length" || a.Usage.Completion != 5 {
			t.Errorf("%s: %d %v %s", path, status, err, body)
		}
	}
}

// served is the address of a server at its own listener.
func (s *server) served(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx, listener, time.Second) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// A body that does not arrive, and headers without an end, are refused.
func TestSlowAndLargeRequests(t *testing.T) {
	l := usualLimits
	l.wait = 50 * time.Millisecond
	s, _ := newTestServer(t, modelFolder(t, "", 0), lm.Options{}, l)
	address := s.served(t)
	for head, want := range map[string]int{
		"POST " + atComplete + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{":         400,
		"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("a", 1<<17) + "\r\n\r\n": 431,
	} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go io.WriteString(c, head) // the server may close while it is written
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("%.20s: %v", head, err)
		}
		if answer.Body.Close(); answer.StatusCode != want {
			t.Errorf("%.20s: %d, want %d", head, answer.StatusCode, want)
		}
	}
}

// A client that takes no more of its answer is left, and its text ends.
func TestSlowReader(t *testing.T) {
	l := usualLimits
	l.wait = 50 * time.Millisecond
	s, lines := newTestServer(t, modelFolder(t, "", 0), lm.Options{}, l)
	s.generate = script(lm.FinishStop, now(), strings.Repeat("a", 64<<20), "b")
	c, err := net.Dial("tcp", s.served(t))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ask := `{"prompt": "a", "stream": true}`
	if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", atComplete, len(ask), ask); err != nil {
		t.Fatal(err)
	}
	lines.wait(t, "status=499")
}

// A prompt that is too long by its bytes is refused before it is read, also beyond what the tokenizer would take.
func TestLongBodies(t *testing.T) {
	l := usualLimits
	l.body = 4 << 20
	s, _ := newTestServer(t, modelFolder(t, template, 0), lm.Options{Context: 100, Rows: 2}, l)
	url := s.listen(t)
	long := strings.Repeat("a", 4_000_000)
	for path, body := range map[string]string{atComplete: `{"prompt": "` + long + `"}`, atChat: `{"messages": [{"role": "user", "content": "` + long + `"}]}`} {
		status, _, answer := post(t, url+path, body)
		if message, _, _, code := failed(t, answer); status != 400 || code != "context_length_exceeded" || !strings.Contains(message, "at least") {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
}

// Every limit of the page has a test.
func TestPageOfLimits(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, folder := range []string{".", "../../lm", "../../lm/tokenizer"} {
		files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no tests: %v", folder, err)
		}
		for _, path := range files {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(b)
		}
	}
	_, limits, _ := strings.Cut(string(page), "## Limits\n")
	limits, _, found := strings.Cut(limits, "\n## ")
	rows := regexp.MustCompile(`(?m)^\|.*\|$`).FindAllString(limits, -1)
	if !found || len(rows) < 20 {
		t.Fatalf("the page has %d rows of limits", len(rows))
	}
	for _, row := range rows[2:] {
		names := regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(row, -1)
		if len(names) == 0 {
			t.Errorf("no test: %s", row)
		}
		for _, name := range names {
			if !strings.Contains(tests.String(), "func "+name[1]+"(t ") {
				t.Errorf("there is no %s: %s", name[1], row)
			}
		}
	}
}
