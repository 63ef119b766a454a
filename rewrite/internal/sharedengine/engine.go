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

	Prover Prover // another runtime that sites are proven with; the zero value is none

	// Open makes the engine; nil does so by the fields above. Limited takes it from its context.
	Open engine.Opener

	opened   engine.Engine
	prover   engine.Engine // by Prover
	exceeded func()        // called when the engine is refused memory; nil where that concerns its piece alone
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
	return e.openAs(engine.Config{Runtime: e.Runtime})
}

// openAs opens an engine with the runtime and the provider of a configuration.
func (e *Engine) openAs(c engine.Config) (engine.Engine, error) {
	c.Library, c.Threads, c.Memory = e.Library, 1, cmp.Or(e.Memory, defaultMemory)
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
	for _, opened := range []engine.Engine{e.opened, e.prover} {
		if opened != nil {
			_ = opened.Close() // what it evaluated is there
		}
	}
}
