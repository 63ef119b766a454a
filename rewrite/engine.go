package rewrite

import (
	"cmp"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
)

// engine returns an engine, which must be closed.
func (o Options) engine() (engine.Engine, error) {
	if o.shared == nil {
		return o.newEngine()
	}
	if o.shared.Engine == nil {
		eng, err := o.newEngine()
		if err != nil {
			return nil, err
		}
		o.shared.Engine = eng
	}
	return o.shared, nil
}

func (o Options) newEngine() (engine.Engine, error) {
	c := engine.Config{Runtime: o.Runtime, Library: o.Library, Threads: 1, Memory: cmp.Or(o.Memory, defaultMemory)}
	if len(o.Worker) == 0 {
		return engine.NewLocal(c)
	}
	w, err := engine.NewWorker(c, o.Worker[0], o.Worker[1:]...)
	if o.exceeded == nil {
		return w, err
	}
	limited := watched{w, o.exceeded}
	return limited, limited.look(err)
}

// sharedEngine is the one engine of a rewrite, made when it is first needed: a worker
// takes longer to start than most of what it evaluates.
type sharedEngine struct{ engine.Engine }

// Close does nothing: others use the engine too.
func (*sharedEngine) Close() error { return nil }

func (s *sharedEngine) close() {
	if s.Engine != nil {
		_ = s.Engine.Close() // what it evaluated is there
	}
}
