package rewrite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// scorer evaluates the function F from scores to the softmax's input. Without a
// cache the queries of a point are the last ones of its tokens: either their
// rows alone are computed (byRows), or all rows of few tokens are (whole).
type scorer struct {
	loaded  *loaded
	in      string
	out     string
	heads   int64
	mask    string            // graph input [batch, total] that may hide keys; "" when there is none
	others  []*onnx.ValueInfo // the other integer inputs that F reads
	byRows  bool              // loaded computes the rows that it is asked for
	whole   bool              // loaded computes all rows
	longest int64             // how many keys can stand before a query
	extra   int64             // columns behind the keys: 1 where each head has a sink
}

// sample is one evaluation: scores in, the softmax's input out.
type sample struct {
	pt   point
	mask []int64
	in   [][]float32
	out  [][]float64
	base [][]float64 // of scores of zero; nil unless a bias is looked for
}

// rows evaluates the function on scores and returns its values and the scores
// row by row, as [batch·heads·length][total]. The values of a sink stand behind
// those of the keys.
func (s *scorer) rows(ctx context.Context, pt point, score func() float64, given map[string]engine.Tensor) (in [][]float32, out [][]float64, err error) {
	total := pt.L + pt.P
	computed, sizes := s.sizes(pt)
	dims := []int64{pt.B, s.heads, computed, total}
	elements, err := room(dims)
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
	feeds := map[string]engine.Tensor{s.in: s.loaded.piece.state(s.in, x, dims...)}
	for name, t := range given {
		feeds[name] = t
	}
	if _, chosen := feeds[rowsInput]; s.byRows && !chosen {
		feeds[rowsInput] = engine.Int64s(consecutive(pt.P, pt.L), pt.L)
	}
	result, err := s.loaded.run(ctx, sizes, feeds)
	if err != nil {
		return nil, nil, fmt.Errorf("ONNX Runtime does not evaluate the mask: %w", err)
	}
	y := result[s.out]
	if !slices.Equal(y.Dims, []int64{pt.B, s.heads, computed, total + s.extra}) {
		return nil, nil, fmt.Errorf("the softmax's input has the shape %v, the scores have %v", y.Dims, dims)
	}
	values := y.Values()
	for r := range pt.B * s.heads * computed {
		if r%computed >= computed-pt.L {
			in = append(in, x[r*total:(r+1)*total])
			out = append(out, values[r*(total+s.extra):(r+1)*(total+s.extra)])
		}
	}
	return in, out, nil
}

// sizes returns how many rows are computed at a point, and the sizes to run at.
func (s *scorer) sizes(pt point) (computed int64, sizes point) {
	switch {
	case s.byRows:
		return pt.L, point{B: pt.B, L: pt.L + pt.P}
	case s.whole:
		return pt.L + pt.P, point{B: pt.B, L: pt.L + pt.P}
	}
	return pt.L, pt
}

// given makes the integer inputs of a point.
func (s *scorer) given(rng *rand.Rand, pt point, mask []int64) (map[string]engine.Tensor, error) {
	feeds := map[string]engine.Tensor{}
	_, sizes := s.sizes(pt)
	for _, v := range s.loaded.piece.inputs {
		dims := evaluate(s.loaded.table.inputs[v.Name], sizes)
		values := mask
		if v.Name != s.mask {
			values = integers(rng, engine.Elements(dims), pt)
		}
		t, err := engine.Integers(v.Type, values[:engine.Elements(dims)], dims...)
		if err != nil {
			return nil, err
		}
		feeds[v.Name] = t
	}
	return feeds, nil
}

// integers makes the values of an input whose role is not known: token ids,
// positions or flags.
func integers(rng *rand.Rand, n int64, pt point) []int64 {
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
			values[i] = rng.Int64N(longest + 1)
		}
	}
	return values
}

func (s *scorer) sample(ctx context.Context, rng *rand.Rand, fit *scoreFit, pt point, mask []int64, score func() float64) (sample, error) {
	smp := sample{pt: pt, mask: mask}
	given, err := s.given(rng, pt, mask)
	if err != nil {
		return smp, err
	}
	if smp.in, smp.out, err = s.rows(ctx, pt, score, given); err != nil || !fit.mask.Bias {
		return smp, err
	}
	_, smp.base, err = s.rows(ctx, pt, zero, given)
	return smp, err
}

// place returns head, batch row and query of a row of scores.
func (s *scorer) place(pt point, r int) (h, b, i int64) {
	return int64(r) / pt.L % s.heads, int64(r) / pt.L / s.heads, int64(r) % pt.L
}

func zero() float64 { return 0 }

// measure recovers what becomes of scores: first as a mask of the kinds that
// the op knows and, where that fails, as a bias that the exporter's graph
// computes and the op adds.
func (s *scorer) measure(ctx context.Context) (*scoreFit, error) {
	unlike := errors.New("it is made of more than a padding mask")
	if len(s.others) == 0 && (!s.whole || s.ends()) {
		fit, err := s.fit(ctx, &scoreFit{})
		if err == nil || ended(err) {
			return fit, err
		}
		unlike = err
	}
	fit, err := s.fit(ctx, &scoreFit{mask: rope.Mask{Bias: true}})
	if err == nil || ended(err) {
		return fit, err
	}
	return nil, fmt.Errorf("%w; nor is it a bias on scores: %w", unlike, err)
}
