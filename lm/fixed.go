package lm

import (
	"errors"
	"fmt"
	"slices"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/internal/signature"
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
	buffers           []ort.Value // one per cache
	cacheLength       *ort.Tensor[int32]
	attention         *ort.Tensor[int64] // ones as wide as the cache: what lies ahead is not seen anyway
	documents         *ort.Tensor[int64] // nil if the model takes none
	tokens, positions *ort.Tensor[int64]
	logits            *ort.Tensor[float32]
}

func newFixed(session *ort.DynamicAdvancedSession, s *signature.Signature) (_ *fixed, err error) {
	f := &fixed{Signature: s, session: session}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	if f.binding, err = session.CreateIoBinding(); err != nil {
		return nil, err
	}
	for _, c := range s.Caches {
		buffer, err := ort.NewEmptyTensor[float32](c.Dims(1))
		if err != nil {
			return nil, err
		}
		f.buffers = append(f.buffers, buffer)
		if err := errors.Join(f.binding.BindInput(c.Past, buffer), f.binding.BindOutput(c.Present, buffer)); err != nil {
			return nil, err
		}
	}
	if f.cacheLength, err = ort.NewEmptyTensor[int32](ort.NewShape(1)); err != nil {
		return nil, err
	}
	if err := f.binding.BindInput(s.Name(signature.CacheLength), f.cacheLength); err != nil {
		return nil, err
	}
	if f.attention, err = f.wide(signature.Padding, 1); err != nil {
		return nil, err
	}
	f.documents, err = f.wide(signature.Documents, 0)
	return f, err
}

// wide binds an input as wide as the cache, filled with a value; nil if the
// model has no such input.
func (f *fixed) wide(role signature.Role, value int64) (*ort.Tensor[int64], error) {
	if !f.Takes(role) {
		return nil, nil
	}
	t, err := ort.NewTensor(ort.NewShape(1, f.Capacity), slices.Repeat([]int64{value}, int(f.Capacity)))
	if err != nil {
		return nil, err
	}
	return t, f.binding.BindInput(f.Name(role), t)
}

func (f *fixed) forward(tokens []int64, past int64, documents []int64) (Logits, error) {
	n := int64(len(tokens))
	if past+n > f.Capacity {
		return Logits{}, fmt.Errorf("the cache holds %d tokens at most; rewrite the original with a larger --kv fixed:capacity", f.Capacity)
	}
	if err := f.bind(n); err != nil {
		return Logits{}, err
	}
	copy(f.tokens.GetData(), tokens)
	if f.positions != nil {
		count(past, f.positions.GetData())
	}
	if f.documents != nil {
		copy(f.documents.GetData()[past:], documents[past:])
	}
	f.cacheLength.GetData()[0] = int32(past)
	if err := f.session.RunWithBinding(f.binding); err != nil {
		return Logits{}, err
	}
	return Logits{Data: f.logits.GetData(), Vocabulary: int(f.Vocabulary)}, nil
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
	if f.tokens, err = ort.NewEmptyTensor[int64](ort.NewShape(1, n)); err != nil {
		return err
	}
	if err := f.binding.BindInput(f.Name(signature.Tokens), f.tokens); err != nil {
		return err
	}
	if f.Takes(signature.Positions) {
		if f.positions, err = ort.NewEmptyTensor[int64](ort.NewShape(1, n)); err != nil {
			return err
		}
		if err := f.binding.BindInput(f.Name(signature.Positions), f.positions); err != nil {
			return err
		}
	}
	if f.logits, err = ort.NewEmptyTensor[float32](ort.NewShape(1, n, f.Vocabulary)); err != nil {
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
	err := errors.Join(free(f.tokens), free(f.positions), free(f.logits))
	f.tokens, f.positions, f.logits = nil, nil, nil
	return err
}

// reset needs to do nothing: rows beyond cache_length are never read.
func (f *fixed) reset() error { return nil }

func (f *fixed) close() error {
	err := errors.Join(f.unbind(), free(f.cacheLength), free(f.attention), free(f.documents), destroy(f.buffers))
	if f.binding != nil {
		err = errors.Join(err, f.binding.Destroy())
	}
	return err
}

// free destroys a tensor that may be nil.
func free[T ort.TensorData](t *ort.Tensor[T]) error {
	if t == nil {
		return nil
	}
	return t.Destroy()
}
