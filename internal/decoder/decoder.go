package decoder

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/float16"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/internal/signature"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Decoder is a loaded model.
type Decoder struct {
	*signature.Signature
	Short bool // the model has weights or hidden states of 16 bits

	path    string
	stored  onnx.DataType // see Options
	session engine.Session
}

// Cache holds the present keys and values of a call, in the model's order.
type Cache []engine.Tensor

// Step is one call of a model: what signature.Call has, and the cache.
type Step struct {
	Batch, Length int64
	IDs           []int64 // [Batch, Length]
	Mask          []int64 // [Batch, past + Length]
	Documents     []int64 // [Batch, past + Length]; nil puts every token into document 1
	Positions     []int64 // [Batch, Length] or [axes, Batch, Length]
	Cache         Cache   // of the call before; nil for the first
	Pasts         []int64 // [Batch], how many tokens a fixed cache holds; nil is the mask's width − Length
}

// Options say what is loaded, and how it is computed. The zero value is a model file as it is.
type Options struct {
	// Model is loaded in the place of the file, beside which its weights lie. It is changed.
	Model *onnx.Model
	// Change, rewrite.InFloat64 for example, gives what is loaded in the model's place.
	Change func(*onnx.Model) (*onnx.Model, error)
	// Outputs of a Model, float32 or integers, that All returns beside its own.
	Outputs []*onnx.ValueInfo
	// Wide computes in float32 throughout, whatever 16-bit types the model has.
	Wide bool
	// Emulated computes nodes in bfloat16 in float32 and rounds their outputs: ONNX Runtime has no
	// kernels for most of them. Models that are not loaded from their file are always computed so.
	Emulated bool
	// Rounded rounds every float32 number that a node computes once more, at random: what rounding
	// alone does to the model. Seeds draw other roundings.
	Rounded bool
	Seed    int
	// Stored rounds caches between calls as caches of this element type do: Float16, BFloat16 or
	// Int8; 0 leaves them.
	Stored onnx.DataType
	// Held are the fixed scales of caches of int8 by the output of each cache, one or one for each channel:
	// attention then reads all keys and values rounded so. nil leaves them.
	Held map[string][]float32
	// AsWritten leaves ONNX Runtime's graph optimisations out: another order of the same arithmetic.
	AsWritten bool
}

// FeedError says why a model cannot be fed.
type FeedError struct {
	Path string
	Err  error
}

func (e *FeedError) Error() string { return fmt.Sprintf("%s: %v", e.Path, e.Err) }
func (e *FeedError) Unwrap() error { return e.Err }

// TakesPositions reports whether the model is fed position ids.
func (d *Decoder) TakesPositions() bool { return d.Takes(signature.Positions) }

// Look reads what a model file takes and gives, and loads nothing: the decoder makes sequences and runs
// none.
func Look(path string) (*Decoder, error) {
	m, err := onnx.Open(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	return look(m, path)
}

func look(m *onnx.Model, path string) (*Decoder, error) {
	s, err := signature.Read(m, filepath.Dir(path))
	if err != nil {
		return nil, &FeedError{path, err}
	}
	return &Decoder{Signature: s, Short: float16.Has(m), path: path}, nil
}

// LoadError says why ONNX Runtime does not load a model.
type LoadError struct {
	Path string
	Err  error
}

func (e *LoadError) Error() string { return fmt.Sprintf("%s: %v", e.Path, e.Err) }
func (e *LoadError) Unwrap() error { return e.Err }

// Open loads a model file, or what opts has in its place.
func Open(ctx context.Context, eng engine.Engine, path string, opts Options) (*Decoder, error) {
	m := opts.Model
	if m == nil {
		file, err := onnx.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		m = file
	}
	var err error
	if opts.Change != nil {
		if m, err = opts.Change(m); err != nil {
			return nil, err
		}
	}
	d, err := look(m, path)
	if err == nil {
		err = hold(m, opts.Held)
	}
	if err != nil {
		return nil, err
	}
	d.stored = opts.Stored
	em := engine.Model{Path: path, Outputs: slices.Clone(d.Outputs), Optimize: !opts.AsWritten, Library: m.Opset(customop.Domain) > 0}
	for _, v := range opts.Outputs {
		m.Graph.AddOutput(v)
		em.Outputs = append(em.Outputs, v.Name)
	}
	for i, in := range d.Inputs {
		em.Inputs = append(em.Inputs, in.Name)
		if float16.Short(in.Type) {
			d.Inputs[i].Type = onnx.Float // as the model is widened below
		}
	}
	widen := float16.Widen
	if opts.Wide {
		widen = float16.Retype
	}
	unlike := opts.Model != nil || opts.Change != nil || opts.Held != nil // the file
	changed := widen(m)
	if opts.Rounded {
		roundAgain(m, opts.Seed)
		changed = true
	}
	if unlike || opts.Emulated {
		changed = float16.Emulate(m, onnx.BFloat16) || changed
	}
	if unlike || changed {
		if em.Bytes, err = m.Marshal(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		em.Folder = filepath.Dir(path)
	}
	if d.session, err = eng.Load(ctx, em); err != nil {
		return nil, &LoadError{path, err}
	}
	return d, nil
}

// Close unloads the model.
func (d *Decoder) Close() error { return d.session.Close() }

// Cached reports whether the model has a cache.
func (d *Decoder) Cached() bool { return len(d.Caches) > 0 }

// Run evaluates one step and returns the logits [Batch, Length, vocabulary]
// and the cache for the next. A model that gives the logits of one token per row is run
// once for each token.
func (d *Decoder) Run(ctx context.Context, s Step) (engine.Tensor, Cache, error) {
	if !d.Takes(signature.Places) {
		return d.run(ctx, s, nil)
	}
	var all engine.Tensor
	var cache Cache
	for i := range s.Length {
		one, present, err := d.run(ctx, s, []int64{i})
		if err != nil {
			return engine.Tensor{}, nil, err
		}
		if len(one.Dims) != 3 || one.Dims[0] != s.Batch || one.Dims[1] != 1 {
			return engine.Tensor{}, nil, fmt.Errorf("%s: its logits have the shape %v; expected [%d 1 vocabulary]", d.path, one.Dims, s.Batch)
		}
		if all.Data == nil {
			all = engine.Tensor{Type: one.Type, Dims: []int64{s.Batch, s.Length, one.Dims[2]}, Data: make([]byte, int64(len(one.Data))*s.Length)}
		}
		row := int64(len(one.Data)) / s.Batch
		for b := range s.Batch {
			copy(all.Data[(b*s.Length+i)*row:], one.Data[b*row:(b+1)*row])
		}
		cache = present
	}
	return all, cache, nil
}

// All evaluates one step and returns every output by its name, those that Open was
// asked for among them. A model that gives the logits of one token per row gives the last's.
func (d *Decoder) All(ctx context.Context, s Step) (map[string]engine.Tensor, error) {
	return d.outputs(ctx, s, []int64{s.Length - 1})
}

// Present returns the cache among the outputs of a step.
func (d *Decoder) Present(outputs map[string]engine.Tensor) Cache {
	var present Cache
	for _, c := range d.Caches {
		present = append(present, storedAs(outputs[c.Present], d.stored))
	}
	return present
}

// outputs evaluates one step; places are those of the tokens whose logits are computed.
func (d *Decoder) outputs(ctx context.Context, s Step, places []int64) (map[string]engine.Tensor, error) {
	feeds, err := d.feeds(s, places)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.path, err)
	}
	out, err := d.session.Run(ctx, feeds)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.path, err)
	}
	return out, nil
}

func (d *Decoder) run(ctx context.Context, s Step, places []int64) (engine.Tensor, Cache, error) {
	out, err := d.outputs(ctx, s, places)
	if err != nil {
		return engine.Tensor{}, nil, err
	}
	return out[d.Logits], d.Present(out), nil
}

// feeds are the inputs of a step.
func (d *Decoder) feeds(s Step, places []int64) (map[string]engine.Tensor, error) {
	call := signature.Call{
		Batch: s.Batch, Length: s.Length,
		IDs: s.IDs, Positions: s.Positions, Mask: s.Mask, Documents: s.Documents, Pasts: s.Pasts, Places: places,
	}
	if n := d.Filled(); n > 0 && s.Cache == nil { // an empty cache holds rows that are padding
		call.Mask = slices.Concat(padding(s.Mask, s.Batch, n, 0)...)
		if s.Documents != nil {
			call.Documents = slices.Concat(padding(s.Documents, s.Batch, n, 1)...)
		}
	}
	feeds := map[string]engine.Tensor{}
	for _, in := range d.Inputs {
		if in.Role == signature.Past {
			feeds[in.Name] = d.feedCache(in, s)
			continue
		}
		if in.Role == signature.Memory {
			feeds[in.Name] = memory(d.Memory[in.Cache], in.Cache, s.Batch, in.Type)
			continue
		}
		values, dims := call.Feed(in)
		t, err := engine.Integers(in.Type, values, dims...)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", short.Name(in.Name), err)
		}
		feeds[in.Name] = t
	}
	return feeds, nil
}

// frames is how many rows of an encoder's are fed, where the model does not say it.
const frames = 12

// memory is what an encoder might have given: numbers between −1 and 1, the same for every model, call
// and row of the batch. A model in float64 gets the same float32 numbers.
func memory(c signature.Cache, seed int, batch int64, t onnx.DataType) engine.Tensor {
	c.Rows = cmp.Or(c.Rows, frames)
	rng := rand.New(rand.NewPCG(uint64(seed), 23))
	row := make([]float32, c.Heads*c.Rows*c.Size)
	for i := range row {
		row[i] = 2*rng.Float32() - 1
	}
	fed := engine.Float32s(slices.Repeat(row, int(batch)), c.Dims(batch)...)
	if t == onnx.Double {
		return engine.Float64s(fed.Values(), fed.Dims...)
	}
	return fed
}

// padding puts n times a value before each row.
func padding(values []int64, batch, n, value int64) (parts [][]int64) {
	for row := range slices.Chunk(values, len(values)/int(batch)) {
		parts = append(parts, slices.Repeat([]int64{value}, int(n)), row)
	}
	return parts
}

// feedCache returns the cache of the step for an input, an empty one for the first call.
func (d *Decoder) feedCache(in signature.Input, s Step) engine.Tensor {
	if s.Cache != nil {
		return s.Cache[in.Cache]
	}
	dims := d.Caches[in.Cache].Dims(s.Batch)
	return engine.Tensor{Type: in.Type, Dims: dims, Data: make([]byte, engine.Elements(dims)*int64(in.Type.Size()))}
}
