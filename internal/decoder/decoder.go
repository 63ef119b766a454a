package decoder

import (
	"context"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Decoder is a loaded model.
type Decoder struct {
	Vocabulary int64 // size of the last dimension of the logits; 0 when the model does not say

	path    string
	session engine.Session
	inputs  []*onnx.ValueInfo
	past    []*onnx.ValueInfo // float inputs of rank 4, in order
	logits  string
	present []string // outputs of rank 4, in order
}

// Cache holds the present keys and values of a call, in the model's order.
type Cache []engine.Tensor

// Step is one call of a model.
type Step struct {
	Batch, Length int64
	IDs           []int64 // [Batch, Length]
	Mask          []int64 // [Batch, past + Length]
	Positions     []int64 // [Batch, Length]
	Cache         Cache   // of the call before; nil for the first
}

// Open loads a model file.
func Open(ctx context.Context, eng engine.Engine, path string) (*Decoder, error) {
	m, err := onnx.Open(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	d := &Decoder{path: path}
	var inputs, outputs []string
	for _, v := range m.Graph.Inputs {
		if m.Graph.Initializer(v.Name) != nil {
			continue
		}
		c := v.Clone()
		d.inputs = append(d.inputs, c)
		inputs = append(inputs, v.Name)
		switch {
		case isFloat(v.Type) && len(v.Shape) == 4:
			d.past = append(d.past, c)
		case !slices.Contains([]string{"input_ids", "attention_mask", "position_ids", "token_type_ids"}, v.Name):
			return nil, fmt.Errorf("%s: the input %q is none that can be fed here (input_ids, attention_mask, position_ids and caches can)", path, v.Name)
		}
	}
	for _, v := range m.Graph.Outputs {
		outputs = append(outputs, v.Name)
		switch {
		case len(v.Shape) == 4:
			d.present = append(d.present, v.Name)
		case d.logits == "":
			d.logits = v.Name
			if n := len(v.Shape); n > 0 && v.Shape[n-1].Known() {
				d.Vocabulary = v.Shape[n-1].Value
			}
		}
	}
	if d.logits == "" || len(d.present) != len(d.past) {
		return nil, fmt.Errorf("%s: one output of logits and as many cache outputs as cache inputs were expected", path)
	}
	d.session, err = eng.Load(ctx, engine.Model{
		Path: path, Inputs: inputs, Outputs: outputs, Optimize: true, Library: m.Opset(customop.Domain) > 0,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// Close unloads the model.
func (d *Decoder) Close() error { return d.session.Close() }

// Cached reports whether the model has a cache.
func (d *Decoder) Cached() bool { return len(d.past) > 0 }

// Run evaluates one step and returns the logits [Batch, Length, vocabulary]
// and the cache for the next.
func (d *Decoder) Run(ctx context.Context, s Step) (engine.Tensor, Cache, error) {
	total := int64(len(s.Mask)) / s.Batch
	feeds := map[string]engine.Tensor{}
	for _, v := range d.inputs {
		var t engine.Tensor
		var err error
		switch {
		case isFloat(v.Type):
			t = d.feedCache(v, s)
		case v.Name == "attention_mask":
			t, err = engine.Integers(v.Type, s.Mask, s.Batch, total)
		case v.Name == "position_ids":
			t, err = engine.Integers(v.Type, s.Positions, s.Batch, s.Length)
		case v.Name == "token_type_ids":
			t, err = engine.Integers(v.Type, make([]int64, len(s.IDs)), s.Batch, s.Length)
		default:
			t, err = engine.Integers(v.Type, s.IDs, s.Batch, s.Length)
		}
		if err != nil {
			return engine.Tensor{}, nil, fmt.Errorf("%s: input %q: %w", d.path, v.Name, err)
		}
		feeds[v.Name] = t
	}
	out, err := d.session.Run(ctx, feeds)
	if err != nil {
		return engine.Tensor{}, nil, fmt.Errorf("%s: %w", d.path, err)
	}
	var cache Cache
	for _, name := range d.present {
		cache = append(cache, out[name])
	}
	return out[d.logits], cache, nil
}

// feedCache returns the cache of the step for an input, an empty one for the first call.
func (d *Decoder) feedCache(v *onnx.ValueInfo, s Step) engine.Tensor {
	if s.Cache != nil {
		return s.Cache[slices.Index(d.past, v)]
	}
	dims := make([]int64, 4)
	for i, dim := range v.Shape {
		if dim.Known() {
			dims[i] = dim.Value
		}
	}
	dims[0] = s.Batch
	return engine.Tensor{Type: v.Type, Dims: dims, Data: make([]byte, engine.Elements(dims)*int64(v.Type.Size()))}
}

func isFloat(t onnx.DataType) bool {
	return t == onnx.Float || t == onnx.Float16 || t == onnx.BFloat16 || t == onnx.Double
}

// Sequence is a batch of whole sequences.
type Sequence struct {
	Batch, Length        int64
	IDs, Mask, Positions []int64 // [Batch, Length]
}

// Chunks evaluates a sequence in calls of the given lengths, whose sum is the
// sequence's, and returns the logits [Batch][Length][vocabulary] as one
// tensor's values. A model without cache takes only one chunk.
func (d *Decoder) Chunks(ctx context.Context, s Sequence, lengths ...int64) ([]float64, error) {
	var cache Cache
	var out []float64
	var vocabulary int64
	start := int64(0)
	for _, length := range lengths {
		step := Step{Batch: s.Batch, Length: length, Cache: cache}
		for b := range s.Batch {
			row := b * s.Length
			step.IDs = append(step.IDs, s.IDs[row+start:row+start+length]...)
			step.Positions = append(step.Positions, s.Positions[row+start:row+start+length]...)
			step.Mask = append(step.Mask, s.Mask[row:row+start+length]...)
		}
		logits, next, err := d.Run(ctx, step)
		if err != nil {
			return nil, err
		}
		vocabulary = logits.Dims[2]
		if out == nil {
			out = make([]float64, s.Batch*s.Length*vocabulary)
		}
		values := logits.Values()
		for b := range s.Batch {
			copy(out[(b*s.Length+start)*vocabulary:], values[b*length*vocabulary:(b+1)*length*vocabulary])
		}
		cache, start = next, start+length
	}
	return out, nil
}
