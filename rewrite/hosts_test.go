package rewrite_test

import (
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// host is one way in which what the rewriter writes is run.
type host struct {
	name   string
	target rewrite.Target
	engine func(engine.Engine) engine.Engine
}

// hosts are those that a product has to be the same in.
func hosts() []host {
	return []host{
		{"library", rewrite.Ops, func(e engine.Engine) engine.Engine { return e }},
		{"definition", rewrite.Ops, func(e engine.Engine) engine.Engine { return unregistered{e} }},
		{"target onnx", rewrite.PlainONNX, func(e engine.Engine) engine.Engine { return unregistered{e} }},
	}
}

// open patches a model for the host and loads it there.
func (h host) open(t *testing.T, path string, opts rewrite.Options) *decoder.Decoder {
	t.Helper()
	opts.Target = h.target
	patched, _ := patch(t, path, opts)
	d, err := decoder.Open(t.Context(), h.engine(local(t)), patched, decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}
