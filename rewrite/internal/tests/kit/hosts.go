package kit

import (
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// Host is one way in which what the rewriter writes is run.
type Host struct {
	Name   string
	target rewrite.Target
	engine func(engine.Engine) engine.Engine
}

// Hosts are those that a product has to be the same in.
func Hosts() []Host {
	return []Host{
		{"library", rewrite.Ops, func(e engine.Engine) engine.Engine { return e }},
		{"definition", rewrite.Ops, func(e engine.Engine) engine.Engine { return Unregistered{e} }},
		{"target onnx", rewrite.PlainONNX, func(e engine.Engine) engine.Engine { return Unregistered{e} }},
	}
}

// Open patches a model for the host and loads it there.
func (h Host) Open(t *testing.T, path string, opts rewrite.Options) *decoder.Decoder {
	t.Helper()
	opts.Target = h.target
	patched, _ := Patch(t, path, opts)
	d, err := decoder.Open(t.Context(), h.engine(Local(t)), patched, decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}
