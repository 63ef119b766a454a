package lm

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/internal/signature"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// fixed keeps keys and values in buffers of one capacity. Each buffer is bound
// to a past input and to the present output that continues it, so that the op
// finds both at one address and writes the new rows in place: a token costs no
// allocation and no copy that grows with the context. Everything else that a
// single token needs is bound once, too, and only overwritten.
type fixed struct {
	*signature.Signature
	session *ort.DynamicAdvancedSession
	binding *ort.IoBinding
	bound   int64 // number of tokens that input_ids, position_ids and logits are bound for

	// The binding keeps no Go reference to what is bound; these do.
	buffers     []ort.Value // one per cache
	cacheLength *ort.Tensor[int32]
	wide        []ort.Value        // as wide as the cache: the mask, document ids
	documents   *ort.Tensor[int64] // one of these; nil if the model takes none
	each        map[signature.Role]*ort.Tensor[int64]
	logits      ort.Value
	scores      []float32 // of logits of 16 bits
}

func newFixed(session *ort.DynamicAdvancedSession, s *signature.Signature) (_ *fixed, err error) {
	f := &fixed{Signature: s, session: session, each: map[signature.Role]*ort.Tensor[int64]{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	if f.binding, err = session.CreateIoBinding(); err != nil {
		return nil, err
	}
	for _, in := range s.Inputs {
		switch in.Role {
		case signature.Past:
			err = f.bindCache(s.Caches[in.Cache], in.Type)
		case signature.CacheLength:
			if f.cacheLength, err = ort.NewEmptyTensor[int32](ort.NewShape(1)); err == nil {
				err = f.binding.BindInput(in.Name, f.cacheLength)
			}
		case signature.Padding: // ones: what lies ahead is not seen anyway
			_, err = f.bindWide(in.Name, 1)
		case signature.Documents:
			f.documents, err = f.bindWide(in.Name, 0)
		case signature.Tokens, signature.Positions, signature.TokenTypes, signature.Places: // of each call
		default:
			err = fmt.Errorf("input %s is not supported with a fixed-capacity cache", in.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	return f, nil
}

// bindCache binds one buffer to a past input and its present output.
func (f *fixed) bindCache(c signature.Cache, t onnx.DataType) error {
	buffer, err := newFloats(t, c.Dims(1)...)
	if err != nil {
		return err
	}
	f.buffers = append(f.buffers, buffer)
	return errors.Join(f.binding.BindInput(c.Past, buffer), f.binding.BindOutput(c.Present, buffer))
}

// bindWide binds an input as wide as the cache, filled with a value.
func (f *fixed) bindWide(name string, value int64) (*ort.Tensor[int64], error) {
	t, err := ort.NewTensor(ort.NewShape(1, f.Capacity), slices.Repeat([]int64{value}, int(f.Capacity)))
	if err != nil {
		return nil, err
	}
	f.wide = append(f.wide, t)
	return t, f.binding.BindInput(name, t)
}

func (f *fixed) forward(tokens []int64, past int64, documents []int64) (Logits, error) {
	n := int64(len(tokens))
	if past+n > f.Capacity {
		return Logits{}, fmt.Errorf("the cache holds %d tokens at most; rewrite the original with a larger --kv fixed:capacity", f.Capacity)
	}
	if err := f.bind(n); err != nil {
		return Logits{}, err
	}
	copy(f.each[signature.Tokens].GetData(), tokens)
	if p := f.each[signature.Positions]; p != nil {
		count(past, p.GetData())
	}
	if f.documents != nil {
		copy(f.documents.GetData()[past:], documents[past:])
	}
	f.cacheLength.GetData()[0] = int32(past)
	if err := f.session.RunWithBinding(f.binding); err != nil {
		return Logits{}, err
	}
	data, err := floats(f.logits, f.scores[:0])
	if f.LogitsType != onnx.Float {
		f.scores = data
	}
	return Logits{Data: data, Vocabulary: int(f.Vocabulary)}, err
}

// bind binds what depends on the number of tokens in a call, unless it is
// bound already: it is for every token after the second.
func (f *fixed) bind(n int64) (err error) {
	if f.bound == n {
		return nil
	}
	if err := f.unbind(); err != nil {
		return err
	}
	rows := n
	for _, in := range f.Inputs {
		dims := ort.NewShape(1, n)
		switch in.Role {
		case signature.Tokens, signature.Positions, signature.TokenTypes:
		case signature.Places:
			dims, rows = ort.NewShape(1), 1
		default:
			continue
		}
		t, err := ort.NewEmptyTensor[int64](dims)
		if err != nil {
			return err
		}
		f.each[in.Role] = t
		if in.Role == signature.Places {
			t.GetData()[0] = -1
		}
		if err := f.binding.BindInput(in.Name, t); err != nil {
			return err
		}
	}
	if f.logits, err = newFloats(f.LogitsType, 1, rows, f.Vocabulary); err != nil {
		return err
	}
	if err := f.binding.BindOutput(f.Logits, f.logits); err != nil {
		return err
	}
	f.bound = n
	return nil
}

// unbind frees what bind made.
func (f *fixed) unbind() error {
	f.bound = 0
	err := destroy([]ort.Value{f.logits})
	for _, t := range f.each {
		err = errors.Join(err, t.Destroy())
	}
	clear(f.each)
	f.logits = nil
	return err
}

// rows are the first tokens of every buffer, copied.
type rows struct {
	length  int64
	buffers [][]byte
}

func (*rows) close() error { return nil }

// parts walks over the parts of a buffer [1, heads, capacity, size] that hold the first tokens.
func (f *fixed) parts(i int, length int64) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		data := bytesOf(f.buffers[i])
		head := int64(len(data)) / f.Caches[i].Heads
		for h := range f.Caches[i].Heads {
			if !yield(data[h*head:][:head/f.Capacity*length]) {
				return
			}
		}
	}
}

func (*fixed) reserve(int64) {} // all is there

func (f *fixed) keep(length int64) (kept, error) {
	k := &rows{length: length}
	for i := range f.buffers {
		var all []byte
		for part := range f.parts(i, length) {
			all = append(all, part...)
		}
		k.buffers = append(k.buffers, all)
	}
	return k, nil
}

// mark needs to keep nothing: the tokens that are there now are not overwritten.
func (f *fixed) mark() kept { return &rows{} }

func (f *fixed) restore(k kept) error {
	r := k.(*rows)
	for i, all := range r.buffers {
		for part := range f.parts(i, r.length) {
			all = all[copy(part, all):]
		}
	}
	return nil
}

// reset needs to do nothing: rows beyond cache_length are never read.
func (f *fixed) reset() error { return nil }

func (f *fixed) close() error {
	err := errors.Join(f.unbind(), destroy(f.buffers), destroy(f.wide))
	if f.cacheLength != nil {
		err = errors.Join(err, f.cacheLength.Destroy())
	}
	if f.binding != nil {
		err = errors.Join(err, f.binding.Destroy())
	}
	return err
}
