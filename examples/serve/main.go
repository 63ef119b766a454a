// Command serve answers OpenAI's HTTP interface with a language model, original or patched by rope-rewrite:
//
//	go run . -model FOLDER
//
// README.md says what it has and what it has not.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/lm"
)

// keyVariable is where the key is, if no file has it.
const keyVariable = "SERVE_KEY"

type options struct {
	model, name, listen, keyFile, log, runtime string
	grace                                      time.Duration
	limits                                     limits
	lm                                         lm.Options
}

func main() {
	o := options{limits: limits{wait: 30 * time.Second}}
	flag.StringVar(&o.model, "model", "", "the model's folder, or its .onnx file")
	flag.StringVar(&o.name, "name", "", "the model's name for clients; default: the folder's name")
	flag.StringVar(&o.listen, "listen", "127.0.0.1:8080", "address and port; :8080 is for every machine that can reach this one")
	flag.StringVar(&o.keyFile, "key-file", "", "a file with the key that clients must send; default: "+keyVariable+", or no key")
	flag.IntVar(&o.lm.Rows, "rows", 8, "texts that are generated at the same time")
	flag.IntVar(&o.lm.Queue, "queue", 32, "texts that may wait for a row; further ones are refused")
	flag.IntVar(&o.limits.tokens, "max-tokens", 4096, "the most tokens of an answer")
	flag.IntVar(&o.limits.choices, "max-choices", 8, "the most choices of a request (n)")
	flag.Int64Var(&o.limits.body, "max-body", 4<<20, "the most bytes of a request")
	flag.DurationVar(&o.limits.time, "timeout", 10*time.Minute, "the most time for an answer")
	flag.DurationVar(&o.grace, "grace", 30*time.Second, "how long answers may go on after a signal to end")
	flag.StringVar(&o.log, "log", "text", "the form of the log: text or json")
	flag.IntVar(&o.lm.Context, "context", 0, "the most tokens of prompt and answer together; 0 is what the model says")
	flag.IntVar(&o.lm.Threads, "threads", 0, "threads for one operator; 0 means ONNX Runtime's default")
	flag.StringVar(&o.runtime, "onnxruntime", "", "libonnxruntime.so; default: "+customop.RuntimeVariable+", or the usual places")
	flag.StringVar(&o.lm.OpsLibrary, "ops-library", "", "librope_ops.so; default: "+customop.LibraryVariable+", or the usual places")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	log, key, err := o.check()
	if err != nil {
		return err
	}
	if err := customop.InitRuntime(o.runtime); err != nil {
		return err
	}
	o.lm.Log = log
	model, err := lm.Open(o.model, o.lm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	if address, _ := listener.Addr().(*net.TCPAddr); key == "" && !address.IP.IsLoopback() {
		log.Warn("other machines can use this server without a key: give -key-file")
	}
	log.Info("ready", "url", "http://"+listener.Addr().String(), "model", o.name, "context", model.ContextLength(), "rows", o.lm.Rows)
	return newServer(model, o.name, key, o.limits, log).serve(ctx, listener, o.grace)
}

// check reads what the flags name.
func (o *options) check() (log *slog.Logger, key string, err error) {
	switch {
	case o.model == "":
		return nil, "", errors.New("no model is given; give -model FOLDER")
	case o.limits.tokens < 1 || o.limits.choices < 1 || o.limits.body < 1 || o.limits.time <= 0 || o.lm.Rows < 1 || o.lm.Queue < 1 || o.grace < 0:
		return nil, "", errors.New("-rows, -queue, -max-tokens, -max-choices, -max-body and -timeout must be above 0, and -grace at least 0")
	}
	if o.limits.choices > o.lm.Queue {
		return nil, "", fmt.Errorf("-max-choices %d: all choices of a request join the queue at once, so -queue must be as large", o.limits.choices)
	}
	switch o.log {
	case "text":
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	case "json":
		log = slog.New(slog.NewJSONHandler(os.Stderr, nil))
	default:
		return nil, "", fmt.Errorf("-log %s: expected text or json", o.log)
	}
	if o.name == "" {
		path, err := filepath.Abs(o.model)
		if err != nil {
			return nil, "", err
		}
		if strings.HasSuffix(path, ".onnx") {
			path = lm.Folder(path)
		}
		o.name = filepath.Base(path)
	}
	if o.keyFile == "" {
		return log, os.Getenv(keyVariable), nil
	}
	b, err := os.ReadFile(o.keyFile)
	if err != nil {
		return nil, "", err
	}
	if key = strings.TrimSpace(string(b)); key == "" {
		return nil, "", fmt.Errorf("%s is empty: write the key into it", o.keyFile)
	}
	return log, key, nil
}

// serve answers until ctx ends. Then it takes no new requests and lets answers go on for a while.
func (s *server) serve(ctx context.Context, listener net.Listener, grace time.Duration) error {
	requests, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	handler := s.handler()
	if address, _ := listener.Addr().(*net.TCPAddr); address != nil && address.IP.IsLoopback() {
		handler = localHost(handler)
	}
	web := &http.Server{
		Handler:           handler,
		MaxHeaderBytes:    1 << 16,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.log.Info("shutting down", "grace", grace)
	wait, stop := context.WithTimeout(context.Background(), grace)
	defer stop()
	if web.Shutdown(wait) == nil {
		return nil
	}
	cancel(errShutdown)
	last, stop := context.WithTimeout(context.Background(), s.limits.wait) // for the answers to say so
	defer stop()
	return errors.Join(web.Shutdown(last), web.Close())
}
