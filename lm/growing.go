package lm

import (
	"errors"
	"fmt"
	"slices"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/internal/signature"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// growing hands the present outputs of a call to the next as its past: ONNX
// Runtime makes a cache one token longer at each. Outputs are written into memory of this
// package's, by turns into one of two buffers per cache: what the binding makes of outputs that
// it is not given are copies.
type growing struct {
	*signature.Signature
	session *ort.DynamicAdvancedSession
	past    *values   // nil when the cache is empty
	spare   [][]byte  // buffers that nobody reads any more, one per cache
	logits  ort.Value // of the last call
	scores  []byte    // where they stand
	buffer  []float32 // the same as float32, of logits of 16 bits
	most    int64     // tokens that are expected
}

// values are the caches after some tokens. Nothing writes into them, so that several may
// hold them: the decoder, and snapshots.
type values struct {
	list    []ort.Value // one per cache
	buffers [][]byte    // that they stand in
	holders int
}

func (v *values) held() *values {
	if v != nil {
		v.holders++
	}
	return v
}

// close lets go of the values, and frees them where nobody else holds them.
func (v *values) close() error {
	if v == nil {
		return nil
	}
	if v.holders--; v.holders > 0 {
		return nil
	}
	return destroy(v.list)
}

// moreRows is how many tokens a cache may grow by before it takes new memory.
func moreRows(rows int64) int64 { return rows + rows/8 + 64 }

// next makes the present caches of so many tokens, in the spare buffers where these are large
// enough.
func (g *growing) next(tokens int64) (*values, error) {
	v := &values{buffers: make([][]byte, len(g.Caches)), holders: 1}
	for i, c := range g.Caches {
		row := c.Heads * c.Size * int64(g.cacheType(i).Size())
		if i < len(g.spare) && int64(len(g.spare[i])) >= tokens*row {
			v.buffers[i] = g.spare[i]
		} else {
			v.buffers[i] = make([]byte, max(moreRows(tokens), g.most)*row)
		}
		t, err := floatsIn(v.buffers[i][:tokens*row], g.cacheType(i), 1, c.Heads, tokens, c.Size)
		if err != nil {
			return nil, errors.Join(err, destroy(v.list))
		}
		v.list = append(v.list, t)
	}
	return v, nil
}

// cacheType is the element type of a cache.
func (g *growing) cacheType(cache int) onnx.DataType {
	at := slices.IndexFunc(g.Inputs, func(in signature.Input) bool { return in.Role == signature.Past && in.Cache == cache })
	return g.Inputs[at].Type
}

func (g *growing) forward(tokens []int64, past int64, documents []int64) (_ Logits, err error) {
	inputs, release, err := g.feed(tokens, past, documents)
	defer func() { err = errors.Join(err, release()) }()
	if err != nil {
		return Logits{}, err
	}
	present, err := g.next(past + int64(len(tokens)))
	if err != nil {
		return Logits{}, err
	}
	g.spare = present.buffers
	if err := g.newLogits(int64(len(tokens))); err != nil {
		return Logits{}, errors.Join(err, present.close())
	}
	outputs := make([]ort.Value, len(g.Outputs))
	at := slices.Index(g.Outputs, g.Logits)
	outputs[at] = g.logits
	for i, c := range g.Caches {
		outputs[slices.Index(g.Outputs, c.Present)] = present.list[i]
	}
	given := slices.Clone(outputs)
	err = g.session.Run(inputs, outputs)
	for i, v := range outputs { // what the model gives besides
		if given[i] == nil && i != at {
			err = errors.Join(err, destroy([]ort.Value{v}))
		}
	}
	g.logits = outputs[at]
	if err != nil {
		return Logits{}, errors.Join(err, present.close())
	}
	shape := g.logits.GetShape()
	if len(shape) != 3 {
		return Logits{}, errors.Join(fmt.Errorf("output %s has the shape %v, want [batch, tokens, vocabulary]", g.Logits, shape), present.close())
	}
	data, err := floats(g.logits, g.buffer[:0])
	if g.LogitsType != onnx.Float {
		g.buffer = data
	}
	old := g.past
	g.past, g.spare = present, nil
	err = errors.Join(err, old.close())
	if old != nil && old.holders == 0 {
		g.spare = old.buffers
	}
	return Logits{Data: data, Vocabulary: int(shape[2])}, err
}

// newLogits makes the output of the logits, where the model says how many there are.
func (g *growing) newLogits(tokens int64) error {
	err := destroy([]ort.Value{g.logits})
	g.logits = nil
	if g.Vocabulary == 0 || err != nil {
		return err
	}
	if g.Takes(signature.Places) {
		tokens = 1
	}
	size := tokens * g.Vocabulary * int64(g.LogitsType.Size())
	if int64(len(g.scores)) < size || int64(len(g.scores)) > 4*size {
		g.scores = make([]byte, size) // those of a prompt are not kept for single tokens
	}
	g.logits, err = floatsIn(g.scores[:size], g.LogitsType, 1, tokens, g.Vocabulary)
	return err
}

// feed makes the inputs of a call; release frees those that are not the cache.
func (g *growing) feed(tokens []int64, past int64, documents []int64) (inputs []ort.Value, release func() error, err error) {
	var own []ort.Value
	release = func() error { return destroy(own) }
	n := int64(len(tokens))
	call := signature.Call{
		Batch: 1, Length: n, IDs: tokens, Documents: documents,
		Positions: count(past, make([]int64, n)), Mask: slices.Repeat([]int64{1}, int(past+n)),
	}
	for _, in := range g.Inputs {
		var v ort.Value
		switch {
		case in.Role != signature.Past:
			values, dims := call.Feed(in)
			v, err = newIntegers(in.Type, values, dims...)
		case g.past != nil:
			inputs = append(inputs, g.past.list[in.Cache])
			continue
		default:
			v, err = newFloats(in.Type, g.Caches[in.Cache].Dims(1)...)
		}
		if err != nil {
			return nil, release, fmt.Errorf("input %s: %w", in.Name, err)
		}
		own, inputs = append(own, v), append(inputs, v)
	}
	return inputs, release, nil
}

func (g *growing) reserve(tokens int64) { g.most = moreRows(tokens) }

func (g *growing) keep(int64) (kept, error) { return g.past.held(), nil }

func (g *growing) mark() kept { return g.past.held() }

func (g *growing) restore(k kept) error {
	past := k.(*values).held()
	err := g.forget()
	g.past = past
	return err
}

// forget lets go of the caches and the logits.
func (g *growing) forget() error {
	err := errors.Join(g.past.close(), destroy([]ort.Value{g.logits}))
	g.past, g.spare, g.logits, g.scores, g.most = nil, nil, nil, nil, 0
	return err
}

func (g *growing) reset() error { return g.forget() }

func (g *growing) close() error { return g.forget() }

// count fills a slice with the numbers from first on.
func count(first int64, into []int64) []int64 {
	for i := range into {
		into[i] = first + int64(i)
	}
	return into
}
