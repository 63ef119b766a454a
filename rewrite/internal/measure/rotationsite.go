package measure

import (
	"context"
	"math"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Rotated says by what a rotation without its attention multiplies all channels of query and key, beside
// the gain of its encoding.
type Rotated struct{ Query, Key float64 }

// rotationSite measures a rotation that is a site of its own (site.Sized.Rotation).
func rotationSite(ctx context.Context, ev *eval.Evaluator, s *site.Sized) (*Measured, error) {
	ly, err := s.RotatedLayouts(ev.Table)
	if err != nil {
		return nil, err
	}
	if ly, err = unpack(ctx, ev, s, ly); err != nil {
		return nil, err
	}
	if err := ly.CheckRotation(); err != nil {
		return nil, graph.Refuse(s.ScoresMatMul, "%v", err)
	}
	query, position, err := branchRotation(ctx, ev, s.Query, s.ScoresMatMul, "query", s.Query.Operand, ly.Query, ly.QueryOperand, nil)
	if err != nil {
		return nil, err
	}
	key, keyPosition, err := branchRotation(ctx, ev, s.Key, s.ScoresMatMul, "key", s.Key.Cached(), ly.Key, ly.KeyCached, nil)
	if err != nil {
		return nil, err
	}
	if err := onePosition(ctx, ev, s, position, keyPosition); err != nil {
		return nil, err
	}
	if err := sameRotation(s, query.Encoding, key.Encoding); err != nil {
		return nil, err
	}
	out := &Measured{Layouts: ly, Position: position.input, Computed: position.computed, Static: ev.Table.Static, RotationOnly: true,
		QueryOrder: query.Order, KeyOrder: key.Order, Unknown: max(query.Unknown, key.Unknown), PositionLimit: min(query.Limit, key.Limit), Angles: query.Angles}
	a := &out.Attention
	*a = rope.Attention{Heads: int(ly.Query.Heads), KVHeads: int(ly.Key.Heads), HeadSize: int(ly.Query.Channels), Encoding: key.Encoding}
	a.Encoding.ExactAngles = query.Encoding.ExactAngles && key.Encoding.ExactAngles
	out.Rotated = &Rotated{Query: query.Factor, Key: key.Factor}
	out.Exact.AnyLength = true
	turns(&out.Exact, query, key)
	gain := query.Encoding.EffectiveGain() / key.Encoding.EffectiveGain()
	switch differ := math.Abs(gain-1) > 16*ir.Float32eps; {
	case !out.Rotary():
		return nil, graph.Refuse(s.ScoresMatMul, "its query and key are not rotated right before these values")
	case query.Factors != nil || key.Factors != nil:
		return nil, graph.Refuse(s.ScoresMatMul, "its channels have weights of their own behind the rotation")
	case a.Encoding.LengthDependent.NTK > 0:
		return nil, graph.Refuse(s.ScoresMatMul, "its frequencies are computed anew in each call (dynamic NTK), which only the whole attention can have")
	case differ && a.Encoding.RotaryDim() < a.HeadSize:
		return nil, graph.Refuse(s.ScoresMatMul, "the rotation multiplies the query by %g and the key by %g", query.Encoding.EffectiveGain(), key.Encoding.EffectiveGain())
	case differ:
		out.Rotated.Query *= gain
	}
	if a.Encoding.ExactAngles {
		out.Finer = key.Finer
	}
	out.TokenLimit = out.PositionLimit + 1
	if out.Computed != nil {
		return out, out.reach(ctx, ev, s)
	}
	return out, nil
}
