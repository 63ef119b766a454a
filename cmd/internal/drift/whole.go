package drift

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/float16"
	"github.com/rope-rewrite/rope-rewrite/internal/signature"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

var errNoPositions = errors.New("the model takes no positions as input, so they cannot be shifted; leave --whole-model out to measure one run")

// positionIDs is the place of an input of the op.
const positionIDs = 5

// WholeOptions says what RunWhole measures.
type WholeOptions struct {
	Rewrite rewrite.Options
	Texts   [][]int64 // of one length, two tokens at least; nil draws one
	Length  int       // of the drawn one
	Shifts  []int64   // Δ1, of all positions
	Against int64     // Δ2, with which each is compared
	Control bool      // the same of freshly drawn weights
	Spread  float64   // their standard deviation
}

// WholeRow is the drift in one arithmetic between two shifts, the mean of all texts.
type WholeRow struct {
	Arithmetic Arithmetic `json:"arithmetic"`
	Shift      int64      `json:"shift"`
	Drift                 // summed over the layers
	Keys       []float64  `json:"keys"`    // D of each token, before it is summed over them
	Lengths    []float64  `json:"lengths"` // D_logit of the text up to each of Whole.Lengths
	Control    *WholeRow  `json:"control,omitempty"`
}

// Whole is what RunWhole found.
type Whole struct {
	Tokens  int        `json:"tokens"`
	Texts   int        `json:"texts"`
	Against int64      `json:"against"`
	Layers  []int      `json:"layers"` // that were measured
	Left    []Left     `json:"left"`   // that were not, and run as they are
	Lengths []int      `json:"lengths"`
	Rows    []WholeRow `json:"rows"`
}

// RunWhole measures what Wang et al. do (arXiv:2411.13476, section 3): the whole model runs with all its
// positions shifted, so that a layer's queries and keys are made of what the layers below made of the shift.
// In each arithmetic rotated queries and keys are rounded in every layer before they are multiplied, and
// all else is float32.
func RunWhole(ctx context.Context, path string, opts WholeOptions) (*Whole, error) {
	m, err := onnx.Open(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if float16.Has(m) {
		return nil, fmt.Errorf("%s computes in 16 bits already, and its other roundings cannot be told from those of the products; measure the export in float32, or one run (without --whole-model)", path)
	}
	if _, _, err := rewrite.ReadOps(m); err != nil {
		o := opts.Rewrite
		o.AllowUnchanged, o.Output.NoFallback = true, true
		if _, err := rewrite.Rewrite(ctx, m, o); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	if opts.Texts == nil {
		sign, err := signature.Read(m, filepath.Dir(path))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		opts.Texts = [][]int64{random(sign.Vocabulary, opts.Length)}
	}
	w := &Whole{Tokens: len(opts.Texts[0]), Texts: len(opts.Texts), Against: opts.Against, Layers: []int{}, Left: []Left{}}
	for n := 1; n < w.Tokens; n *= 2 {
		w.Lengths = append(w.Lengths, n)
	}
	w.Lengths = append(w.Lengths, w.Tokens)
	for _, a := range []Arithmetic{Float32, BFloat16, Float16} {
		rows, err := w.arithmetic(ctx, path, m, a, opts, false)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if opts.Control {
			control, err := w.arithmetic(ctx, path, m, a, opts, true)
			if err != nil {
				return nil, fmt.Errorf("%s with random weights: %w", path, err)
			}
			for i := range rows {
				rows[i].Control = &control[i]
			}
		}
		w.Rows = append(w.Rows, rows...)
	}
	return w, nil
}

// arithmetic measures all texts and shifts in one arithmetic, by the model's weights or fresh ones.
func (w *Whole) arithmetic(ctx context.Context, path string, m *onnx.Model, a Arithmetic, opts WholeOptions, fresh bool) ([]WholeRow, error) {
	say := func(text string) {
		if fresh {
			text += " with random weights"
		}
		if opts.Rewrite.Progress != nil {
			opts.Rewrite.Progress(text)
		}
	}
	say("loading the model in " + string(a))
	eng, err := engine.Open(engine.Config{Runtime: opts.Rewrite.Evaluation.Runtime, Library: opts.Rewrite.Evaluation.Library}, opts.Rewrite.Evaluation.Worker)
	if err != nil {
		return nil, err
	}
	defer eng.Close()
	s, err := openShifted(ctx, eng, path, m.Clone(), a, opts, fresh)
	if err != nil {
		return nil, err
	}
	defer s.decoder.Close()
	w.Layers, w.Left = s.layers, s.left
	sums := make([]Detail, len(opts.Shifts))
	for t, tokens := range opts.Texts {
		say(fmt.Sprintf("%s, text %d of %d", a, t+1, len(opts.Texts)))
		against, err := s.run(ctx, tokens, opts.Against)
		if err != nil {
			return nil, err
		}
		for i, shift := range opts.Shifts {
			moved, err := s.run(ctx, tokens, shift)
			if err != nil {
				return nil, err
			}
			for l, turned := range moved {
				layer := s.ops[l].Attention
				layer.HeadSize = len(turned.query.high) / layer.Heads / len(tokens)
				sums[i].add(details(layer, positions(len(tokens), 0), against[l], turned))
			}
		}
	}
	rows := make([]WholeRow, len(opts.Shifts))
	for i, sum := range sums {
		for j := range sum.Keys {
			sum.Keys[j] /= float64(len(opts.Texts))
			sum.Queries[j] /= float64(len(opts.Texts))
		}
		rows[i] = WholeRow{Arithmetic: a, Shift: opts.Shifts[i], Drift: sum.Drift(), Keys: sum.Keys}
		for _, n := range w.Lengths {
			rows[i].Lengths = append(rows[i].Lengths, sum.FirstKeyUpTo(n))
		}
	}
	return rows, nil
}

// shifted is a model in one arithmetic, which runs at any shift.
type shifted struct {
	arithmetic Arithmetic
	decoder    *decoder.Decoder
	ops        []rewrite.Op // that are measured
	values     [][2]string  // of each, the outputs with its rotated queries and keys
	positions  string       // an output with the positions that the first op is given
	layers     []int
	left       []Left
}

func openShifted(ctx context.Context, eng engine.Engine, path string, m *onnx.Model, a Arithmetic, opts WholeOptions, fresh bool) (*shifted, error) {
	ops, skipped, err := rewrite.ReadOps(m)
	if err != nil {
		return nil, err
	}
	if fresh {
		if err := freshen(m, opts.Spread); err != nil {
			return nil, err
		}
	}
	s := &shifted{arithmetic: a, layers: []int{}, left: []Left{}}
	for _, k := range skipped {
		s.left = append(s.left, Left{k.Layer, k.Reason})
	}
	reach := slices.Max(append(slices.Clone(opts.Shifts), opts.Against)) + int64(len(opts.Texts[0]))
	r := newRounder(m, a, reach)
	var more []*onnx.ValueInfo
	for _, op := range ops {
		if reason := unfitWhole(op, len(opts.Texts[0])); reason != "" {
			s.left = append(s.left, Left{op.Layer, reason})
			continue
		}
		query, key := r.round(op)
		s.ops, s.layers, s.values = append(s.ops, op), append(s.layers, op.Layer), append(s.values, [2]string{query, key})
		more = append(more, &onnx.ValueInfo{Name: query, Type: onnx.Float}, &onnx.ValueInfo{Name: key, Type: onnx.Float})
		if s.positions == "" {
			s.positions = r.node("Identity", op.Node.Inputs[positionIDs])
			more = append(more, &onnx.ValueInfo{Name: s.positions, Type: onnx.Int64})
		}
	}
	if len(s.ops) == 0 {
		return nil, fmt.Errorf("no attention layer of the model can be measured: %s", s.left[0].Reason)
	}
	// Graph optimisations could take a cast to 16 bits and back for nothing.
	if s.decoder, err = decoder.Open(ctx, eng, path, decoder.Options{Model: m, Outputs: more, AsWritten: true}); err != nil {
		return nil, err
	}
	if !s.decoder.Takes(signature.Positions) {
		return nil, errors.Join(errNoPositions, s.decoder.Close())
	}
	return s, nil
}

// unfitWhole says why an op is not measured; "" where it is.
func unfitWhole(op rewrite.Op, length int) string {
	a := op.Attention
	switch {
	case len(op.Node.Inputs) <= positionIDs || op.Node.Inputs[positionIDs] == "":
		return "its positions are those in the cache, which do not shift"
	case a.Encoding.LengthDependent.Trained > 0:
		return "its frequencies depend on the length of a call, so a shift changes them"
	case a.Temperature != rope.Temperature{}:
		return "its scores depend on the position itself, so a shift changes them"
	}
	return Unfit(ref.Problem{Attention: a, Batch: 1, Length: length, Positions: positions(length, 0)})
}

// run runs the model at a shift and returns the turned queries and keys of each op.
func (s *shifted) run(ctx context.Context, tokens []int64, shift int64) (list []Turned, err error) {
	n := len(tokens)
	at := positions(n, shift)
	out, err := s.decoder.All(ctx, decoder.Step{Batch: 1, Length: int64(n), IDs: tokens, Mask: slices.Repeat([]int64{1}, n), Positions: at})
	if err != nil {
		return nil, err
	}
	for i, x := range out[s.positions].Values() {
		if int64(x) != at[i] {
			return nil, errNoPositions
		}
	}
	for i, op := range s.ops {
		list = append(list, Turned{
			arithmetic: s.arithmetic,
			query:      vectors{high: byHead(out[s.values[i][0]], op.Attention.Heads)},
			key:        vectors{high: byHead(out[s.values[i][1]], op.Attention.KVHeads)},
		})
	}
	return list, nil
}

// byHead returns a tensor [1, heads, length, size] or [1, length, heads·size] in the first order.
func byHead(t engine.Tensor, heads int) []float32 {
	values := t.Values()
	out := make([]float32, 0, len(values))
	if len(t.Dims) == 4 {
		for _, x := range values {
			out = append(out, float32(x))
		}
		return out
	}
	length, size := int(t.Dims[1]), int(t.Dims[2])/heads
	for h := range heads {
		for l := range length {
			for _, x := range values[(l*heads+h)*size:][:size] {
				out = append(out, float32(x))
			}
		}
	}
	return out
}

func positions(n int, from int64) (list []int64) {
	for i := range n {
		list = append(list, from+int64(i))
	}
	return list
}

// Shown is the row whose curves by token and by length are shown: in bfloat16, of the shifts 0 and 16 as in
// the paper, or else of the last one.
func (w *Whole) Shown() (row WholeRow) {
	for _, r := range w.Rows {
		if r.Arithmetic != BFloat16 {
			continue
		}
		row = r
		if min(r.Shift, w.Against) == 0 && max(r.Shift, w.Against) == 16 {
			return row
		}
	}
	return row
}
