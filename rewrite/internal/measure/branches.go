package measure

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/positions"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// sameRotation refuses a query and a key that are rotated in different ways.
func sameRotation(s *site.Sized, q, k rope.Encoding) error {
	if len(q.Frequencies) != len(k.Frequencies) || q.Layout != k.Layout || q.Offset != k.Offset {
		return graph.Refuse(s.ScoresMatMul, "query and key are rotated differently: %d pairs from channel %d and %d pairs from channel %d",
			len(q.Frequencies), q.Offset, len(k.Frequencies), k.Offset)
	}
	if q.LengthDependent.Trained != k.LengthDependent.Trained {
		return graph.Refuse(s.ScoresMatMul, "the frequencies of the query change from %d tokens on, those of the key from %d", q.LengthDependent.Trained+1, k.LengthDependent.Trained+1)
	}
	if q.LengthDependent.NTK != k.LengthDependent.NTK {
		return graph.Refuse(s.ScoresMatMul, "beyond %d tokens the frequencies of query and key follow the length in different ways", k.LengthDependent.Trained)
	}
	if len(q.Axes) != len(k.Axes) {
		return graph.Refuse(s.ScoresMatMul, "one of query and key is rotated by several positions of each token, the other by one")
	}
	for pair, axis := range k.Axes {
		if q.Axes[pair] != axis {
			return graph.Refuse(s.ScoresMatMul, "pair %d rotates by position %d of a token's in the query and by position %d in the key", pair, q.Axes[pair]+1, axis+1)
		}
	}
	for _, both := range [][2][]float64{{q.Frequencies, k.Frequencies}, {q.LengthDependent.Long, k.LengthDependent.Long}} {
		for i, w := range both[1] {
			if math.Abs(w-both[0][i]) > 1e-6*math.Abs(w)+1e-10 {
				return graph.Refuse(s.ScoresMatMul, "pair %d rotates by %g per position in the query and by %g in the key", i, both[0][i], w)
			}
		}
	}
	return nil
}

// joinBranches sets a's encoding to the one that query and key were both measured to
// have, and returns what it multiplies the scores by. It refuses two that differ.
func joinBranches(s *site.Sized, a *rope.Attention, query, key *rotation.Matrix) (float64, error) {
	q, k := query.Encoding, key.Encoding
	if err := sameRotation(s, q, k); err != nil {
		return 0, err
	}
	a.Encoding = k
	a.Encoding.ExactAngles = q.ExactAngles && k.ExactAngles
	a.QueryFactors, a.KeyFactors = query.Factors, key.Factors
	scale := query.Factor
	partial := 2*len(k.Frequencies) < a.HeadSize
	// Without a cache nothing else reads the rotated keys, nor where they are rotated behind
	// it. So a factor on them is part of the scale, which exporters split over query and key.
	cached := s.Key.Update() != nil && !s.Key.Behind
	switch {
	case !partial && cached:
		// A gain on all channels of the query cannot be told from the scale.
		scale = q.EffectiveGain() / k.EffectiveGain()
	case !partial:
		scale, a.Encoding.Gain = q.EffectiveGain()*k.EffectiveGain(), 1
	case math.Abs(q.EffectiveGain()-k.EffectiveGain()) > 16*ir.Float32eps*k.EffectiveGain():
		return 0, graph.Refuse(s.ScoresMatMul, "the rotation multiplies the query by %g and the key by %g", q.EffectiveGain(), k.EffectiveGain())
	case !cached:
		scale *= key.Factor
	}
	if cached && math.Abs(key.Factor-1) > 16*ir.Float32eps {
		return 0, graph.Refuse(s.ScoresMatMul, "the key is multiplied by %g before it is stored", key.Factor)
	}
	if math.Abs(a.Encoding.Gain-1) <= 16*ir.Float32eps {
		a.Encoding.Gain = 1
	}
	return scale, nil
}

// branchRotation measures the rotation of one branch, from its boundaries to out. It also
// returns what tells the positions. from and to are the layouts before and after; at and what
// are for the text of a refusal. mask is the padding mask, nil where it is not known.
func branchRotation(ctx context.Context, ev *eval.Evaluator, b site.Branch, at *onnx.Node, what, out string, from, to dim.Layout, mask *onnx.ValueInfo) (*rotation.Matrix, placed, error) {
	if b.Boundary == out { // it enters the site as it is used
		return &rotation.Matrix{Factor: 1, Limit: ir.TopPosition, AnyLength: true}, placed{}, nil
	}
	if from.Channels != to.Channels {
		return nil, placed{}, graph.Refuse(at, "the heads of its %s have %d channels before the rotation, and %d after it", what, from.Channels, to.Channels)
	}
	computed, err := positions.Find(ctx, ev, out, b.MeasuredFrom(), mask)
	if err != nil {
		return nil, placed{}, graph.Refuse(at, "the positions of its %s cannot be evaluated: %v", what, err)
	}
	o, err := openBranch(ctx, ev, b, at, what, out, computed)
	if err != nil {
		return nil, placed{}, err
	}
	defer o.close()
	whole := func(piece *eval.Loaded, position *rotation.Position, components int64) *rotation.Rotator {
		r := rotatorOf(piece, b, out, from, to)
		r.Position, r.Components = position, components
		return r
	}
	rotator := func(piece *eval.Loaded, position *rotation.Position, components int64) *rotation.Rotator {
		r := rotatorOf(o.whole, b, out, from, to)
		r.Loaded, r.Tables, r.Places, r.Position, r.Components = piece, o.tables, o.places, position, components
		return r
	}
	unlike := func(err error) error {
		return graph.Refuse(at, "its %s is not rotated by position as in RoPE: %w", what, err)
	}
	changes := o.tables.Changes()
	if condition, err := choice(ev.Graph, out, b.MeasuredFrom()); changes == nil && (err != nil || condition != "") {
		var m *rotation.Matrix
		if err == nil {
			measure := func(side *eval.Loaded) (*rotation.Matrix, error) { return rotator(side, nil, 0).Measure(ctx) }
			m, err = measureBranches(ctx, ev, at, out, b.MeasuredFrom(), condition, measure)
		}
		if err != nil {
			return nil, placed{}, unlike(err)
		}
		return m, placed{}, nil
	}
	if computed != nil {
		m, err := rotator(o.fed, o.position, 0).Measure(ctx)
		if err != nil {
			return nil, placed{}, unlike(fmt.Errorf("by the positions that the graph computes (%q), %w", short.Name(computed.Value), err))
		}
		if err := o.smallCalls(ctx, ev, m, computed, whole(o.whole, o.position, 0)); err != nil {
			return nil, placed{}, unlike(err)
		}
		return m, placed{computed: computed}, nil
	}
	input, components, err := positionInput(ev, at, what, o.whole.Piece.Inputs)
	if err != nil {
		return nil, placed{}, err
	}
	if input != nil && mask != nil && input.Name == mask.Name {
		if m, err := rotator(o.fed, ofInput(ev, input), components).Measure(ctx); err == nil && len(m.Encoding.Frequencies) > 0 {
			return nil, placed{}, tellsPositions{mask}
		}
		return nil, placed{}, graph.Refuse(at, "the rotation of its %s depends on the padding mask %q not only through positions", what, short.Name(mask.Name))
	}
	var position *rotation.Position
	if input != nil {
		position = ofInput(ev, input)
	}
	var m *rotation.Matrix
	if changes == nil {
		m, err = rotator(o.fed, position, components).Measure(ctx)
	} else {
		err = changes
	}
	if err != nil && !bisect.Ended(err) {
		if reached, e := rotator(o.fed, position, components).ByReach(ctx); e == nil {
			if m, err = joinTrainedAndLong(reached.Near, reached.Far, reached.Trained); err == nil && reached.NTK != 0 {
				m.Encoding.LengthDependent = rope.LengthDependent{Trained: reached.Trained, NTK: reached.NTK}
			}
		} else if bisect.Ended(e) {
			err = e
		} else if changes != nil {
			err = rotator(o.fed, position, components).Explain(ctx, changes)
			if other := (rotation.OtherFormula{}); errors.As(e, &other) && errors.As(err, new(rotation.Followed)) {
				err = fmt.Errorf("%w (they do not follow dynamic NTK: %w)", err, other)
			}
		} else if other := (rotation.OtherFormula{}); errors.As(e, &other) {
			err = fmt.Errorf("%w (they do not follow dynamic NTK: %w)", err, other)
		}
	}
	if err != nil {
		return nil, placed{}, unlike(err)
	}
	if err := o.smallCalls(ctx, ev, m, nil, whole(o.whole, position, components)); err != nil {
		return nil, placed{}, unlike(err)
	}
	return m, placed{input: input}, nil
}

// tellsPositions says that an input that was taken for the padding mask holds the positions.
type tellsPositions struct{ input *onnx.ValueInfo }

func (e tellsPositions) Error() string {
	return fmt.Sprintf("the input %q holds positions and is no padding mask", short.Name(e.input.Name))
}

// positionInput returns the graph input with the positions, nil where there is none, and
// how many positions it gives a token, 0 where that is one. inputs are those that the
// rotation reads; at and what are for the text of a refusal.
func positionInput(ev *eval.Evaluator, at *onnx.Node, what string, inputs []*onnx.ValueInfo) (position *onnx.ValueInfo, components int64, err error) {
	switch len(inputs) {
	case 0:
		return nil, 0, nil
	case 1:
		position = inputs[0]
	default:
		return nil, 0, graph.Refuse(at, "the rotation of its %s depends on %d inputs (%q, %q); expected one", what, len(inputs), short.Name(inputs[0].Name), short.Name(inputs[1].Name))
	}
	dims := ev.Table.Inputs[position.Name]
	if len(dims) == 3 && dims[0].Constant() && dims[2] == dim.LengthExtent {
		components = dims[0].One // positions of time, height and width, say
	}
	if components == 0 && len(dims) > 2 || len(dims) == 0 || dims[len(dims)-1] != dim.LengthExtent {
		return nil, 0, graph.Refuse(at, "the rotation of its %s depends on the input %q of shape %v; expected positions [batch, length] or [axes, batch, length]", what, short.Name(position.Name), dims)
	}
	return position, components, nil
}
