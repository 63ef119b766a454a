package lm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/signature"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// usualChunk keeps the memory of a call small, and costs little time.
const usualChunk = 512

// Decoder is a loaded model: tokens in, logits out. Many goroutines may use it at the same time, each with a
// Sequence of its own.
type Decoder struct {
	session   session
	signature *signature.Signature
	chunk     int
	whole     bool // the frequencies depend on the length of a call
	gate      gate // of calls
}

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
	d.whole = byLength(model)
	if d.signature.Length == 1 {
		if d.whole {
			return nil, fmt.Errorf("%s takes one token a call, but its frequencies depend on the length of a call: rewrite it with length=context", filepath.Base(path))
		}
		options.Chunk = 1 // a prompt is computed token by token, too
	}
	if d.chunk = options.Chunk; d.chunk == 0 {
		d.chunk = usualChunk
		if d.whole {
			d.chunk = math.MaxInt
		}
	}
	d.session, err = openSession(path, model, inputNames(d.signature), d.signature.Outputs, d.signature.Rows > 0, options)
	if err != nil {
		return nil, err
	}
	d.gate.free = d.session.close
	return d, nil
}

func inputNames(s *signature.Signature) (names []string) {
	for _, in := range s.Inputs {
		names = append(names, in.Name)
	}
	return names
}

// byLength reports whether the frequencies of a model's ops depend on the length of a call,
// so that a prompt in pieces means something else than in one.
func byLength(model *onnx.Model) bool {
	for n := range model.Graph.AllNodes() {
		if n.Domain == customop.Domain && n.Int("trained_length", 0) > 0 {
			return true
		}
	}
	return false
}

// Close frees the model. A call that runs ends first; sequences then give ErrClosed. They have memory of
// their own, which their Close frees.
func (d *Decoder) Close() error { return d.gate.close() }

// run is one call of the model.
func (d *Decoder) run(ctx context.Context, inputs, outputs []tensor) (err error) {
	if err := d.gate.enter(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.gate.leave()) }()
	return d.session.run(ctx, inputs, outputs)
}

// Capacity is the number of tokens that a cache can hold; 0 when it grows, or when new tokens take the place of the
// oldest in every layer.
func (d *Decoder) Capacity() int { return int(d.signature.Capacity) }

// CacheRows is the number of rows of the longest buffer of a cache of fixed capacity; 0 when caches grow.
func (d *Decoder) CacheRows() int { return int(d.signature.Rows) }

// Documents reports whether the model takes document ids (Row.Documents): it was patched with --documents
// or a mask by documents. Another model pays no attention to them.
func (d *Decoder) Documents() bool { return d.signature.Takes(signature.Documents) }

// WholePrompts reports whether the model's frequencies depend on the length of a call,
// so that a prompt in several calls gives another result than in one.
func (d *Decoder) WholePrompts() bool { return d.whole }

// TokenBytes is what the keys and values of one token take in a cache, in bytes. A cache that
// grows stands in memory twice while a call runs.
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

// known refuses tokens that the model has no scores for.
func (d *Decoder) known(tokens []int64) error {
	for i, t := range tokens {
		if v := d.signature.Vocabulary; t < 0 || v > 0 && t >= v {
			return &TokenError{Token: t, Place: i, Vocabulary: int(v)}
		}
	}
	return nil
}

// Logits are the scores of the next token after each token of a call, or of the last one
// alone in a model of --logits last. They are valid until the next call of the sequence: at
// 4,096 tokens they can be 800 MB, too much to copy unasked.
type Logits struct {
	Data       []float32 // [tokens, vocabulary] or [1, vocabulary]
	Vocabulary int
}

// Last is the row after the last token.
func (l Logits) Last() []float32 { return l.Data[len(l.Data)-l.Vocabulary:] }

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
