package lm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/internal/signature"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// growing hands the present outputs of a call to the next as its past: ONNX
// Runtime makes a cache one token longer at each. Outputs are written into memory of this
// package's, by turns into one of two buffers per cache: what the runtime makes of outputs that
// it is not given are copies.
type growing struct {
	*Decoder
	past   *values   // nil when the cache is empty
	spare  [][]byte  // buffers that nobody reads any more, one per cache
	scores []byte    // where the logits stand
	buffer []float32 // the same as float32, of logits of 16 bits
	most   int64     // tokens that are expected
}

// values are the caches after some tokens. Nothing writes into them, so that several may
// hold them: a sequence, and snapshots.
type values struct {
	tokens  int64
	list    []tensor // one per cache
	buffers [][]byte // that they stand in
	holders atomic.Int32
}

func (v *values) held() *values {
	if v != nil {
		v.holders.Add(1)
	}
	return v
}

// close lets go of the values, and frees them where nobody else holds them.
func (v *values) close() error {
	if v == nil || v.holders.Add(-1) > 0 {
		return nil
	}
	return closeAll(v.list)
}

func closeAll(tensors []tensor) error {
	var errs []error
	for _, t := range tensors {
		if t != nil {
			errs = append(errs, t.close())
		}
	}
	return errors.Join(errs...)
}

// moreRows is how many tokens a cache may grow by before it takes new memory.
func moreRows(rows int64) int64 { return rows + rows/8 + 64 }

// next makes the present caches of so many tokens, in the spare buffers where these are large
// enough.
func (g *growing) next(tokens int64) (*values, error) {
	v := &values{tokens: tokens, buffers: make([][]byte, len(g.signature.Caches))}
	v.holders.Store(1)
	for i, c := range g.signature.Caches {
		row := c.Heads * c.Size * int64(g.cacheType(i).Size())
		if i < len(g.spare) && int64(len(g.spare[i])) >= tokens*row {
			v.buffers[i] = g.spare[i]
		} else {
			v.buffers[i] = make([]byte, max(moreRows(tokens), g.most)*row)
		}
		t, err := newTensor(g.cacheType(i), v.buffers[i][:tokens*row], 1, c.Heads, tokens, c.Size)
		if err != nil {
			return nil, errors.Join(err, closeAll(v.list))
		}
		v.list = append(v.list, t)
	}
	return v, nil
}

// cacheType is the element type of a cache.
func (d *Decoder) cacheType(cache int) onnx.DataType {
	at := slices.IndexFunc(d.signature.Inputs, func(in signature.Input) bool { return in.Role == signature.Past && in.Cache == cache })
	return d.signature.Inputs[at].Type
}

func (g *growing) forward(ctx context.Context, tokens []int64, past int64, documents []int64) (_ Logits, err error) {
	n := int64(len(tokens))
	inputs, own, err := g.feed(signature.Call{
		Batch: 1, Length: n, IDs: tokens, Documents: documents,
		Positions: count(past, make([]int64, n)), Mask: slices.Repeat([]int64{1}, int(past+n)),
	})
	defer func() { err = errors.Join(err, closeAll(own)) }()
	if err != nil {
		return Logits{}, err
	}
	present, err := g.next(past + n)
	if err != nil {
		return Logits{}, err
	}
	g.spare = present.buffers
	logits, err := g.newLogits(n)
	if err != nil {
		return Logits{}, errors.Join(err, present.close())
	}
	s := g.signature
	outputs := make([]tensor, len(s.Outputs))
	at := slices.Index(s.Outputs, s.Logits)
	outputs[at] = logits
	for i, c := range s.Caches {
		outputs[slices.Index(s.Outputs, c.Present)] = present.list[i]
	}
	given := slices.Clone(outputs)
	err = g.run(ctx, inputs, outputs)
	var besides []tensor // what was made here, and what the model gives besides
	for i, t := range outputs {
		if given[i] == nil || i == at {
			besides = append(besides, t)
		}
	}
	defer func() { err = errors.Join(err, closeAll(besides)) }()
	if err != nil {
		return Logits{}, errors.Join(err, present.close())
	}
	shape := outputs[at].shape()
	if len(shape) != 3 {
		return Logits{}, errors.Join(fmt.Errorf("output %s has the shape %v, want [batch, tokens, vocabulary]", s.Logits, shape), present.close())
	}
	data := floats(s.LogitsType, outputs[at].bytes(), g.buffer[:0])
	if s.LogitsType != onnx.Float {
		g.buffer = data
	}
	g.replace(present)
	return Logits{Data: data, Vocabulary: int(shape[2])}, nil
}

// replace takes other values in the place of the past ones, whose buffers are used again if nobody else
// reads them.
func (g *growing) replace(v *values) {
	old := g.past
	g.past, g.spare = v, nil
	if old != nil && old.close() == nil && old.holders.Load() == 0 {
		g.spare = old.buffers
	}
}

// newLogits makes the output of the logits, where the model says how many there are.
func (g *growing) newLogits(tokens int64) (tensor, error) {
	s := g.signature
	if s.Vocabulary == 0 {
		return nil, nil
	}
	if s.Takes(signature.Places) {
		tokens = 1
	}
	size := tokens * s.Vocabulary * int64(s.LogitsType.Size())
	if int64(len(g.scores)) < size || int64(len(g.scores)) > 4*size {
		g.scores = make([]byte, size) // those of a prompt are not kept for single tokens
	}
	return newTensor(s.LogitsType, g.scores[:size], 1, tokens, s.Vocabulary)
}

// feed makes the inputs of a call. own are the tensors to close behind the call.
func (g *growing) feed(call signature.Call) (inputs, own []tensor, err error) {
	for _, in := range g.signature.Inputs {
		var t tensor
		switch {
		case in.Role != signature.Past:
			values, dims := call.Feed(in)
			var data []byte
			if data, err = integers(in.Type, values); err == nil {
				t, err = newTensor(in.Type, data, dims...)
			}
		case g.past != nil:
			inputs = append(inputs, g.past.list[in.Cache])
			continue
		default:
			t, err = emptyCache(in, g.signature.Caches[in.Cache], call.Batch)
		}
		if err != nil {
			return nil, own, fmt.Errorf("input %s: %w", short.Name(in.Name), err)
		}
		own, inputs = append(own, t), append(inputs, t)
	}
	return inputs, own, nil
}

func emptyCache(in signature.Input, c signature.Cache, batch int64) (tensor, error) {
	dims := c.Dims(batch)
	size := int64(in.Type.Size())
	for _, n := range dims {
		size *= n
	}
	return newTensor(in.Type, make([]byte, size), dims...)
}

func (g *growing) reserve(tokens int64) { g.most = moreRows(tokens) }

// truncate copies the tokens that stay: a cache [heads, tokens, size] has them in pieces.
func (g *growing) truncate(_, length int64) error {
	if length == 0 || g.past == nil {
		return g.forget()
	}
	if length == g.past.tokens {
		return nil
	}
	shorter, err := g.next(length)
	if err != nil {
		return err
	}
	for i, c := range g.signature.Caches {
		row := c.Size * int64(g.cacheType(i).Size())
		for h := range c.Heads {
			copy(shorter.buffers[i][h*length*row:][:length*row], g.past.buffers[i][h*g.past.tokens*row:])
		}
	}
	g.replace(shorter)
	return nil
}

func (g *growing) keep(int64) (kept, error) { return g.past.held(), nil }

func (g *growing) mark() kept { return g.past.held() }

func (g *growing) restore(k kept) error {
	past := k.(*values).held()
	err := g.forget()
	g.past = past
	return err
}

// forget lets go of the cache and the logits.
func (g *growing) forget() error {
	err := g.past.close()
	g.past, g.spare, g.scores, g.most = nil, nil, nil, 0
	return err
}

func (g *growing) close() error { return g.forget() }

// count fills a slice with the numbers from first on.
func count(first int64, into []int64) []int64 {
	for i := range into {
		into[i] = first + int64(i)
	}
	return into
}
