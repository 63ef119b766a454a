package lm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/internal/signature"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Options says how to run a model. The zero value is usual.
type Options struct {
	Threads    int    // of one operator; 0 leaves it to ONNX Runtime
	OpsLibrary string // librope_ops.so; empty searches for it, if the model has the op (customop.FindLibrary)
	Require    bool   // a model with the op is refused where the library is missing or too old; else it runs on its fallback, more slowly
	Chunk      int    // tokens of one call of a long prompt; 0 is 512, or all where the model's frequencies depend on the length of a call
	Folder     string // where tokenizer.json and the configurations are; empty is the model's own folder (Open alone reads them)
	NoArena    bool   // memory comes from the system each time, slower, and seen by a profiler of the heap
}

// usualChunk keeps the memory of a call small, and costs little time.
const usualChunk = 512

// Decoder is a loaded model and the cache of one sequence.
// It must not be used by several goroutines at once.
type Decoder struct {
	session   *ort.DynamicAdvancedSession
	signature *signature.Signature
	memory    memory
	chunk     int
	whole     bool    // the frequencies depend on the length of a call
	length    int64   // tokens in the cache
	documents []int64 // their ids, if the model takes any
}

// memory keeps keys and values between calls: a cache that grows, or one of
// fixed capacity.
type memory interface {
	// forward runs tokens after past ones. After an error what was kept for the
	// past ones is unchanged.
	forward(tokens []int64, past int64, documents []int64) (Logits, error)
	// reserve tells how many tokens there will be soon.
	reserve(tokens int64)
	// keep returns what the first tokens left, for restore.
	keep(length int64) (kept, error)
	// restore puts it back, any number of times.
	restore(k kept) error
	// mark is keep for the tokens that are there now, at no cost, until the next restore or reset.
	mark() kept
	// reset forgets all tokens.
	reset() error
	// close frees everything.
	close() error
}

// kept is the part of a cache that a Snapshot holds.
type kept interface{ close() error }

// OpenDecoder loads the model at path, without the other files of its folder. The ONNX
// Runtime library must have been initialised (customop.InitRuntime).
func OpenDecoder(path string, options Options) (_ *Decoder, err error) {
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
	if err := registerOps(so, model, options); err != nil {
		return nil, err
	}
	d.whole = byLength(model)
	if d.chunk = options.Chunk; d.chunk == 0 {
		d.chunk = usualChunk
		if d.whole {
			d.chunk = math.MaxInt
		}
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

// WholePrompts reports whether the model's frequencies depend on the length of a call,
// so that a prompt in several calls gives another result than in one.
func (d *Decoder) WholePrompts() bool { return d.whole }

// TokenBytes is what the keys and values of one token take in the cache, in bytes. A growing
// cache is in memory twice while a call runs.
func (d *Decoder) TokenBytes() int64 {
	total := int64(0)
	for _, in := range d.signature.Inputs {
		if in.Role == signature.Past {
			c := d.signature.Caches[in.Cache]
			total += c.Heads * c.Size * int64(in.Type.Size())
		}
	}
	return total
}

// Vocabulary is the number of scores that a token has; 0 where the model does not say.
func (d *Decoder) Vocabulary() int { return int(d.signature.Vocabulary) }

// Logits are the scores of the next token after each token of a call, or of the last one
// alone in a model of --logits last. They are valid until the next call of the decoder: at
// 4,096 tokens they can be 800 MB, too much to copy unasked.
type Logits struct {
	Data       []float32 // [tokens, vocabulary] or [1, vocabulary]
	Vocabulary int
}

// Last is the row after the last token.
func (l Logits) Last() []float32 { return l.Data[len(l.Data)-l.Vocabulary:] }

// Prefill runs the model on a prompt in chunks (Options.Chunk), so that the memory of a call
// does not grow with it. The logits are those of the last chunk. The context is checked
// between two chunks. After an error the cache is unchanged.
func (d *Decoder) Prefill(ctx context.Context, tokens []int64) (Logits, error) {
	return d.PrefillPacked(ctx, slices.Repeat([]int64{1}, len(tokens)), tokens)
}

// PrefillPacked is Prefill with a document id for each token.
func (d *Decoder) PrefillPacked(ctx context.Context, documents, tokens []int64) (logits Logits, err error) {
	if len(documents) != len(tokens) {
		return Logits{}, fmt.Errorf("%d tokens are given, but document ids for %d", len(tokens), len(documents))
	}
	if free := d.Capacity() - d.Length(); d.Capacity() > 0 && len(tokens) > free {
		return Logits{}, fmt.Errorf("%d tokens do not fit into the cache, which has room for %d of its %d tokens; rewrite the original with a larger --kv fixed:capacity", len(tokens), free, d.Capacity())
	}
	d.memory.reserve(d.length + int64(len(tokens)))
	before, length, ids := d.memory.mark(), d.length, d.documents
	defer func() {
		if err != nil && d.length > length {
			err = errors.Join(err, d.memory.restore(before))
			d.length, d.documents = length, ids
		}
		err = errors.Join(err, before.close())
	}()
	for first := true; first || len(tokens) > 0; first = false {
		if err := ctx.Err(); err != nil {
			return Logits{}, err
		}
		n := min(d.chunk, len(tokens))
		if logits, err = d.ForwardPacked(documents[:n], tokens[:n]); err != nil {
			return Logits{}, err
		}
		documents, tokens = documents[n:], tokens[n:]
	}
	return logits, nil
}

// Forward runs the model on further tokens of the sequence in one call and keeps their
// keys and values. After an error the cache is unchanged. To a
// model with document ids the tokens belong to document 1.
func (d *Decoder) Forward(tokens []int64) (Logits, error) { return d.ForwardIn(1, tokens) }

// ForwardIn is Forward with tokens that all belong to one document (or are the
// anchor, or a reader), for models with document ids.
func (d *Decoder) ForwardIn(document int64, tokens []int64) (Logits, error) {
	return d.ForwardPacked(slices.Repeat([]int64{document}, len(tokens)), tokens)
}

// ForwardPacked is Forward with a document id for each token.
func (d *Decoder) ForwardPacked(documents, tokens []int64) (Logits, error) {
	switch {
	case len(tokens) == 0:
		return Logits{}, errors.New("no tokens to run the model on")
	case len(documents) != len(tokens):
		return Logits{}, fmt.Errorf("%d tokens are given, but document ids for %d", len(tokens), len(documents))
	}
	if err := d.known(tokens); err != nil {
		return Logits{}, err
	}
	if d.signature.Takes(signature.Documents) {
		documents = slices.Concat(d.documents, documents)
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

// known refuses tokens that the model has no scores for.
func (d *Decoder) known(tokens []int64) error {
	for i, t := range tokens {
		if v := d.signature.Vocabulary; t < 0 || v > 0 && t >= v {
			return fmt.Errorf("token %d of the call is %d, and the model has %d tokens, from 0 on", i, t, v)
		}
	}
	return nil
}

// Reset empties the cache.
func (d *Decoder) Reset() error {
	d.length, d.documents = 0, nil
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
		if t, ok := v.(*ort.CustomDataTensor); v != nil && (!ok || t != nil) { // the binding gives such a nil beside an error
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
