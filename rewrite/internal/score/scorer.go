package score

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// Scorer evaluates what the graph does to scores: a piece from the scores to the
// softmax's input. In a model without a cache, a point with a past means the last L of
// P + L tokens: either only their rows are computed (ChooseRows), or all rows (AllRows).
// A Scorer is not changed once it is made.
type Scorer struct {
	Loaded    *eval.Loaded
	Evaluator *eval.Evaluator   // loads copies of the piece; nil where a mask is not measured
	In        string            // the scores
	Out       string            // the softmax's input
	Fed       dim.Grid          // of the scores
	Read      dim.Grid          // of the softmax's input
	Mask      string            // graph input [batch, total] that may hide keys; "" when there is none
	Others    []*onnx.ValueInfo // the other integer inputs that the piece reads
	Biases    []site.Bias       // hidden states that are added to the scores
	byRows    bool              // the piece computes the rows that it is asked for
	whole     bool              // the piece computes all rows
	all       *Scorer           // of a piece by rows: that which computes all; nil for others
	longest   int64             // how many keys there can be before a query
	overflows bool              // with more, biases would exceed what hides keys
	Extra     int64             // columns behind the keys: 1 where each head has a sink
}

// AllRows returns a Scorer that evaluates all rows of a model without a cache.
func (s *Scorer) AllRows() *Scorer {
	all := *s
	all.whole = true
	return &all
}

// Sample is one evaluation. Its rows are [batch·heads·length][past + length], as Rows
// gives them.
type Sample struct {
	Pt   dim.Point
	Mask []int64     // the padding mask [batch, past + length]
	in   [][]float32 // scores
	out  [][]float32 // the softmax's input for these scores
	Base [][]float32 // the softmax's input for scores of zero; nil unless a bias is measured
}

// Rows evaluates the piece on scores that score returns, one after the other. It returns
// the scores and the softmax's input row by row, as [batch·heads·length][past + length]; a
// sink's value is behind those of the keys. given holds what else is fed.
func (s *Scorer) Rows(ctx context.Context, pt dim.Point, score func() float64, given map[string]engine.Tensor) (in, out [][]float32, err error) {
	x, err := s.zeros(pt)
	if err != nil {
		return nil, nil, err
	}
	for i := range x {
		x[i] = float32(score())
	}
	return s.evaluate(ctx, pt, x, given)
}

// ZeroRows evaluates the piece on scores of zero, as Rows does.
func (s *Scorer) ZeroRows(ctx context.Context, pt dim.Point, given map[string]engine.Tensor) ([][]float32, error) {
	x, err := s.zeros(pt)
	if err != nil {
		return nil, err
	}
	_, out, err := s.evaluate(ctx, pt, x, given)
	return out, err
}

// zeros returns room for the scores of a point.
func (s *Scorer) zeros(pt dim.Point) ([]float32, error) {
	dims := s.dims(pt)
	elements, err := bound.Elements(dims)
	if err == nil {
		err = probed(elements, dims)
	}
	if err != nil {
		return nil, err
	}
	return make([]float32, elements), nil
}

// dims returns the shape of the scores at a point.
func (s *Scorer) dims(pt dim.Point) []int64 {
	computed, sizes := s.sizes(pt)
	return s.Fed.Dims(pt.B, computed, sizes.Keys())
}

// evaluate evaluates the piece on the scores x and returns what Rows does.
func (s *Scorer) evaluate(ctx context.Context, pt dim.Point, x []float32, given map[string]engine.Tensor) (in, out [][]float32, err error) {
	feeds, err := s.feeds(pt, x, given)
	if err != nil {
		return nil, nil, err
	}
	_, sizes := s.sizes(pt)
	result, err := s.Loaded.Run(ctx, sizes, feeds)
	if err != nil {
		return nil, nil, notEvaluated(err)
	}
	return s.rows(pt, x, result)
}

func notEvaluated(err error) error {
	return fmt.Errorf("ONNX Runtime does not evaluate the mask: %w", err)
}

// feeds is what the piece is fed for the scores x, of which those behind a buffer's last token become zeros.
func (s *Scorer) feeds(pt dim.Point, x []float32, given map[string]engine.Tensor) (map[string]engine.Tensor, error) {
	total, dims := pt.Keys(), s.dims(pt)
	width := dims[len(dims)-1] // more than there are keys, where a buffer has unused rows
	for r := int64(0); width > total && r < int64(len(x)); r += width {
		clear(x[r+total : r+width])
	}
	feeds := map[string]engine.Tensor{s.In: s.Loaded.Piece.State(s.In, x, dims...)}
	for name, t := range given {
		feeds[name] = t
	}
	if _, chosen := feeds[eval.RowsInput]; s.byRows && !chosen {
		feeds[eval.RowsInput] = engine.Int64s(consecutive(pt.P, pt.L), pt.L)
	}
	return feeds, s.feedPlaces(pt, feeds)
}

// rows returns the scores x and what the piece made of them, as Rows does.
func (s *Scorer) rows(pt dim.Point, x []float32, result map[string]engine.Tensor) (in, out [][]float32, err error) {
	total, dims := pt.Keys(), s.dims(pt)
	width := dims[len(dims)-1]
	computed, _ := s.sizes(pt)
	y := result[s.Out]
	if !slices.Equal(y.Dims, s.Read.Dims(pt.B, computed, width+s.Extra)) {
		return nil, nil, fmt.Errorf("the softmax's input has the shape %v, the scores have %v", y.Dims, dims)
	}
	values := y.Float32s()
	for r := range pt.B * s.Fed.Heads * computed {
		if r%computed >= computed-pt.L {
			row := values[r*(width+s.Extra) : (r+1)*(width+s.Extra)]
			if i := slices.IndexFunc(row[total:width], func(v float32) bool { return v > Masked }); i >= 0 {
				return nil, nil, fmt.Errorf("row %d of the cache, behind its %d tokens, is visible", total+int64(i), total)
			}
			in = append(in, x[r*width:][:total])
			out = append(out, slices.Delete(row, int(total), int(width)))
		}
	}
	return in, out, nil
}

// sizes returns how many rows of a head are computed at a point, and the sizes to run at.
func (s *Scorer) sizes(pt dim.Point) (computed int64, sizes dim.Point) {
	switch {
	case s.byRows:
		return pt.L, dim.Point{B: pt.B, L: pt.L + pt.P}
	case s.whole:
		return pt.L + pt.P, dim.Point{B: pt.B, L: pt.L + pt.P}
	}
	return pt.L, s.Loaded.Table.Around(pt, 3)
}

// given returns all that is fed beside the scores at a point: the integer inputs, with mask
// as the padding mask, and random numbers for hidden states.
func (s *Scorer) given(rng *rand.Rand, pt dim.Point, mask []int64) (map[string]engine.Tensor, error) {
	feeds := map[string]engine.Tensor{}
	_, sizes := s.sizes(pt)
	for _, v := range s.Loaded.Piece.Inputs {
		if t := s.Loaded.Table; t.Slotted() && v.Name == t.Slots.Input.Name {
			continue
		}
		dims := dim.Evaluate(s.Loaded.Table.Inputs[v.Name], sizes)
		values := Spread(mask, pt.Keys(), sizes.Keys())
		if v.Name != s.Mask {
			values = Integers(rng, engine.Elements(dims), pt)
		}
		t, err := engine.Integers(v.Type, values[:engine.Elements(dims)], dims...)
		if err != nil {
			return nil, err
		}
		feeds[v.Name] = t
	}
	return feeds, s.feedBiases(rng, sizes, feeds)
}

// Spread returns rows of some width with ones behind them, as rows of another width.
func Spread(rows []int64, from, to int64) []int64 {
	if from == to {
		return rows
	}
	var out []int64
	for row := range slices.Chunk(rows, int(from)) {
		out = append(append(out, row...), slices.Repeat([]int64{1}, int(to-from))...)
	}
	return out
}

// Integers returns n values for an integer input of unknown purpose: flags, small
// numbers, positions or token ids.
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

// sample evaluates scores at a point, and scores of zero too where a bias is measured.
func (s *Scorer) sample(ctx context.Context, rng *rand.Rand, fit *Fit, pt dim.Point, mask []int64, score func() float64) (Sample, error) {
	smp := Sample{Pt: pt, Mask: mask}
	given, err := s.given(rng, pt, mask)
	if err != nil {
		return smp, err
	}
	if smp.in, smp.out, err = s.Rows(ctx, pt, score, given); err != nil || !fit.Mask.Bias {
		return smp, err
	}
	smp.Base, err = s.ZeroRows(ctx, pt, given)
	return smp, err
}

// place returns head, row of the batch and query of row r of scores.
func (s *Scorer) place(pt dim.Point, r int) (h, b, i int64) {
	return int64(r) / pt.L % s.Fed.Heads, int64(r) / pt.L / s.Fed.Heads, int64(r) % pt.L
}
