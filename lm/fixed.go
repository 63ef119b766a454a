package lm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/offheap"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/internal/signature"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// fixed keeps keys and values in buffers [rows, heads, capacity, size]. A call reads and continues the
// buffers of rows that stand side by side: past input and present output are the same memory, so that the op
// writes the new tokens in place, and a token costs no copy that grows with the context.
type fixed struct {
	*Decoder
	rows    int64
	buffers [][]byte // one per cache
	single  *fixedCall
	pieces  *fixedCall
	scores  []float32 // of logits of 16 bits
}

func newFixed(d *Decoder, rows int) (*fixed, error) {
	f := &fixed{Decoder: d, rows: int64(rows)}
	for i, c := range d.signature.Caches {
		buffer, err := offheap.Make(int(f.rows * c.Heads * c.Rows * c.Size * int64(d.cacheType(i).Size())))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("a cache of %d rows of %d tokens: %w", rows, c.Rows, err), f.close())
		}
		f.buffers = append(f.buffers, buffer)
	}
	return f, nil
}

// part is what one row of a call computes: tokens behind those that its buffers hold.
type part struct {
	tokens    []int64
	past      int64
	documents []int64 // of the past and the new tokens
}

// fixedCall are the tensors of a call of so many rows and tokens. They are made once, and their numbers are
// overwritten for the next call of the same kind.
type fixedCall struct {
	first, batch, tokens int64

	inputs, outputs, all []tensor
	numbers              map[signature.Role][]byte // those that differ from call to call
	logits               []byte
}

// smallLogits are kept beside those of a single token. A piece of a prompt can have 200 MB of them.
const smallLogits = 1 << 20

func (c *fixedCall) close() error {
	if c == nil {
		return nil
	}
	return closeAll(c.all)
}

// prepared are the tensors of a call of the rows from first on. Those of single tokens and those of pieces of
// prompts are kept.
func (f *fixed) prepared(first, batch, tokens int64) (*fixedCall, error) {
	at := &f.pieces
	if tokens == 1 {
		at = &f.single
		if f.pieces != nil && len(f.pieces.logits) > smallLogits {
			err := f.pieces.close()
			if f.pieces = nil; err != nil {
				return nil, err
			}
		}
	}
	if c := *at; c != nil && c.first == first && c.batch == batch && c.tokens == tokens {
		return c, nil
	}
	if err := (*at).close(); err != nil {
		return nil, err
	}
	c, err := f.prepare(first, batch, tokens)
	if err != nil {
		c, err = nil, errors.Join(err, c.close())
	}
	*at = c
	return c, err
}

func (f *fixed) prepare(first, batch, tokens int64) (*fixedCall, error) {
	s := f.signature
	c := &fixedCall{first: first, batch: batch, tokens: tokens, numbers: map[signature.Role][]byte{}, outputs: make([]tensor, len(s.Outputs))}
	add := func(t onnx.DataType, data []byte, dims ...int64) (tensor, error) {
		v, err := newTensor(t, data, dims...)
		if err == nil {
			c.all = append(c.all, v)
		}
		return v, err
	}
	caches := make([]tensor, len(f.buffers))
	var err error
	for i, k := range s.Caches {
		row := k.Heads * k.Rows * k.Size * int64(f.cacheType(i).Size())
		if caches[i], err = add(f.cacheType(i), f.buffers[i][first*row:][:batch*row], batch, k.Heads, k.Rows, k.Size); err != nil {
			return c, err
		}
		c.outputs[slices.Index(s.Outputs, k.Present)] = caches[i] // the same memory: tokens are written in place
	}
	// What lies ahead of a row's tokens is not seen, so the mask is all ones, as is what a ring takes it to be
	// behind its last column.
	call := signature.Call{
		Batch: batch, Length: tokens, IDs: make([]int64, batch*tokens), Positions: make([]int64, batch*tokens),
		Mask: slices.Repeat([]int64{1}, int(batch*s.Rows)), Documents: make([]int64, batch*s.Rows), Pasts: make([]int64, batch),
	}
	for _, in := range s.Inputs {
		if in.Role == signature.Past {
			c.inputs = append(c.inputs, caches[in.Cache])
			continue
		}
		values, dims := call.Feed(in)
		data, err := integers(in.Type, values)
		if err != nil {
			return c, fmt.Errorf("input %s: %w", short.Name(in.Name), err)
		}
		c.numbers[in.Role] = data
		t, err := add(in.Type, data, dims...)
		if err != nil {
			return c, fmt.Errorf("input %s: %w", short.Name(in.Name), err)
		}
		c.inputs = append(c.inputs, t)
	}
	if s.Takes(signature.Places) {
		tokens = 1
	}
	c.logits = make([]byte, batch*tokens*s.Vocabulary*int64(s.LogitsType.Size()))
	c.outputs[slices.Index(s.Outputs, s.Logits)], err = add(s.LogitsType, c.logits, batch, tokens, s.Vocabulary)
	return c, err
}

// call runs the model on the rows from first on, which have the same number of new tokens. The logits have
// the rows one after another.
func (f *fixed) call(ctx context.Context, first int64, parts []part) (_ Logits, err error) {
	s, n := f.signature, int64(len(parts[0].tokens))
	for _, p := range parts {
		if s.Capacity > 0 && p.past+n > s.Capacity {
			return Logits{}, &ContextError{Tokens: int(p.past + n), Context: int(s.Capacity), Cache: true}
		}
	}
	c, err := f.prepared(first, int64(len(parts)), n)
	if err != nil {
		return Logits{}, err
	}
	for i, p := range parts {
		row := int64(i) * n
		for j, token := range p.tokens {
			c.put(signature.Tokens, row+int64(j), token)
			c.put(signature.Positions, row+int64(j), p.past+int64(j))
		}
		c.put(signature.CacheLength, int64(i), p.past)
		if s.Takes(signature.Documents) {
			for j, document := range p.documents {
				c.put(signature.Documents, int64(i)*s.Rows+int64(j), document)
			}
		}
	}
	overwritten := f.overwritten(first, parts)
	outputs := slices.Clone(c.outputs)
	err = f.run(ctx, c.inputs, outputs)
	for i, t := range outputs { // what the model gives besides
		if c.outputs[i] == nil && t != nil {
			err = errors.Join(err, t.close())
		}
	}
	if err != nil {
		overwritten.putBack()
		return Logits{}, err
	}
	data := floats(s.LogitsType, c.logits, f.scores[:0])
	if s.LogitsType != onnx.Float {
		f.scores = data
	}
	return Logits{Data: data, Vocabulary: int(s.Vocabulary)}, nil
}

// put writes a number of an input, if the model has it: int64, or int32 of cache_length.
func (c *fixedCall) put(role signature.Role, at, value int64) {
	data := c.numbers[role]
	switch {
	case data == nil:
	case role == signature.CacheLength:
		binary.NativeEndian.PutUint32(data[4*at:], uint32(value))
	default:
		binary.NativeEndian.PutUint64(data[8*at:], uint64(value))
	}
}

func (f *fixed) forward(ctx context.Context, tokens []int64, past int64, documents []int64) (Logits, error) {
	return f.call(ctx, 0, []part{{tokens, past, documents}})
}

// parts walks over the pieces of a buffer that hold the tokens from, to of a row: one of each head. Of a ring that
// has turned it is all of it.
func (f *fixed) parts(i int, row, from, to int64) iter.Seq[[]byte] {
	if rows := f.signature.Caches[i].Rows; to > rows {
		from, to = 0, rows
	}
	return func(yield func([]byte) bool) {
		heads := f.signature.Caches[i].Heads
		head := int64(len(f.buffers[i])) / f.rows / heads
		token := head / f.signature.Caches[i].Rows
		for h := range heads {
			if !yield(f.buffers[i][(row*heads+h)*head:][from*token : to*token]) {
				return
			}
		}
	}
}

// copyRow gives a row the tokens first … last−1 of another.
func (f *fixed) copyRow(to, from, first, last int64) {
	for i := range f.buffers {
		next, stop := iter.Pull(f.parts(i, from, first, last))
		for piece := range f.parts(i, to, first, last) {
			source, _ := next()
			copy(piece, source)
		}
		stop()
	}
}

// swapRows exchanges the first tokens of two rows.
func (f *fixed) swapRows(a, b, tokens int64) {
	var held []byte
	for i := range f.buffers {
		next, stop := iter.Pull(f.parts(i, a, 0, tokens))
		for piece := range f.parts(i, b, 0, tokens) {
			other, _ := next()
			held = append(held[:0], piece...)
			copy(piece, other)
			copy(other, held)
		}
		stop()
	}
}

// copied are the first tokens of every buffer, copied.
type copied struct {
	length  int64
	buffers [][]byte
}

func (*copied) close() error { return nil }

func (*fixed) reserve(int64) {} // all is there

func (f *fixed) keep(length int64) (kept, error) {
	k := &copied{length: length}
	for i := range f.buffers {
		var all []byte
		for piece := range f.parts(i, 0, 0, length) {
			all = append(all, piece...)
		}
		k.buffers = append(k.buffers, all)
	}
	return k, nil
}

// mark keeps rings alone: in other buffers the tokens that are there now are not overwritten.
func (f *fixed) mark() kept {
	k := &copied{length: f.signature.Rows, buffers: make([][]byte, len(f.buffers))}
	for i, c := range f.signature.Caches {
		if c.Ring.Window == 0 {
			continue
		}
		for piece := range f.parts(i, 0, 0, c.Rows) {
			k.buffers[i] = append(k.buffers[i], piece...)
		}
	}
	return k
}

func (f *fixed) restore(k kept) error {
	c, ok := k.(*copied)
	if !ok {
		return fmt.Errorf("a snapshot of another kind of cache: %T", k)
	}
	for i, all := range c.buffers {
		if all == nil {
			continue
		}
		for piece := range f.parts(i, 0, 0, c.length) {
			all = all[copy(piece, all):]
		}
	}
	return nil
}

// truncate needs to change nothing: tokens beyond cache_length are never read.
func (f *fixed) truncate(tokens, length int64) error {
	if !f.reaches(tokens, length) {
		return fmt.Errorf("back from %d tokens to %d: %w", tokens, length, errOverwritten)
	}
	return nil
}

func (f *fixed) close() error {
	err := errors.Join(f.single.close(), f.pieces.close())
	for _, b := range f.buffers {
		err = errors.Join(err, offheap.Free(b))
	}
	f.buffers, f.single, f.pieces = nil, nil, nil
	return err
}

// reaches reports whether the caches, after so many tokens, still have what the first ones of them need to be
// continued.
func (f *fixed) reaches(tokens, first int64) bool {
	for _, c := range f.signature.Caches {
		if !c.Reaches(tokens, first) {
			return false
		}
	}
	return true
}

// usable is how many tokens of what is held begin a text and can be used again. At least one is left to compute,
// whose logits are asked for.
func (f *fixed) usable(h held, row Row) int {
	n := min(commonPrefix(h.tokens, h.documents, row), len(row.Tokens)-1)
	if !f.reaches(int64(len(h.tokens)), int64(n)) {
		return 0
	}
	return n
}

// saved are pieces of buffers, and what they held.
type saved struct{ pieces, held [][]byte }

// overwritten keeps what a call takes away in rings, so that after an error they are as they were.
func (f *fixed) overwritten(first int64, parts []part) (s saved) {
	for i, c := range f.signature.Caches {
		if c.Ring.Window == 0 {
			continue
		}
		for b, p := range parts {
			n := int64(len(p.tokens))
			// The last tokens of the call take the rows of those before them.
			for token := max(p.past, c.Rows, p.past+n-c.Rows); token < p.past+n; token++ {
				row := c.Row(token)
				for piece := range f.parts(i, first+int64(b), row, row+1) {
					s.pieces, s.held = append(s.pieces, piece), append(s.held, append([]byte(nil), piece...))
				}
			}
		}
	}
	return s
}

func (s saved) putBack() {
	for i, piece := range s.pieces {
		copy(piece, s.held[i])
	}
}
