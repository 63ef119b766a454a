package kit

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/float16"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/prove"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/validate"
)

// Runnable is a whole model in ONNX Runtime.
type Runnable struct {
	Session engine.Session
	Inputs  []*onnx.ValueInfo
	caches  map[string][]int64 // dims of the cache inputs, 0 for what is not fixed
}

// Load loads a whole model.
func Load(t testing.TB, eng engine.Engine, m *onnx.Model, path string, optimize bool, caches map[string][]int64) *Runnable {
	t.Helper()
	r := &Runnable{caches: caches}
	em := engine.Model{Path: path, Optimize: optimize, Library: m.Opset(customop.Domain) > 0}
	for _, v := range m.Graph.Inputs {
		r.Inputs = append(r.Inputs, v)
		em.Inputs = append(em.Inputs, v.Name)
	}
	for _, v := range m.Graph.Outputs {
		em.Outputs = append(em.Outputs, v.Name)
	}
	var err error
	if r.Session, err = eng.Load(context.Background(), em); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	t.Cleanup(func() { r.Session.Close() })
	return r
}

// InDouble writes the model in float64: what both the original and the patched
// model are held against.
func InDouble(t testing.TB, m *onnx.Model) (*onnx.Model, string) {
	t.Helper()
	d, err := eval.InFloat64(m)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "double.onnx")
	if err := d.Save(path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return d, path
}

// Sequence is a batch: one row full, one padded on the left, one with a hole.
type Sequence struct {
	Batch, Length        int64
	Ids, Mask, Positions []int64
}

// NewSequence draws tokens, at positions from start on.
func NewSequence(length, start int64) Sequence {
	rng := rand.New(rand.NewPCG(21, 22))
	s := Sequence{Batch: 3, Length: length}
	for b := range s.Batch {
		next := start
		for i := range length {
			hidden := b == 1 && i < 5 || b == 2 && i >= 6 && i < 9
			s.Ids = append(s.Ids, 1+rng.Int64N(63))
			s.Mask = append(s.Mask, dim.OneIf(!hidden))
			s.Positions = append(s.Positions, next)
			if !hidden {
				next++
			}
		}
	}
	return s
}

// within takes tokens that a model does not have, as the shape of its logits says, for others.
func (s Sequence) within(m *onnx.Model) {
	for _, v := range m.Graph.Outputs {
		if n := len(v.Shape); v.Name == "logits" && n > 0 && v.Shape[n-1].Value > 0 {
			for i := range s.Ids {
				s.Ids[i] %= v.Shape[n-1].Value
			}
		}
	}
}

// column returns [batch, from:to] of rows of the sequence's length.
func (s Sequence) column(rows []int64, from, to int64) []int64 {
	var out []int64
	for b := range s.Batch {
		out = append(out, rows[b*s.Length+from:b*s.Length+to]...)
	}
	return out
}

// apart returns positions on several axes: on the first these, on the others less for
// some tokens.
func apart(positions []int64, axes int64) (out []int64) {
	for axis := range axes {
		for i, p := range positions {
			out = append(out, max(p-axis*int64(i%3), 0))
		}
	}
	return out
}

// source returns an input that is made of another text, which is the shorter the more tokens a
// call has. One row of its mask has a hole at the end.
func (s Sequence) source(v *onnx.ValueInfo, dims []int64, length int64) (engine.Tensor, error) {
	const row = 1
	tokens := max(29-length, 5)
	if !ir.IsFloat(v.Type) {
		mask := slices.Repeat([]int64{1}, int(s.Batch*tokens))
		clear(mask[row*tokens+tokens-3 : (row+1)*tokens])
		return engine.Integers(v.Type, mask, s.Batch, tokens)
	}
	dims = slices.Clone(dims)
	dims[0], dims[len(dims)-2] = s.Batch, tokens
	rng := rand.New(rand.NewPCG(uint64(len(v.Name)), uint64(v.Name[len(v.Name)-1])))
	x := make([]float64, engine.Elements(dims))
	for i := range x {
		x[i] = float64(float32(rng.NormFloat64()))
	}
	data, err := ir.FloatTensor("", v.Type, dims, x...).Bytes()
	return engine.Tensor{Type: v.Type, Dims: dims, Data: data}, err
}

// Run evaluates chunks and returns every output of every call.
func (r *Runnable) Run(t testing.TB, s Sequence, chunks []int64) []map[string]engine.Tensor {
	t.Helper()
	var calls []map[string]engine.Tensor
	start := int64(0)
	for _, length := range chunks {
		feeds := map[string]engine.Tensor{}
		for _, v := range r.Inputs {
			var err error
			end := start + length
			switch {
			case v.Name == "input_ids":
				feeds[v.Name], err = engine.Integers(v.Type, s.column(s.Ids, start, end), s.Batch, length)
			case v.Name == "attention_mask":
				feeds[v.Name], err = engine.Integers(v.Type, s.column(s.Mask, 0, end), s.Batch, end)
			case v.Name == "position_ids":
				positions, dims := s.column(s.Positions, start, end), []int64{s.Batch, length}
				if len(v.Shape) == 3 { // one for each axis, which differ
					dims = slices.Concat([]int64{v.Shape[0].Value}, dims)
					positions = apart(positions, dims[0])
				}
				feeds[v.Name], err = engine.Integers(v.Type, positions, dims...)
			case strings.HasPrefix(v.Name, "cross_") || strings.HasPrefix(v.Name, "encoder_"):
				feeds[v.Name], err = s.source(v, r.caches[v.Name], length)
			case start > 0:
				feeds[v.Name] = calls[len(calls)-1][strings.Replace(v.Name, "past_key_values", "present", 1)]
			default:
				dims := slices.Clone(r.caches[v.Name])
				dims[0] = s.Batch
				feeds[v.Name] = engine.Tensor{Type: v.Type, Dims: dims, Data: []byte{}}
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		out, err := r.Session.Run(context.Background(), feeds)
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, out)
		start += length
	}
	return calls
}

// CompareModels holds the patched model's outputs against the original's, both
// against the original in float64: at most twice the error, as root mean
// square and as the largest. Hidden tokens are left out.
func CompareModels(t testing.TB, eng engine.Engine, original, patched string, farthest int64) {
	t.Helper()
	before, after := OpenModel(t, original), OpenModel(t, patched)
	caches := map[string][]int64{}
	for _, v := range before.Graph.Inputs {
		if ir.IsFloat(v.Type) {
			dims := make([]int64, len(v.Shape))
			for i, d := range v.Shape {
				dims[i] = max(d.Value, 0)
			}
			caches[v.Name] = dims
		}
	}
	double, doublePath := InDouble(t, before)
	epsilon := rope.Float32.Epsilon()
	for _, x := range []struct {
		model *onnx.Model
		path  *string
	}{{before, &original}, {after, &patched}} {
		if float16.Widen(x.model) {
			epsilon = rope.Float16.Epsilon()
			*x.path = filepath.Join(t.TempDir(), "wide.onnx")
			if err := x.model.Save(*x.path, onnx.SaveOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	runs := []*Runnable{
		Load(t, eng, before, original, true, caches),
		Load(t, eng, double, doublePath, false, caches),
		Load(t, eng, after, patched, true, caches),
	}
	errs := map[string]*prove.ResultErrors{}
	for _, c := range []struct {
		start  int64
		chunks []int64
	}{
		{0, []int64{24}},
		{0, []int64{9}}, // which may be computed otherwise than a long call
		{0, []int64{10, 14}},
		{3, []int64{19, 1, 1, 1, 2}},
		{max(farthest-30, 0), []int64{20, 3, 1}},
	} {
		if caches["past_key_values.0.key"] == nil && len(c.chunks) > 1 {
			continue // without a cache every call stands alone
		}
		s := NewSequence(24, c.start)
		s.within(before)
		var calls [3][]map[string]engine.Tensor
		for i, r := range runs {
			calls[i] = r.Run(t, s, c.chunks)
		}
		past := int64(0)
		for k, length := range c.chunks {
			for name, want := range calls[1][k] {
				if errs[name] == nil {
					errs[name] = &prove.ResultErrors{}
				}
				counts := func(i int64) bool { return s.Visible(want.Dims, i, past, length) }
				if err := errs[name].Add(calls[0][k][name], want, calls[2][k][name], counts); err != nil {
					t.Errorf("chunk %d of %v, output %s: %v", k, c.chunks, name, err)
				}
			}
			past += length
		}
	}
	if len(errs) == 0 {
		t.Error("nothing was compared")
	}
	for name, e := range errs {
		if e.Count == 0 || e.Largest == 0 {
			t.Errorf("%s: nothing was compared", name)
		}
		if err := e.Judge(math.Inf(1), epsilon); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if allowed := math.Max(2*e.Original, 2*epsilon*e.Largest); !(e.Op <= allowed) {
			t.Errorf("%s: off by %.3g, the original by %.3g", name, e.Op, e.Original)
		}
	}
}

// Visible says whether element i of an output belongs to a token that is not
// hidden: the tokens are those of the call, or all so far in a cache.
func (s Sequence) Visible(dims []int64, i, past, length int64) bool {
	axis := 1
	for i := 2; i < 4 && len(dims) == 4; i++ {
		if dims[i] == length || dims[i] == past+length {
			axis = i
			break
		}
	}
	inner := engine.Elements(dims[axis+1:])
	row := i / inner % dims[axis]
	b := i / engine.Elements(dims[1:])
	if dims[axis] == length {
		row += past
	}
	return s.Mask[b*s.Length+row] == 1
}

// OpenModel opens a model until the test ends.
func OpenModel(t testing.TB, path string) *onnx.Model {
	t.Helper()
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// SamePatched fails unless a rewritten model computes what the original does on
// sequences of so many tokens.
func SamePatched(t *testing.T, original string, m *onnx.Model, length int64) {
	t.Helper()
	patched := filepath.Join(t.TempDir(), "patched.onnx")
	if err := m.Save(patched, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if result := Validated(t, original, patched, length); !result.Same {
		t.Errorf("the patched model computes something else: %+v", result.Cases)
	}
}

// Validated is what validate says of two files, on sequences of so many tokens.
func Validated(t *testing.T, original, patched string, length int64) *validate.Report {
	t.Helper()
	result, err := validate.Run(context.Background(), original, patched, validate.Options{Length: length, OutputsOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	return result
}
