package measure

import (
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/positions"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/score"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Measured is what was measured of a site: what it computes, as a value, and which graph
// inputs are its positions and its padding mask. Nothing in it is changed later.
type Measured struct {
	Attention     rope.Attention
	Layouts       *site.Layouts
	Position      *onnx.ValueInfo           // graph input [batch, length]; nil when positions are indices, or computed
	Computed      *positions.Computed       // positions that the graph computes itself; nil for most
	Mask          *onnx.ValueInfo           // graph input [batch, past + length]; nil without padding mask
	Others        []*onnx.ValueInfo         // other integer inputs that the model's own bias is computed from
	InOrder       bool                      // a key is visible only if as many positions as places lie between it and the query
	ScalarBias    bool                      // this bias can be computed from a single zero in place of all scores
	PositionLimit int64                     // the largest position that the model itself can compute
	Unknown       float64                   // relative error that the frequencies may have beyond float32's
	Finer         []float64                 // the frequencies, where they have digits that float32 has not; nil for most
	QueryOrder    []int64                   // for each channel that the op rotates: its index in the model's query; nil where all are equal
	KeyOrder      []int64                   // the same of the key
	QueryNorms    []float64                 // for each of Query.Scales that is a norm: the factor on the query before it
	KeyNorms      []float64                 // the same of the key
	Angles        rope.Precision            // of the element type in which angles are computed
	TokenLimit    int64                     // how many tokens, cached ones included, the model itself can compute
	RotationOnly  bool                      // only the rotation was measured, not mask, scale and values
	Static        dim.Point                 // the static sizes of the model, 0 for those that are free
	Latent        *Latent                   // how keys are concatenated in latent attention; nil for most
	LengthTracked *fused.LengthTrackedCache // the inputs that count the cached tokens; nil where every row of past is a token
	Turned        bool                      // query and key enter the site already rotated, in a way that was not measured (turned.go)
	Slots         *Slots                    // how a cache of fixed size is written; nil where it grows
	Exact         provenance.Exact          // for which calls mask and positions were compared without sampling
	Cases         score.Cases               // what happens in these calls
	Rotated       *Rotated                  // of a rotation without its attention (site.Site.Alone); nil for others
}

// Placed reports whether the site tells positions apart by what was measured: by a rotation, or by a
// bias by distance.
func (m *Measured) Placed() bool { return m.Rotary() || !m.Attention.Distance.IsZero() }

// Rotary reports whether the site rotates any channels.
func (m *Measured) Rotary() bool { return len(m.Attention.Encoding.Frequencies) > 0 }

// Site measures a site as a whole: values, scores, mask and rotation. It refuses a site
// that computes anything that a rope.Attention does not express.
func Site(ctx context.Context, ev *eval.Evaluator, s *site.Sized) (*Measured, error) {
	switch {
	case s.Crosses:
		return cross(ctx, ev, s)
	case s.Alone > 0:
		return rotationSite(ctx, ev, s)
	}
	if err := slotsKnown(ev.Table, s); err != nil {
		return nil, err
	}
	ly, err := s.Layouts(ev.Table)
	if err != nil {
		return nil, cmp.Or(OtherPlaces(ctx, ev.Engine, ev.Graph, s.Core), err)
	}
	if ly, err = unpack(ctx, ev, s, ly); err != nil {
		return nil, err
	}
	if err := ly.Check(); err != nil {
		return nil, graph.Refuse(s.ScoresMatMul, "%v", err)
	}
	out := &Measured{Layouts: ly, LengthTracked: s.LengthTracked, Turned: s.Turns}
	a := &out.Attention
	a.Heads, a.KVHeads = int(ly.Query.Heads), int(ly.Key.Heads)
	a.HeadSize = int(ly.Query.Channels)

	if out.Slots, err = slotted(ctx, ev, s, ly); err != nil {
		return nil, err
	}
	if s.LengthTracked != nil {
		if err := lengthsCounted(ctx, ev, s); err != nil {
			return nil, err
		}
	}
	// Probabilities and values must be used as they are, except that heads are repeated.
	if err := checkProbabilities(ctx, ev, s, ly); err != nil {
		return nil, err
	}
	if err := checkValues(ctx, ev, s, ly); err != nil {
		return nil, err
	}
	if out.QueryNorms, err = normFactors(ctx, ev, s.Query, "query", ly.Query); err != nil {
		return nil, RotationRefusal{err}
	}
	if out.KeyNorms, err = normFactors(ctx, ev, s.Key, "key", ly.Key); err != nil {
		return nil, RotationRefusal{err}
	}
	err = scoresAndRotation(ctx, ev, s, out, nil)
	if taken := (tellsPositions{}); errors.As(err, &taken) {
		places := taken.input
		if err = scoresAndRotation(ctx, ev, s, out, places); errors.As(err, &taken) {
			err = graph.Refuse(s.ScoresMatMul, "the query is rotated by the input %q, the key by the input %q, which are not the same", short.Name(places.Name), short.Name(taken.input.Name))
		}
	}
	if err != nil {
		return nil, err
	}
	takeScale(a)
	carried(ev, s, &out.Exact)
	return out, lengthsFormula(ctx, ev, s, &out.Exact)
}

// scoresAndRotation completes out with what becomes of scores, and with what rotates query and key. Without a cache the
// positions have the shape of a padding mask: places is an input that is known to hold them, nil before that is known.
func scoresAndRotation(ctx context.Context, ev *eval.Evaluator, s *site.Sized, out *Measured, places *onnx.ValueInfo) error {
	a := &out.Attention
	scores, err := measureScores(ctx, ev, s, out.Layouts, places)
	if err != nil {
		return err
	}
	a.Mask, a.Softcap, a.Sinks, out.Mask = scores.Mask, scores.Curve.Softcap, scores.Sinks, scores.padding
	if err := sinksBehind(s, a); err != nil {
		return err
	}
	a.Distance = scores.Distance
	out.Exact, out.Cases = scores.Exact, scores.Cases
	out.TokenLimit, out.Others, out.ScalarBias, out.InOrder = scores.Tokens, scores.Others, scores.scalarBias, scores.inOrder
	if out.Slots != nil {
		out.Slots.Consecutive = out.Slots.Consecutive || scores.consecutive
	}
	switch err := measureRotation(ctx, ev, s, out); {
	case errors.As(err, new(rotation.NotANumber)), errors.As(err, new(tellsPositions)):
		return err // the scores mean nothing either, or were measured with positions for padding
	case err != nil:
		return RotationRefusal{cmp.Or(OtherPlaces(ctx, ev.Engine, ev.Graph, s.Core), err)}
	}
	a.Scale *= scores.Curve.Factor
	return nil
}

// sinksBehind takes sinks that the site applies behind the softmax.
func sinksBehind(s *site.Sized, a *rope.Attention) error {
	if s.Sink == nil {
		return nil
	}
	sinks, err := s.Sink.Float64s()
	if err != nil || len(sinks) != a.Heads || a.Sinks != nil {
		return graph.Refuse(s.Softmax, "its %d heads have %d sinks behind the softmax (%q)", a.Heads, len(sinks), short.Name(s.Sink.Name))
	}
	a.Sinks = sinks
	return nil
}

// takeScale gives an attention whose queries have factors behind the rotation the usual
// scale: what is a scale and what belongs to the factors cannot be told apart, and
// exporters often put a part of the scale on the query.
func takeScale(a *rope.Attention) {
	if a.QueryFactors == nil {
		return
	}
	usual := 1 / math.Sqrt(float64(a.HeadSize))
	for c := range a.QueryFactors {
		a.QueryFactors[c] *= a.Scale / usual
	}
	a.Scale = usual
}

// measureRotation completes out with what rotates query and key, and with the scale as
// far as it comes from their path to the scores.
func measureRotation(ctx context.Context, ev *eval.Evaluator, s *site.Sized, out *Measured) error {
	ly := out.Layouts
	query, position, err := branchRotation(ctx, ev, s.Query, s.ScoresMatMul, "query", s.Query.Operand, ly.Query, ly.QueryOperand, out.Mask)
	if err != nil {
		return err
	}
	var key *rotation.Matrix
	var keyPosition placed
	var factor float64
	if s.Key.Behind {
		key, err = rotationBehindCache(ctx, ev, s, ly, out.Mask)
		if err == nil && position != (placed{}) {
			err = graph.Refuse(s.ScoresMatMul, "its cached keys are rotated by their index when they are read, but the query by %s; expected both by index", position.text())
		}
		out.Attention.Cache = rope.Raw
	} else if s.Key.Shared == nil {
		key, keyPosition, err = branchRotation(ctx, ev, s.Key, s.ScoresMatMul, "key", s.Key.Cached(), ly.Key, ly.KeyCached, out.Mask)
	} else {
		key, keyPosition, out.Latent, err = sharedRotation(ctx, ev, s, ly, out.Mask)
	}
	if err != nil {
		return err
	}
	if err := onePosition(ctx, ev, s, position, keyPosition); err != nil {
		return err
	}
	if out.Latent != nil {
		factor = out.Latent.factor
	} else if factor, err = keyRepeat(ctx, ev, s, ly); err != nil {
		return err
	}
	for _, b := range []struct {
		what   string
		branch site.Branch
		matrix *rotation.Matrix
	}{{"query", s.Query, query}, {"key", s.Key, key}} {
		if len(b.matrix.Encoding.Frequencies) > 0 || s.Turns {
			continue
		}
		if n := site.RotatedBefore(ev.Graph, b.branch.Boundaries()); n != nil {
			return graph.Refuse(s.ScoresMatMul, "its %s is rotated by position at %s, and a later step is not linear (a norm, say); the op rotates queries and keys last", b.what, ir.Label(n))
		}
	}
	scale, err := joinBranches(s, &out.Attention, query, key)
	if err != nil {
		return err
	}
	out.Position, out.Computed, out.QueryOrder, out.KeyOrder = position.input, position.computed, query.Order, key.Order
	out.Static = ev.Table.Static
	turns(&out.Exact, query, key)
	out.Unknown = math.Max(query.Unknown, key.Unknown)
	if out.Attention.Encoding.ExactAngles {
		out.Finer = key.Finer
	}
	out.PositionLimit, out.Angles = min(query.Limit, key.Limit), query.Angles
	out.Attention.Scale = scale * factor
	switch {
	case out.Computed != nil:
		return out.reach(ctx, ev, s)
	case out.Position == nil && out.Rotary():
		out.TokenLimit = min(out.TokenLimit, out.PositionLimit+1)
	}
	return nil
}
