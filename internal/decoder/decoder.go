package decoder

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/narrow"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Decoder is a loaded model.
type Decoder struct {
	Vocabulary int64 // size of the last dimension of the logits; 0 when the model does not say
	Capacity   int64 // tokens that a cache of fixed capacity holds; 0 when the cache grows or there is none
	Documents  bool  // tokens carry document ids
	Counted    bool  // rows are counted, not masked: padding stands on the right, and only single rows take several tokens after the first call
	Short      bool  // the model has weights or hidden states of 16 bits

	path    string
	session engine.Session
	inputs  []*onnx.ValueInfo
	roles   map[string]role
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
	Documents     []int64 // [Batch, past + Length]; nil puts every token into document 1
	Positions     []int64 // [Batch, Length]
	Cache         Cache   // of the call before; nil for the first
	Pasts         []int64 // [Batch], how many tokens a fixed cache holds; nil is the mask's width − Length
}

// Open loads a model file.
func Open(ctx context.Context, eng engine.Engine, path string) (*Decoder, error) {
	return open(ctx, eng, path, narrow.Widen)
}

// OpenWide loads a model file to be computed in float32 throughout, whatever
// 16-bit types it has.
func OpenWide(ctx context.Context, eng engine.Engine, path string) (*Decoder, error) {
	return open(ctx, eng, path, narrow.Retype)
}

// OpenEmulated loads a model file whose nodes in bfloat16 are computed in
// float32, their outputs rounded: ONNX Runtime has no kernels for most of them.
func OpenEmulated(ctx context.Context, eng engine.Engine, path string) (*Decoder, error) {
	return open(ctx, eng, path, func(m *onnx.Model) bool {
		widened := narrow.Widen(m)
		return narrow.Emulate(m, onnx.BFloat16) || widened
	})
}

// open loads a model file that widen changes first.
func open(ctx context.Context, eng engine.Engine, path string, widen func(*onnx.Model) bool) (*Decoder, error) {
	m, err := onnx.Open(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	d := &Decoder{path: path, Counted: countsTokens(m), Short: narrow.Has(m)}
	var inputs, outputs []string
	for _, v := range m.Graph.Inputs {
		if m.Graph.Initializer(v.Name) != nil {
			continue
		}
		d.inputs = append(d.inputs, v.Clone())
		inputs = append(inputs, v.Name)
	}
	if d.roles, err = roles(m.Graph, d.inputs); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, v := range d.inputs {
		switch d.roles[v.Name] {
		case past:
			if err := d.closeHeadSize(m, v); err != nil {
				return nil, err
			}
			d.past = append(d.past, v)
		case documents:
			d.Documents = true
		case cacheLength:
			d.Capacity = -1
		}
	}
	if d.Capacity != 0 {
		if len(d.past) == 0 || !d.past[0].Shape[2].Known() {
			return nil, fmt.Errorf("%s: its caches have a length beside them but no capacity", path)
		}
		d.Capacity = d.past[0].Shape[2].Value
	}
	widened := widen(m)
	for _, v := range d.inputs {
		if narrow.Short(v.Type) {
			v.Type = onnx.Float
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
	em := engine.Model{Path: path, Inputs: inputs, Outputs: outputs, Optimize: true, Library: m.Opset(customop.Domain) > 0}
	if widened {
		if em.Bytes, err = m.Marshal(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		em.Folder = filepath.Dir(path)
	}
	d.session, err = eng.Load(ctx, em)
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
	if s.Documents == nil {
		s.Documents = slices.Repeat([]int64{1}, len(s.Mask))
	}
	if s.Pasts == nil {
		s.Pasts = slices.Repeat([]int64{total - s.Length}, int(s.Batch))
	}
	feeds := map[string]engine.Tensor{}
	for _, v := range d.inputs {
		var t engine.Tensor
		var err error
		switch d.roles[v.Name] {
		case past:
			t = d.feedCache(v, s)
		case padding:
			t, err = engine.Integers(v.Type, s.Mask, s.Batch, total)
		case documents:
			t, err = engine.Integers(v.Type, s.Documents, s.Batch, total)
		case cacheLength:
			t, err = engine.Integers(v.Type, s.Pasts, s.Batch)
		case positions:
			t, err = engine.Integers(v.Type, s.Positions, s.Batch, s.Length)
		case types:
			t, err = engine.Integers(v.Type, make([]int64, len(s.IDs)), s.Batch, s.Length)
		case tokens:
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
