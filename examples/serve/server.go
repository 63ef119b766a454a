package main

import (
	"context"
	"embed"
	"io/fs"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/rope-rewrite/rope-rewrite/lm"
)

// server answers requests with one model.
type server struct {
	model    *lm.Model
	generate func(context.Context, lm.Input, lm.GenerateOptions) iter.Seq2[lm.Token, error] // the model's, or a test's
	name     string                                                                         // of the model, for clients
	key      string                                                                         // that clients must send; empty is none
	limits   limits
	log      *slog.Logger
	metrics  *metrics
	started  time.Time
}

func newServer(m *lm.Model, name, key string, l limits, log *slog.Logger) *server {
	return &server{model: m, generate: m.Generate, name: name, key: key, limits: l, log: log, metrics: newMetrics(m), started: time.Now()}
}

//go:embed page
var page embed.FS

// handler has every address of the server.
func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	for path, h := range map[string]func(http.ResponseWriter, *http.Request, *entry) error{
		"POST /v1/chat/completions": s.chat,
		"POST /v1/completions":      s.complete,
		"GET /v1/models":            s.models,
		"GET /v1/models/{name...}":  s.oneModel,
		"GET /metrics":              s.showMetrics,
		"/v1/chat/completions":      onlyPost,
		"/v1/completions":           onlyPost,
		"/":                         nothing,
	} {
		mux.Handle(path, s.logged(path, s.keyed(h)))
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok\n")) })
	files, _ := fs.Sub(page, "page") // the name is valid: cannot fail
	for _, path := range []string{"GET /{$}", "GET /page.mjs", "GET /page.css"} {
		mux.Handle(path, ownFiles(http.FileServerFS(files)))
	}
	return sameOrigin(mux)
}

func onlyPost(w http.ResponseWriter, r *http.Request, _ *entry) error {
	w.Header().Set("Allow", http.MethodPost)
	return refuse("", "%s must be called with POST, not %s", r.URL.Path, r.Method).with(http.StatusMethodNotAllowed, "method_not_allowed")
}

func nothing(_ http.ResponseWriter, r *http.Request, _ *entry) error {
	return refuse("", "there is nothing at %s %s", r.Method, r.URL.Path).with(http.StatusNotFound, "unknown_url")
}

// ownFiles lets the page load files of this server alone.
func ownFiles(files http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'; img-src data:")
		files.ServeHTTP(w, r)
	})
}

// sameOrigin keeps other websites that somebody visits on this machine from using the server.
func sameOrigin(h http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse("", "a page of another website must not call this server").with(http.StatusForbidden, "cross_origin").write(w)
	}))
	return protection.Handler(h)
}

// localHost answers who calls this machine by a name of its own alone. A name of a website may lead here too, and its pages could then
// use the server of who visits them.
func localHost(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := (&url.URL{Host: r.Host}).Hostname()
		if ip := net.ParseIP(name); name != "localhost" && !ip.IsLoopback() {
			refuse("", "this server does not answer to the name %q, only to localhost: a proxy in front of it must send Host: localhost", name).
				with(http.StatusMisdirectedRequest, "wrong_host").write(w)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// model is a model in a list of them.
func (s *server) describe() map[string]any {
	return map[string]any{"id": s.name, "object": "model", "created": s.started.Unix(), "owned_by": "local", "context_length": s.model.ContextLength()}
}

func (s *server) models(w http.ResponseWriter, _ *http.Request, e *entry) error {
	return e.send(w, map[string]any{"object": "list", "data": []any{s.describe()}}, false)
}

func (s *server) oneModel(w http.ResponseWriter, r *http.Request, e *entry) error {
	if name := r.PathValue("name"); name != s.name {
		return refuse("model", "there is no model %q here, only %q", name, s.name).with(http.StatusNotFound, "model_not_found")
	}
	return e.send(w, s.describe(), false)
}
