package measure

import (
	"context"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Some sites cannot be measured as a whole: their probabilities are changed, or
// their scores depend on the number of tokens. Their rotation can often be measured all
// the same. That is enough for methods that change frequencies and gain alone: with the
// target PlainONNX these change the constants of the rotation and nothing around it. Where
// query and key are rounded behind it, it is measured up to there (site.Unrounded).

// RotationAlone measures the rotation of a site whose attention cannot be measured as a
// whole. The result has RotationOnly set, and no mask and no values.
func RotationAlone(ctx context.Context, ev *eval.Evaluator, s *site.Sized) (*Measured, error) {
	ly, err := s.RotatedLayouts(ev.Table)
	if err != nil {
		return nil, err
	}
	if ly, err = unpack(ctx, ev, s, ly); err != nil {
		return nil, err
	}
	query, position, err := rotationBeforeNorms(ctx, ev, s.Query, s.ScoresMatMul, "query", s.Query.Operand, ly.Query, ly.QueryOperand)
	if err != nil {
		return nil, err
	}
	var key *rotation.Matrix
	var keyPosition placed
	if s.Key.Behind {
		key, err = rotationBehindCache(ctx, ev, s, ly, nil)
	} else {
		key, keyPosition, err = rotationBeforeNorms(ctx, ev, s.Key, s.ScoresMatMul, "key", s.Key.Cached(), ly.Key, ly.KeyCached)
	}
	if err != nil {
		return nil, err
	}
	if err := onePosition(ctx, ev, s, position, keyPosition); err != nil {
		return nil, err
	}
	out := &Measured{Layouts: ly, LengthTracked: s.LengthTracked, Position: position.input, Computed: position.computed, Static: ev.Table.Static, RotationOnly: true}
	out.Attention = rope.Attention{Heads: int(ly.Query.Heads), KVHeads: int(ly.Key.Heads), HeadSize: int(ly.Query.Channels)}
	if s.Key.Behind {
		out.Attention.Cache = rope.Raw
	}
	if out.Attention.Scale, err = joinBranches(s, &out.Attention, query, key); err != nil {
		return nil, err
	}
	out.Unknown = max(query.Unknown, key.Unknown)
	out.PositionLimit, out.Angles = min(query.Limit, key.Limit), query.Angles
	out.TokenLimit = out.PositionLimit + 1
	return out, nil
}

// rotationBeforeNorms measures a branch up to the rotated value, before its factors per
// token.
func rotationBeforeNorms(ctx context.Context, ev *eval.Evaluator, b site.Branch, at *onnx.Node, what, out string, from, to dim.Layout) (*rotation.Matrix, placed, error) {
	if n := len(b.Scales); n > 0 {
		out = b.Scales[n-1].Of
		var err error
		if to, err = dim.LayoutOf(ev.Table.Dims[out], to.Channels); err != nil {
			return nil, placed{}, graph.Refuse(at, "the rotated %s (%q) has an unexpected shape: %v", what, short.Name(out), err)
		}
	}
	m, position, err := branchRotation(ctx, ev, b, at, what, out, from, to, nil)
	if err != nil && ctx.Err() == nil {
		if n := roundsAngles(ev.Graph, out, b.MeasuredFrom()); n != nil {
			return nil, placed{}, graph.Refuse(n, "this node quantises what rotates the %s (positions, frequencies, angles or tables), so it is no longer a rotation by position; exclude the nodes that compute cosines and sines from the quantisation", what)
		}
	}
	return m, position, err
}

// roundsAngles returns a node that rounds what rotates a branch on the way from its boundaries,
// nil where there is none.
func roundsAngles(g *graph.Graph, out string, boundaries []string) (found *onnx.Node) {
	g.Upstream([]string{out}, func(v string, n *onnx.Node) []string {
		if n == nil || slices.Contains(boundaries, v) {
			return nil
		}
		if ir.Standard(n, "QuantizeLinear") && !g.IsData(v) && g.Classes[v] != graph.ConstantClass {
			found = n
		}
		return ir.Reads(n)
	})
	return found
}
