package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// entry is what the log and the metrics say of a request.
type entry struct {
	wait               time.Duration // for the client to take a piece of its answer
	begun, first       time.Time     // the first token
	started            bool          // the answer's status was sent
	prompt, completion int           // tokens
	finish             []string      // of the choices that have ended
}

// errGone is that of a client that takes no more of its answer.
var errGone = errors.New("the client has gone")

func (e *entry) token() {
	if e.completion == 0 {
		e.first = time.Now()
	}
	e.completion++
}

// logged answers errors, and writes a line for each request.
func (s *server) logged(path string, h handler) http.Handler {
	_, route, found := strings.Cut(path, " ")
	if !found {
		route = path
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := &entry{begun: time.Now(), wait: s.limits.wait}
		id := "req_" + rand.Text()
		w.Header().Set("X-Request-Id", id)
		status, level := http.StatusOK, slog.LevelInfo
		err := h(w, r, e)
		if err != nil {
			f := asFailure(err)
			status = f.status
			switch {
			case status == statusGone:
				e.finish = append(e.finish, "cancelled")
			case e.started:
				e.event(w, f.body()) // the status was sent: a stream can only end with an error
			default:
				f.write(w)
			}
			if status == http.StatusInternalServerError {
				level = slog.LevelError
			}
		}
		s.metrics.observe(route, status, e)
		fields := []slog.Attr{slog.String("id", id), slog.String("method", bounded(r.Method, mostOfName)), slog.String("path", bounded(r.URL.Path, mostOfName)), slog.Int("status", status),
			slog.Duration("took", time.Since(e.begun).Round(time.Millisecond))}
		if e.prompt > 0 {
			fields = append(fields, slog.Int("prompt_tokens", e.prompt), slog.Int("completion_tokens", e.completion),
				slog.String("finish", cmp.Or(strings.Join(e.finish, ","), "error")))
		}
		if err != nil && status != statusGone {
			fields = append(fields, slog.String("error", bounded(err.Error(), mostOfText)))
		}
		s.log.LogAttrs(r.Context(), level, "request", fields...)
	})
}
