package lm

import (
	"errors"
	"fmt"
	"slices"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/internal/signature"
)

// growing hands the present outputs of a call to the next as its past: ONNX
// Runtime makes a cache one token longer at each.
type growing struct {
	*signature.Signature
	session *ort.DynamicAdvancedSession
	past    []ort.Value // one per cache; nil when the cache is empty
	logits  ort.Value   // of the last call
}

func (g *growing) forward(tokens []int64, past int64, documents []int64) (_ Logits, err error) {
	inputs, release, err := g.feed(tokens, past, documents)
	defer func() { err = errors.Join(err, release()) }()
	if err != nil {
		return Logits{}, err
	}
	outputs := make([]ort.Value, len(g.Outputs))
	if err := g.session.Run(inputs, outputs); err != nil {
		return Logits{}, errors.Join(err, destroy(outputs))
	}
	at := slices.Index(g.Outputs, g.Logits)
	tensor, ok := outputs[at].(*ort.Tensor[float32])
	if !ok || len(tensor.GetShape()) != 3 {
		return Logits{}, errors.Join(fmt.Errorf("output logits is %T %v, want float32 [batch, tokens, vocabulary]", outputs[at], outputs[at].GetShape()), destroy(outputs))
	}
	outputs[at] = nil
	present := make([]ort.Value, len(g.Caches))
	for i, c := range g.Caches {
		p := slices.Index(g.Outputs, c.Present)
		present[i], outputs[p] = outputs[p], nil
	}
	old := append(g.past, g.logits)
	g.past, g.logits = present, tensor
	return Logits{Data: tensor.GetData(), Vocabulary: int(tensor.GetShape()[2])}, errors.Join(destroy(outputs), destroy(old))
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
			values, dims := call.Feed(in.Role)
			v, err = ort.NewTensor(ort.NewShape(dims...), values)
		case g.past != nil:
			inputs = append(inputs, g.past[in.Cache])
			continue
		default:
			v, err = ort.NewEmptyTensor[float32](g.Caches[in.Cache].Dims(1))
		}
		if err != nil {
			return nil, release, fmt.Errorf("input %s: %w", in.Name, err)
		}
		own, inputs = append(own, v), append(inputs, v)
	}
	return inputs, release, nil
}

func (g *growing) reset() error {
	old := append(g.past, g.logits)
	g.past, g.logits = nil, nil
	return destroy(old)
}

func (g *growing) close() error { return g.reset() }

// count fills a slice with the numbers from first on.
func count(first int64, into []int64) []int64 {
	for i := range into {
		into[i] = first + int64(i)
	}
	return into
}
