package score

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Scorer evaluates the function F from scores to the softmax's input. Without a
// cache the queries of a point are the last ones of its tokens: either their
// rows alone are computed (byRows), or all rows of few tokens are (whole).
type Scorer struct {
	Loaded  *eval.Loaded
	In      string
	Out     string
	Heads   int64
	Mask    string            // graph input [batch, total] that may hide keys; "" when there is none
	Others  []*onnx.ValueInfo // the other integer inputs that F reads
	byRows  bool              // loaded computes the rows that it is asked for
	Whole   bool              // loaded computes all rows
	longest int64             // how many keys can stand before a query
	Extra   int64             // columns behind the keys: 1 where each head has a sink
}

// Sample is one evaluation: scores in, the softmax's input out.
type Sample struct {
	Pt   dim.Point
	Mask []int64
	in   [][]float32
	out  [][]float64
	Base [][]float64 // of scores of zero; nil unless a bias is looked for
}

// Rows evaluates the function on scores and returns its values and the scores
// row by row, as [batch·heads·length][total]. The values of a sink stand behind
// those of the keys.
func (s *Scorer) Rows(ctx context.Context, pt dim.Point, score func() float64, given map[string]engine.Tensor) (in [][]float32, out [][]float64, err error) {
	total := pt.L + pt.P
	computed, sizes := s.sizes(pt)
	dims := []int64{pt.B, s.Heads, computed, total}
	elements, err := bound.Room(dims)
	if err == nil {
		err = probed(elements, dims)
	}
	if err != nil {
		return nil, nil, err
	}
	x := make([]float32, elements)
	for i := range x {
		x[i] = float32(score())
	}
	feeds := map[string]engine.Tensor{s.In: s.Loaded.Piece.State(s.In, x, dims...)}
	for name, t := range given {
		feeds[name] = t
	}
	if _, chosen := feeds[eval.RowsInput]; s.byRows && !chosen {
		feeds[eval.RowsInput] = engine.Int64s(consecutive(pt.P, pt.L), pt.L)
	}
	result, err := s.Loaded.Run(ctx, sizes, feeds)
	if err != nil {
		return nil, nil, fmt.Errorf("ONNX Runtime does not evaluate the mask: %w", err)
	}
	y := result[s.Out]
	if !slices.Equal(y.Dims, []int64{pt.B, s.Heads, computed, total + s.Extra}) {
		return nil, nil, fmt.Errorf("the softmax's input has the shape %v, the scores have %v", y.Dims, dims)
	}
	values := y.Values()
	for r := range pt.B * s.Heads * computed {
		if r%computed >= computed-pt.L {
			in = append(in, x[r*total:(r+1)*total])
			out = append(out, values[r*(total+s.Extra):(r+1)*(total+s.Extra)])
		}
	}
	return in, out, nil
}

// sizes returns how many rows are computed at a point, and the sizes to run at.
func (s *Scorer) sizes(pt dim.Point) (computed int64, sizes dim.Point) {
	switch {
	case s.byRows:
		return pt.L, dim.Point{B: pt.B, L: pt.L + pt.P}
	case s.Whole:
		return pt.L + pt.P, dim.Point{B: pt.B, L: pt.L + pt.P}
	}
	return pt.L, pt
}

// given makes the integer inputs of a point.
func (s *Scorer) given(rng *rand.Rand, pt dim.Point, mask []int64) (map[string]engine.Tensor, error) {
	feeds := map[string]engine.Tensor{}
	_, sizes := s.sizes(pt)
	for _, v := range s.Loaded.Piece.Inputs {
		dims := dim.Evaluate(s.Loaded.Table.Inputs[v.Name], sizes)
		values := mask
		if v.Name != s.Mask {
			values = Integers(rng, engine.Elements(dims), pt)
		}
		t, err := engine.Integers(v.Type, values[:engine.Elements(dims)], dims...)
		if err != nil {
			return nil, err
		}
		feeds[v.Name] = t
	}
	return feeds, nil
}

// Integers makes the values of an input whose role is not known: token ids,
// positions or flags.
func Integers(rng *rand.Rand, n int64, pt dim.Point) []int64 {
	values := make([]int64, n)
	kind := rng.IntN(4)
	for i := range values {
		switch kind {
		case 0:
			values[i] = rng.Int64N(2)
		case 1:
			values[i] = rng.Int64N(100)
		case 2:
			values[i] = pt.P + int64(i)%pt.L
		default:
			values[i] = rng.Int64N(dim.Longest + 1)
		}
	}
	return values
}

func (s *Scorer) sample(ctx context.Context, rng *rand.Rand, fit *Fit, pt dim.Point, mask []int64, score func() float64) (Sample, error) {
	smp := Sample{Pt: pt, Mask: mask}
	given, err := s.given(rng, pt, mask)
	if err != nil {
		return smp, err
	}
	if smp.in, smp.out, err = s.Rows(ctx, pt, score, given); err != nil || !fit.Mask.Bias {
		return smp, err
	}
	_, smp.Base, err = s.Rows(ctx, pt, Zero, given)
	return smp, err
}

// place returns head, batch row and query of a row of scores.
func (s *Scorer) place(pt dim.Point, r int) (h, b, i int64) {
	return int64(r) / pt.L % s.Heads, int64(r) / pt.L / s.Heads, int64(r) % pt.L
}

func Zero() float64 { return 0 }

// Measure recovers what becomes of scores: first as a mask of the kinds that
// the op knows and, where that fails, as a bias that the exporter's graph
// computes and the op adds.
func (s *Scorer) Measure(ctx context.Context) (*Fit, error) {
	unlike := errors.New("it is made of more than a padding mask")
	if len(s.Others) == 0 && (!s.Whole || s.ends()) {
		fit, err := s.fitWith(ctx, &Fit{})
		if err == nil || rotation.Ended(err) {
			return fit, err
		}
		unlike = err
	}
	fit, err := s.fitWith(ctx, &Fit{Mask: rope.Mask{Bias: true}})
	if err == nil || rotation.Ended(err) {
		return fit, err
	}
	return nil, fmt.Errorf("%w; nor is it a bias on scores: %w", unlike, err)
}
