// Package testmodel runs small models of tests in ONNX Runtime.
//
// A test makes a model, or a few nodes in one, and says what it is fed with and which values
// it wants. Tests call testruntime.Require first, which finds ONNX Runtime.
package testmodel

import (
	"context"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Run runs a model once, in this process and without the op library, on one thread. feeds
// are its inputs by name; outputs are the names of the outputs that are returned.
func Run(m *onnx.Model, feeds map[string]engine.Tensor, outputs ...string) (map[string]engine.Tensor, error) {
	load := engine.Model{Outputs: outputs}
	for name := range feeds {
		load.Inputs = append(load.Inputs, name)
	}
	var err error
	if load.Bytes, err = m.Marshal(); err != nil {
		return nil, err
	}
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		return nil, err
	}
	defer eng.Close()
	session, err := eng.Load(context.Background(), load)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	return session.Run(context.Background(), feeds)
}
