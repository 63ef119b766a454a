package engine

import "context"

// Open returns an engine: a worker where a command is given, a program that calls
// ServeIfWorker, else one in this process, which a hostile graph may end.
func Open(c Config, worker []string) (Engine, error) {
	if len(worker) == 0 {
		return NewLocal(c)
	}
	return NewWorker(c, worker[0], worker[1:]...)
}

// Opener makes an engine.
type Opener func(Config) (Engine, error)

type openerKey struct{}

// WithOpener gives rewrites under the context engines of the caller's own, for example such that remember what
// they evaluated (internal/testengine).
func WithOpener(ctx context.Context, open Opener) context.Context {
	return context.WithValue(ctx, openerKey{}, open)
}

// OpenerOf is what WithOpener gave a context; nil without.
func OpenerOf(ctx context.Context) Opener {
	open, _ := ctx.Value(openerKey{}).(Opener)
	return open
}
