package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/lm"
)

// failure is an error in OpenAI's form.
type failure struct {
	status  int
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func (f *failure) Error() string { return f.Message }

// Why a context ends, besides a client that has gone.
var (
	errTime     = errors.New("the answer took longer than this server allows: ask for fewer tokens")
	errShutdown = errors.New("the server is shutting down: try again later")
)

// statusGone is what the log says of a client that has gone, as nginx does.
const statusGone = 499

// What an answer and the log repeat of a request, in bytes: of a name, and of all together.
const (
	mostOfName = 200
	mostOfText = 1000
)

// bounded is a text, or its beginning and its end.
func bounded(text string, most int) string {
	if len(text) <= most {
		return text
	}
	begin, end := text[:most/2], text[len(text)-most/4:]
	return strings.ToValidUTF8(begin, "") + fmt.Sprintf("…(%d more bytes)…", len(text)-len(begin)-len(end)) + strings.ToValidUTF8(end, "")
}

// refuse is the failure of a request that can never be answered. param is the field that is wrong; it may be empty. Texts among args may be
// a client's: as much of them is repeated as of a name.
func refuse(param, format string, args ...any) *failure {
	for i, a := range args {
		if text, ok := a.(string); ok {
			args[i] = bounded(text, mostOfName)
		}
	}
	f := &failure{status: http.StatusBadRequest, Type: "invalid_request_error", Message: bounded(fmt.Sprintf(format, args...), mostOfText)}
	if param != "" {
		f.Param = &param
	}
	return f
}

func (f *failure) with(status int, code string) *failure {
	f.status, f.Code = status, &code
	return f
}

// asFailure says what a client is told of an error. A fault of the server goes to the log alone.
func asFailure(err error) *failure {
	var (
		f     *failure
		long  *lm.ContextError
		token *lm.TokenError
		body  *http.MaxBytesError
	)
	server := func(status int, kind, code, message string) *failure {
		return (&failure{Type: kind, Message: message}).with(status, code)
	}
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &long):
		return refuse("", "the prompt has %s and the context of this model is %d: shorten the prompt", long.Length(), long.Context).
			with(http.StatusBadRequest, "context_length_exceeded")
	case errors.As(err, &token):
		return refuse("prompt", "the model has no token %d, only 0 to %d", token.Token, token.Vocabulary-1)
	case errors.As(err, &body):
		return refuse("", "the body is larger than %d bytes, the most that this server reads", body.Limit).
			with(http.StatusRequestEntityTooLarge, "body_too_large")
	case errors.Is(err, lm.ErrQueueFull):
		return server(http.StatusTooManyRequests, "rate_limit_error", "queue_full", "the queue is full: try again later")
	case errors.Is(err, errTime):
		return server(http.StatusGatewayTimeout, "server_error", "timeout", errTime.Error())
	case errors.Is(err, errShutdown), errors.Is(err, lm.ErrClosed):
		return server(http.StatusServiceUnavailable, "server_error", "shutting_down", errShutdown.Error())
	case errors.Is(err, errGone), errors.Is(err, context.Canceled):
		return server(statusGone, "server_error", "cancelled", "the client has gone")
	}
	return server(http.StatusInternalServerError, "server_error", "internal", "the server failed: its log says why")
}

// body is the JSON that a client gets.
func (f *failure) body() []byte {
	b, _ := json.Marshal(map[string]*failure{"error": f}) // texts alone: cannot fail
	return b
}

func (f *failure) write(w http.ResponseWriter) {
	if f.status == http.StatusTooManyRequests || f.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	w.Write(f.body()) // a client that has gone needs no answer
}
