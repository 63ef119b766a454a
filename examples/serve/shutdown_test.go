package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rope-rewrite/rope-rewrite/lm"
)

// begin asks for a stream and reads its first event.
func begin(t *testing.T, ctx context.Context, url string) *bufio.Reader {
	t.Helper()
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, url+atComplete, strings.NewReader(`{"prompt": "a", "stream": true}`))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	body := bufio.NewReader(answer.Body)
	if line, err := body.ReadString('\n'); err != nil || !strings.Contains(line, "some") {
		t.Fatal(line, err)
	}
	return body
}

// A server that is told to end takes no new requests, and gives answers time. Those that take longer say why they end.
func TestShutdown(t *testing.T) {
	for name, c := range map[string]struct {
		grace time.Duration
		want  string
	}{"time enough": {time.Hour, "[DONE]"}, "too little time": {time.Millisecond, "shutting_down"}} {
		t.Run(name, func(t *testing.T) {
			s, lines := newTestServer(t, modelFolder(t, "", 0), lm.Options{}, usualLimits)
			last := make(chan struct{})
			s.generate = script(lm.FinishStop, last, "some", "more")
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			url := "http://" + listener.Addr().String()
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- s.serve(ctx, listener, c.grace) }()
			body := begin(t, t.Context(), url)
			stop()
			lines.wait(t, "shutting down")
			for range 1000 { // the log's line comes before the port is closed
				answer, err := http.Get(url + "/healthz")
				if err != nil {
					break
				}
				answer.Body.Close()
				time.Sleep(time.Millisecond)
			}
			if c.grace == time.Hour {
				close(last)
			}
			rest, err := io.ReadAll(body)
			if err != nil || !strings.Contains(string(rest), c.want) {
				t.Errorf("%q, %v", rest, err)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// A client that has gone ends its text, and the log says so.
func TestGone(t *testing.T) {
	s, lines := newTestServer(t, modelFolder(t, "", 0), lm.Options{}, usualLimits)
	s.generate = script(lm.FinishStop, nil, "some", "never")
	ctx, leave := context.WithCancel(t.Context())
	begin(t, ctx, s.listen(t))
	leave()
	lines.wait(t, "status=499")
	if !strings.Contains(lines.String(), "completion_tokens=1 finish=cancelled") {
		t.Error(lines)
	}
}

// The metrics have what was done, and no names that clients choose.
func TestMetrics(t *testing.T) {
	s, _ := newTestServer(t, modelFolder(t, "", 0), lm.Options{Rows: 3}, usualLimits)
	url := s.listen(t)
	post(t, url+atComplete, `{"prompt": "abcdef", "max_tokens": 5, "temperature": 0}`)
	post(t, url+"/some/path", ``)
	answer, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`serve_requests_total{path="/v1/completions",status="200"} 1`, `serve_requests_total{path="/",status="404"} 1`, `serve_finishes_total{reason="length"} 1`,
		"serve_rows 3", "serve_waiting 0", "serve_prompt_tokens_computed_total 6", "serve_completion_tokens_total 5", "serve_first_token_seconds_count 1", "go_goroutines",
	} {
		if !strings.Contains(string(b), want+"\n") && !strings.Contains(string(b), want+" ") {
			t.Errorf("no %s in:\n%s", want, b)
		}
	}
	if strings.Contains(string(b), "some/path") {
		t.Error("a client's path is a label")
	}
}
