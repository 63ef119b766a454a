package lm

import (
	"errors"
	"fmt"
	"path/filepath"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/internal/signature"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Options says how to run a model. The zero value is usual.
type Options struct {
	Threads    int    // of one operator; 0 leaves it to ONNX Runtime
	OpsLibrary string // librope_ops.so; empty searches for it, if the model needs it
	NoArena    bool   // memory comes from the system each time, slower, and seen by a profiler of the heap
}

// Decoder is a loaded model and the cache of one sequence.
// It must not be used by several goroutines at once.
type Decoder struct {
	session   *ort.DynamicAdvancedSession
	signature *signature.Signature
	memory    memory
	length    int64   // tokens in the cache
	documents []int64 // their ids, if the model takes any
}

// memory keeps keys and values between calls: a cache that grows, or one of
// fixed capacity.
type memory interface {
	// forward runs tokens after past ones. After an error what was kept for the
	// past ones is as it was.
	forward(tokens []int64, past int64, documents []int64) (Logits, error)
	// reset forgets all tokens.
	reset() error
	// close frees everything.
	close() error
}

// Open loads the model at path. The ONNX Runtime library must have been
// initialised (customop.InitRuntime).
func Open(path string, options Options) (_ *Decoder, err error) {
	model, err := onnx.Open(path)
	if err != nil {
		return nil, fmt.Errorf("load the model: %w", err)
	}
	defer model.Close()
	d := &Decoder{}
	if d.signature, err = readSignature(model, filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	so, err := ort.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, so.Destroy()) }()
	// Errors come back as values; ONNX Runtime's own log would say them twice.
	if err := so.SetLogSeverityLevel(ort.LoggingLevelFatal); err != nil {
		return nil, err
	}
	if options.Threads > 0 {
		if err := so.SetIntraOpNumThreads(options.Threads); err != nil {
			return nil, err
		}
	}
	if d.signature.Capacity > 0 {
		// Else ONNX Runtime takes as much memory for a token as for the prompt: it
		// remembers a layout by the inputs' sizes, in a sum in which the ids' and
		// the positions' cancel out, and nothing else changes from call to call.
		if err := so.SetMemPattern(false); err != nil {
			return nil, err
		}
	}
	if options.NoArena {
		if err := so.SetCpuMemArena(false); err != nil {
			return nil, err
		}
	}
	if err := registerOps(so, model, options.OpsLibrary); err != nil {
		return nil, err
	}
	if d.session, err = ort.NewDynamicAdvancedSession(path, inputNames(d.signature), d.signature.Outputs, so); err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	if d.signature.Capacity == 0 {
		d.memory = &growing{Signature: d.signature, session: d.session}
		return d, nil
	}
	if d.memory, err = newFixed(d.session, d.signature); err != nil {
		return nil, errors.Join(err, d.session.Destroy())
	}
	return d, nil
}

func inputNames(s *signature.Signature) (names []string) {
	for _, in := range s.Inputs {
		names = append(names, in.Name)
	}
	return names
}

// Length is the number of tokens that the cache holds.
func (d *Decoder) Length() int { return int(d.length) }

// Capacity is the number of tokens that the cache can hold; 0 when it grows.
func (d *Decoder) Capacity() int { return int(d.signature.Capacity) }

// Logits are the scores of the next token after each token of a call. They
// stand in ONNX Runtime's memory and are valid until the next call of Forward,
// Reset or Close: at 4,096 tokens they can be 800 MB, too much to copy unasked.
type Logits struct {
	Data       []float32 // [tokens, vocabulary]
	Vocabulary int
}

// Last is the row after the last token.
func (l Logits) Last() []float32 { return l.Data[len(l.Data)-l.Vocabulary:] }

// Reader is the document id of tokens that see all documents, such as a
// question; a document's tokens have its number from 1 on, and 0 is the anchor
// that every document sees.
const Reader = -1

// Forward runs the model on further tokens of the sequence and keeps their
// keys and values. After an error the cache is as it was before the call. To a
// model with document ids the tokens belong to document 1.
func (d *Decoder) Forward(tokens []int64) (Logits, error) { return d.ForwardIn(1, tokens) }

// ForwardIn is Forward with tokens that all belong to one document (or are the
// anchor, or a reader), for models with document ids.
func (d *Decoder) ForwardIn(document int64, tokens []int64) (Logits, error) {
	ids := make([]int64, len(tokens))
	for i := range ids {
		ids[i] = document
	}
	return d.ForwardPacked(ids, tokens)
}

// ForwardPacked is Forward with a document id for each token.
func (d *Decoder) ForwardPacked(documents, tokens []int64) (Logits, error) {
	switch {
	case len(tokens) == 0:
		return Logits{}, errors.New("no tokens to run the model on")
	case len(documents) != len(tokens):
		return Logits{}, fmt.Errorf("%d tokens with document ids for %d", len(tokens), len(documents))
	}
	if d.signature.Takes(signature.Documents) {
		documents = append(d.documents, documents...)
	}
	logits, err := d.memory.forward(tokens, d.length, documents)
	if err != nil {
		return Logits{}, fmt.Errorf("run the model on %d tokens after %d: %w", len(tokens), d.length, err)
	}
	d.length += int64(len(tokens))
	if d.signature.Takes(signature.Documents) {
		d.documents = documents
	}
	return logits, nil
}

// Reset forgets the sequence.
func (d *Decoder) Reset() error {
	d.length, d.documents = 0, d.documents[:0]
	return d.memory.reset()
}

// Close frees the cache and the model.
func (d *Decoder) Close() error {
	return errors.Join(d.memory.close(), d.session.Destroy())
}

// destroy frees the values that are not nil.
func destroy(values []ort.Value) error {
	var errs []error
	for _, v := range values {
		if v != nil {
			errs = append(errs, v.Destroy())
		}
	}
	return errors.Join(errs...)
}

// Argmax is the index of the largest score, the first of equal ones.
func Argmax(scores []float32) int64 {
	best := 0
	for i, s := range scores {
		if s > scores[best] {
			best = i
		}
	}
	return int64(best)
}
