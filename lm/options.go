package lm

import "log/slog"

// Options says how to run a model. The zero value is usual.
type Options struct {
	Threads    int    // of one operator; 0 leaves it to ONNX Runtime
	OpsLibrary string // librope_ops.so; empty searches for it, if the model has the op (customop.FindLibrary)
	Chunk      int    // tokens of one call of a long prompt; 0 is 512, or all where the model's frequencies depend on the length of a call
	Folder     string // where tokenizer.json and the configurations are; empty is the model's own folder (Open alone reads them)

	// Require refuses a model with the op where the library is missing or too old. Else it runs on its
	// fallback, more slowly, and Log gets one line that says so.
	Require bool
	Log     *slog.Logger // nil is slog.Default()

	// Context is the most tokens of a text (Open alone). 0 is what the configuration says, and below 0 is any number.
	Context int

	// Rows is how many texts are generated at the same time. A model with a cache of fixed capacity (--kv
	// fixed) then has one cache with so many rows, and each step of all texts is one call. Another model has
	// one cache for each text. 0 is one cache for each text, and any number of them.
	Rows int
	// Queue is how many callers may wait for a row; 0 is 4 × Rows. Further ones get ErrQueueFull.
	Queue int

	Providers    []Provider // execution providers, the preferred one first; none is the CPU
	NoArena      bool       // memory comes from the system each time, slower, and seen by a profiler of the heap
	NoPrepacking bool       // weights stay mapped from their file, shared by processes, and products are slower
}

// Provider is an execution provider of ONNX Runtime, by the name and options of
// SessionOptionsAppendExecutionProvider, such as "XNNPACK". That call does not know CUDA.
type Provider struct {
	Name    string
	Options map[string]string
}
