package sharedengine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
)

// ErrMemory says that the work needs more memory than is allowed.
var ErrMemory = errors.New("more memory is needed than allowed")

// Limited returns a context that ends, with ErrMemory as its cause, when this process or its worker
// takes more than Memory bytes. It looks in ctx for engine.WithOpener. Call end when the work is done.
func (e *Engine) Limited(ctx context.Context) (_ context.Context, end func()) {
	if open := engine.OpenerOf(ctx); open != nil {
		e.Open = open
	}
	if e.Memory == 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	exceeded := func() { cancel(fmt.Errorf("%w (%d MB)", ErrMemory, e.Memory>>20)) }
	e.exceeded = exceeded
	before := debug.SetMemoryLimit(int64(e.Memory)) // collect garbage before more is taken
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				if held() > e.Memory {
					exceeded()
				}
			}
		}
	}()
	return ctx, func() {
		close(done)
		debug.SetMemoryLimit(before)
		cancel(nil)
	}
}

// held returns the bytes that this program's own code has of the system.
func held() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

// watched tells when an engine was refused memory: what that says of a piece is
// nothing about the piece.
type watched struct {
	engine.Engine
	exceeded func()
}

func (w watched) Load(ctx context.Context, m engine.Model) (engine.Session, error) {
	s, err := w.Engine.Load(ctx, m)
	return watchedSession{s, w}, w.look(err)
}

func (w watched) look(err error) error {
	if errors.Is(err, engine.ErrMemory) {
		w.exceeded()
	}
	return err
}

type watchedSession struct {
	engine.Session
	by watched
}

func (s watchedSession) Run(ctx context.Context, feeds map[string]engine.Tensor) (map[string]engine.Tensor, error) {
	results, err := s.Session.Run(ctx, feeds)
	return results, s.by.look(err)
}

func (s watchedSession) RunAll(ctx context.Context, calls []engine.Call) ([]map[string]engine.Tensor, error) {
	below := make([]engine.Call, len(calls))
	for i, c := range calls {
		below[i] = engine.Call{Session: c.Session.(watchedSession).Session, Feeds: c.Feeds}
	}
	results, err := engine.RunAll(ctx, below)
	return results, s.by.look(err)
}
