package eval

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/float16"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
)

// Loader loads pieces and other models into an engine.
type Loader struct {
	Engine engine.Engine
	Table  *ShapeTable
}

// Session loads a model, with its constants inside it; more than MaxPiece bytes are an
// error. It changes m: nodes in bfloat16 are replaced by nodes that emulate it.
func (l *Loader) Session(ctx context.Context, m *onnx.Model, outputs []string) (engine.Session, error) {
	if err := Contain(m); err != nil {
		return nil, err
	}
	float16.Emulate(m, onnx.BFloat16)
	data, err := m.Marshal()
	if err != nil {
		return nil, err
	}
	if len(data) > MaxPiece {
		return nil, tooLarge(int64(len(data)))
	}
	return l.Engine.Load(ctx, engine.Model{
		Bytes: data, Inputs: InputNames(m), Outputs: outputs, Library: m.Opset(customop.Domain) > 0, Large: len(m.Graph.Nodes) > manyNodes,
	})
}

// Load loads a piece in float32.
func (l *Loader) Load(ctx context.Context, p *Piece) (*Loaded, error) {
	s, err := l.Session(ctx, p.Model(onnx.Float), p.Outputs)
	if err != nil {
		return nil, err
	}
	return &Loaded{Session: s, Piece: p, Table: l.Table, Elem: onnx.Float}, nil
}

// manyNodes is more than a site has, and less than the skeleton of a model with many
// layers.
const manyNodes = 1000

// MaxPiece is the largest piece in bytes; rotary tables of 131,072 positions take 64 MB.
const MaxPiece = 512 << 20

// Loaded is a piece that is loaded in an engine. Its session must be closed.
type Loaded struct {
	Session engine.Session
	Piece   *Piece
	Table   *ShapeTable
	Elem    onnx.DataType
	bounds  bound.Bounds
}

// Run evaluates the piece at the sizes pt. feeds has the boundaries; Feeds adds the
// other inputs. The result is by name of the output.
func (l *Loaded) Run(ctx context.Context, pt dim.Point, feeds map[string]engine.Tensor) (map[string]engine.Tensor, error) {
	results, err := RunAll(ctx, []Run{{l, pt, feeds}})
	if err != nil {
		return nil, err
	}
	return results[0], nil
}

// call is a run at sizes that the model must have.
func (l *Loaded) call(pt dim.Point, feeds map[string]engine.Tensor) (engine.Call, error) {
	all, err := l.Feeds(pt, feeds)
	if err == nil {
		err = l.bounds.Check(l.Piece.Nodes, l.Piece.Consts, all)
	}
	return engine.Call{Session: l.Session, Feeds: all}, err
}

// Feeds completes the inputs of a run: sizes come from the shape table; integer inputs
// and scales of tokens that feeds lacks are filled with ones.
func (l *Loaded) Feeds(pt dim.Point, feeds map[string]engine.Tensor) (map[string]engine.Tensor, error) {
	all := map[string]engine.Tensor{}
	for _, s := range l.Piece.Sizes {
		extents, ok := l.Table.Sizes[s]
		if !ok {
			return nil, fmt.Errorf("the size %q does not follow from batch, length and past", short.Name(s))
		}
		values := make([]int64, len(extents))
		for i, e := range extents {
			values[i] = e.At(pt)
		}
		all[s] = engine.Int64s(values, int64(len(values)))
	}
	for _, v := range l.Piece.Inputs {
		if _, fed := feeds[v.Name]; fed {
			continue
		}
		t, err := l.Table.fill(v, pt, 1)
		if err != nil {
			return nil, err
		}
		all[v.Name] = t
	}
	for _, c := range l.Piece.Boundaries {
		if l.Table.Scales[c] && feeds[c].Dims == nil {
			dims := dim.Evaluate(l.Table.Dims[c], pt)
			elements, err := bound.Elements(dims)
			if err != nil {
				return nil, err
			}
			all[c] = l.Piece.State(c, slices.Repeat([]float32{1}, int(elements)), dims...)
		}
	}
	for name, t := range feeds {
		all[name] = t
	}
	return all, nil
}

// dimsOf returns the shape of an input or output of the piece as extents, nil where it
// is not known.
func (l *Loaded) dimsOf(value string) []dim.Extent {
	if dims, ok := l.Piece.dims[value]; ok {
		return dims
	}
	if dims, ok := l.Table.Dims[value]; ok {
		return dims
	}
	if slices.ContainsFunc(l.Piece.Inputs, func(v *onnx.ValueInfo) bool { return v.Name == value }) {
		return l.Table.Inputs[value]
	}
	return nil
}

// Random runs the piece with normally distributed numbers for the boundary from, and
// returns these and the output to.
func (l *Loaded) Random(ctx context.Context, pt dim.Point, from, to string, seed uint64) (x, y engine.Tensor, err error) {
	dims := dim.Evaluate(l.Table.Dims[from], pt)
	elements, err := bound.Elements(dims)
	if err != nil {
		return x, y, err
	}
	rng := rand.New(rand.NewPCG(seed, seed+1))
	values := make([]float32, elements)
	for i := range values {
		values[i] = float32(rng.NormFloat64())
	}
	x = l.Piece.State(from, values, dims...)
	results, err := l.Run(ctx, pt, map[string]engine.Tensor{from: x})
	return x, results[to], err
}

// InputNames returns the names of a model's inputs.
func InputNames(m *onnx.Model) []string {
	var names []string
	for _, v := range m.Graph.Inputs {
		names = append(names, v.Name)
	}
	return names
}

// CacheLengths is what a call with a length-tracked cache is told of its tokens.
type CacheLengths struct {
	Tokens []int64 // number in each row of the batch, after the call
	Total  int64   // what the op is told as the length of the longest row
}

// Past returns how many tokens row b had before a call with length new ones.
func (c *CacheLengths) Past(b, length int64) int64 { return max(c.Tokens[b]-length, 0) }

// NotRun says that ONNX Runtime does not evaluate a call, so that nothing was compared.
type NotRun struct{ Why error }

func (e NotRun) Error() string { return e.Why.Error() }
func (e NotRun) Unwrap() error { return e.Why }
