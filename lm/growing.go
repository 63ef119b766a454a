package lm

import (
	"errors"
	"fmt"
	"slices"

	ort "github.com/yalue/onnxruntime_go"
)

// growing hands the present outputs of a call to the next as its past: ONNX
// Runtime makes a cache one token longer at each.
type growing struct {
	*signature
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
	outputs := make([]ort.Value, len(g.outputs))
	if err := g.session.Run(inputs, outputs); err != nil {
		return Logits{}, errors.Join(err, destroy(outputs))
	}
	at := slices.Index(g.outputs, "logits")
	tensor, ok := outputs[at].(*ort.Tensor[float32])
	if !ok || len(tensor.GetShape()) != 3 {
		return Logits{}, errors.Join(fmt.Errorf("output logits is %T %v, want float32 [batch, tokens, vocabulary]", outputs[at], outputs[at].GetShape()), destroy(outputs))
	}
	outputs[at] = nil
	present := make([]ort.Value, len(g.caches))
	for i, c := range g.caches {
		p := slices.Index(g.outputs, c.present)
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
	for _, name := range g.inputs {
		var v ort.Value
		switch name {
		case "input_ids":
			v, err = ort.NewTensor(ort.NewShape(1, n), tokens)
		case "attention_mask":
			v, err = ort.NewTensor(ort.NewShape(1, past+n), slices.Repeat([]int64{1}, int(past+n)))
		case "position_ids":
			v, err = ort.NewTensor(ort.NewShape(1, n), count(past, make([]int64, n)))
		case documentIDs:
			v, err = ort.NewTensor(ort.NewShape(1, past+n), documents)
		default:
			i := slices.IndexFunc(g.caches, func(c cache) bool { return c.past == name })
			if g.past != nil {
				inputs = append(inputs, g.past[i])
				continue
			}
			v, err = ort.NewEmptyTensor[float32](ort.NewShape(1, g.caches[i].heads, 0, g.caches[i].size))
		}
		if err != nil {
			return nil, release, fmt.Errorf("input %s: %w", name, err)
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
