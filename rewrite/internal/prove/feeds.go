package prove

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/score"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// trialFeeds returns the inputs of a trial, with hidden states in float32, and the padding
// mask [batch, keys] from which they were made.
func trialFeeds(ev *eval.Evaluator, rng *rand.Rand, s *site.Sized, measured *measure.Measured, t trial) (feeds map[string]engine.Tensor, mask []int64) {
	feeds = map[string]engine.Tensor{}
	run := sizes(ev, t)
	for _, boundary := range s.Boundaries() {
		dims := dim.Evaluate(ev.Table.Dims[boundary], run)
		x := make([]float32, engine.Elements(dims))
		added := slices.IndexFunc(s.Biases, func(b site.Bias) bool { return b.Value == boundary })
		switch {
		case added >= 0:
			score.States(rng, x, s.Biases[added], t.magnitude)
		case ev.Table.Scales[boundary]:
			for i := range x {
				x[i] = 0.5 + rng.Float32() // about 1, like norms and temperatures
			}
		default:
			for i := range x {
				if x[i] = float32(t.magnitude * rng.NormFloat64()); t.ties {
					x[i] = float32(math.Round(float64(x[i])))
				}
			}
		}
		ir.Round(x, ev.Graph.Element(boundary))
		feeds[boundary] = engine.Float32s(x, dims...)
	}
	site.Feed(t.lengths, s, feeds)
	mask = eval.Padding(rng, t.pt, t.padding)
	total := t.pt.Keys()
	if measured.Attention.Cross {
		keepLast(mask, total)
	}
	if measured.Mask != nil {
		if n := measured.Attention.Encoding.LengthDependent.Trained; n > 0 && measured.Position == nil && !measured.Layouts.Cached && total > n {
			mask[total-1] = 1 // a call beyond the trained length of which every row ends with padding is refused (lower.Binding)
		}
	}
	for _, v := range measured.Masks() {
		dims := dim.Evaluate(ev.Table.Inputs[v.Name], run)
		if dims[0] == 1 { // one row of padding for the whole batch
			for b := range t.pt.B {
				copy(mask[b*total:], mask[:total])
			}
		}
		// This input is known to have an integer type.
		feeds[v.Name], _ = engine.Integers(v.Type, score.Spread(mask, total, run.Keys())[:engine.Elements(dims)], dims...)
	}
	position := measured.Ids()
	others := measured.Others
	if measured.Computed != nil {
		others = append(slices.Clone(others), measured.Computed.Inputs...)
	}
	for _, v := range others {
		if _, fed := feeds[v.Name]; !fed && (position == nil || v.Name != position.Name) {
			dims := dim.Evaluate(ev.Table.Inputs[v.Name], t.pt)
			// This input is known to have an integer type.
			feeds[v.Name], _ = engine.Integers(v.Type, score.Integers(rng, engine.Elements(dims), t.pt), dims...)
		}
	}
	if position != nil {
		dims := dim.Evaluate(ev.Table.Inputs[position.Name], t.pt)
		positions := make([]int64, engine.Elements(dims))
		last := min(farthestPosition, measured.PositionLimit)
		if t.largestPosition > 0 {
			last = min(last, t.largestPosition)
		}
		rows := int64(1)
		if len(dims) > 1 {
			rows = dims[len(dims)-2]
		}
		for i := range positions { // the same on each axis of a token, unless they are random
			b, row := int64(i)/t.pt.L%rows, int64(i)%t.pt.L
			switch t.positions {
			case followPadding:
				// The number of tokens before this one that are not padding; 1 for padding.
				positions[i] = -1
				for j := range t.pt.P + row + 1 {
					positions[i] += mask[b*total+j]
				}
				if mask[b*total+t.pt.P+row] == 0 {
					positions[i] = 1
				}
				positions[i] = min(positions[i], last)
			case randomPositions:
				positions[i] = rng.Int64N(last + 1)
			default:
				positions[i] = min(max(t.positions, 0)+row, last) // beyond the end of a table its last row is used
			}
		}
		if measured.Attention.Encoding.LengthDependent.Trained > 0 {
			behindReal(positions, mask, t, measured.Mask != nil)
		}
		feeds[position.Name], _ = engine.Integers(position.Type, positions, dims...)
	}
	if measured.Slots != nil {
		// This input is known to have an integer type.
		feeds[measured.Slots.Input.Name], _ = ev.Table.Places(t.pt.L, t.pt.P)
	}
	return feeds, mask
}

// behindReal changes the positions of padded tokens to 0 where a call's frequencies follow
// its largest position: the op goes by that of real tokens, and a call in which another one
// is larger is refused (lower.Binding).
func behindReal(positions, mask []int64, t trial, padded bool) {
	total := t.pt.L + t.pt.P
	for i := range positions {
		b, row := int64(i)/t.pt.L, int64(i)%t.pt.L
		if padded && mask[b*total+t.pt.P+row] == 0 {
			positions[i] = 0
		}
	}
}

// unusedRows is how many rows there are behind the tokens of a buffer of any size.
const unusedRows = 3

// sizes returns the sizes at which a trial is run: those of its call, with as many rows as
// the buffers of its cache have.
func sizes(ev *eval.Evaluator, t trial) dim.Point { return ev.Table.Around(t.pt, unusedRows) }

// cast returns those of the feeds that the piece reads, with hidden states in its element
// type.
func cast(l *eval.Loaded, feeds map[string]engine.Tensor) map[string]engine.Tensor {
	reads := map[string]bool{}
	for _, v := range l.Piece.Inputs {
		reads[v.Name] = true
	}
	for _, c := range l.Piece.Boundaries {
		reads[c] = true
	}
	for _, v := range l.Piece.Typed {
		reads[v.Name] = true
	}
	out := map[string]engine.Tensor{}
	for name, t := range feeds {
		switch {
		case !reads[name]:
		case t.Type == onnx.Float && l.Elem == onnx.Double:
			out[name] = engine.Float64s(t.Values(), t.Dims...)
		default:
			out[name] = t
		}
	}
	return out
}
