package engine

import (
	"context"
	"errors"
	"time"
)

// Config says which ONNX Runtime evaluates and within which bounds.
type Config struct {
	Runtime  string        // path of the ONNX Runtime shared library; empty looks in the usual places
	Library  string        // path of the custom-op library; empty looks in the usual places
	Provider string        // execution provider by ONNX Runtime's short name, such as CUDA; empty is the CPU
	Threads  int           // intra-op threads of a session; 0 lets ONNX Runtime choose
	Timeout  time.Duration // of one Load or Run in a worker; 0 means a minute
	Memory   uint64        // bytes of address space a worker may take beyond its start; 0 means 32 GiB. Without effect where Provider is a GPU's
}

// Model is what a session runs: bytes, or a file.
type Model struct {
	Bytes    []byte
	Path     string // used when Bytes is nil
	Folder   string // where the external data of Bytes lies; empty when there is none
	Inputs   []string
	Outputs  []string
	Optimize bool // graph optimisations on; off keeps every node as the exporter wrote it
	Library  bool // register the custom-op library
	Large    bool // thousands of nodes: loaded without a search for buffers that can be shared

	// Save, if set, is where ONNX Runtime writes the model as it has it. With Optimize only its basic graph
	// optimisations are on then. Large weights go into a file of Save's name with .data behind it.
	Save string
}

// Session runs one loaded model; one call at a time.
type Session interface {
	// Run feeds every input of the model by name and returns its outputs by name.
	Run(ctx context.Context, feeds map[string]Tensor) (map[string]Tensor, error)
	Close() error
}

// Call is one run of a session.
type Call struct {
	Session Session
	Feeds   map[string]Tensor
}

// Several is a session that can be asked for several calls at once, of sessions of the same kind.
type Several interface {
	Session
	// RunAll does what the function RunAll does.
	RunAll(ctx context.Context, calls []Call) ([]map[string]Tensor, error)
}

// RunAll runs sessions of one engine, one after the other, and returns the outputs of each up to the first that
// fails: the error is that of the call behind them. Calls of a worker go there in one message, which for small pieces
// saves most of what they cost.
func RunAll(ctx context.Context, calls []Call) (outputs []map[string]Tensor, _ error) {
	if len(calls) > 0 {
		if s, ok := calls[0].Session.(Several); ok {
			return s.RunAll(ctx, calls)
		}
	}
	for _, c := range calls {
		got, err := c.Session.Run(ctx, c.Feeds)
		if err != nil {
			return outputs, err
		}
		outputs = append(outputs, got)
	}
	return outputs, nil
}

// Engine loads models.
type Engine interface {
	Load(ctx context.Context, m Model) (Session, error)
	// Close ends the engine and every session of it.
	Close() error
}

// ErrDied says that ONNX Runtime ended its own process while it evaluated.
var ErrDied = errors.New("ONNX Runtime ended its own process")

// ErrMemory says that a worker was refused memory beyond the configured bytes.
var ErrMemory = errors.New("the evaluation needs too much memory")

// ErrTimeout says that an evaluation took longer than the configured time.
var ErrTimeout = errors.New("the evaluation took too long")
