package sharedengine

import (
	"cmp"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
)

// defaultMemory bounds a worker when nothing is asked for.
const defaultMemory = 16 << 30

// Engine is the engine of one rewrite.
type Engine struct {
	Runtime string   // path of the ONNX Runtime shared library
	Library string   // path of the op library
	Worker  []string // command of the process that evaluates; nil evaluates in this one
	Memory  uint64   // bytes that this process and, beyond its start, the worker may each take; 0 bounds the worker alone

	// Open makes the engine; nil does so by the fields above. Limited takes it from its context.
	Open engine.Opener

	opened   engine.Engine
	exceeded func() // called when the engine is refused memory; nil where that concerns its piece alone
}

// Get returns the engine.
func (e *Engine) Get() (engine.Engine, error) {
	if e.opened == nil {
		opened, err := e.open()
		if err != nil {
			return nil, err
		}
		e.opened = opened
	}
	return e.opened, nil
}

func (e *Engine) open() (engine.Engine, error) {
	c := engine.Config{Runtime: e.Runtime, Library: e.Library, Threads: 1, Memory: cmp.Or(e.Memory, defaultMemory)}
	switch {
	case e.Open != nil:
		return e.Open(c)
	case len(e.Worker) == 0:
		return engine.NewLocal(c)
	}
	w, err := engine.NewWorker(c, e.Worker[0], e.Worker[1:]...)
	if e.exceeded == nil {
		return w, err
	}
	limited := watched{w, e.exceeded}
	return limited, limited.look(err)
}

// Close closes the engine, if it was opened.
func (e *Engine) Close() {
	if e.opened != nil {
		_ = e.opened.Close() // what it evaluated is there
	}
}
