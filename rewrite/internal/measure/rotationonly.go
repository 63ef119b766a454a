package measure

import (
	"context"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// An attention that cannot be lifted as a whole (its probabilities are changed,
// its scores depend on how many tokens there are) may still turn query and key as
// a rotary encoding does. Methods that change frequencies and gain alone need no
// more: with the target PlainONNX they change the constants of that rotation, and
// everything around it stays the model's own.

// RotationAlone measures what a site whose attention cannot be lifted does to query
// and key by position, and nothing else.
func RotationAlone(ctx context.Context, l *eval.Evaluator, s *site.Sized) (*Measured, error) {
	l = &eval.Evaluator{Graph: l.Graph, Loader: l.Loader, Sections: true}
	ly, err := s.RotatedLayouts(l.Table)
	if err != nil {
		return nil, err
	}
	if err := unpack(ctx, l, s, ly); err != nil {
		return nil, err
	}
	query, position, err := rotationBeforeNorms(ctx, l, s.Query, s.ScoresMatMul, "query", s.Query.Operand, ly.Query, ly.QueryOperand)
	if err != nil {
		return nil, err
	}
	key, keyPosition, err := rotationBeforeNorms(ctx, l, s.Key, s.ScoresMatMul, "key", s.Key.Cached(), ly.Key, ly.KeyCached)
	if err != nil {
		return nil, err
	}
	if position != nil && keyPosition != nil && position.Name != keyPosition.Name {
		return nil, graph.Refuse(s.ScoresMatMul, "the query is rotated by the input %q, the key by %q", position.Name, keyPosition.Name)
	}
	out := &Measured{Layouts: ly, LengthTracked: s.LengthTracked, Position: position, Static: l.Table.Static, RotationOnly: true}
	out.Attention = rope.Attention{Heads: int(ly.Query.Heads), KVHeads: int(ly.Key.Heads), HeadSize: int(ly.Query.Channels)}
	if out.Attention.Scale, err = joinBranches(s, &out.Attention, query, key); err != nil {
		return nil, err
	}
	out.Unknown = max(query.Unknown, key.Unknown)
	out.PositionLimit, out.Angles = min(query.Limit, key.Limit), query.Angles
	out.TokenLimit = out.PositionLimit + 1
	return out, nil
}

// rotationBeforeNorms measures a branch up to what is turned and no more: what a norm
// with weights does to it afterwards is none of its business.
func rotationBeforeNorms(ctx context.Context, l *eval.Evaluator, b site.Branch, at *onnx.Node, what, out string, from, to dim.Layout) (*rotation.Matrix, *onnx.ValueInfo, error) {
	if n := len(b.Scales); n > 0 {
		out = b.Scales[n-1].Of
		var err error
		if to, err = dim.LayoutOf(l.Table.Dims[out], to.Channels); err != nil {
			return nil, nil, graph.Refuse(at, "the rotated %s (%q) has an unexpected shape: %v", what, out, err)
		}
	}
	return branchRotation(ctx, l, b, at, what, out, from, to)
}

// Allows refuses methods that need more than the rotation where no more was lifted.
func (l *Measured) Allows(specs []rope.Spec, why string) error {
	for _, s := range specs {
		if l.RotationOnly && s.Axis != rope.ScalingAxis {
			return fmt.Errorf("its rotation alone is known, so that only methods that change frequencies and gain alone are possible, not %s %s: %s", s.Axis, s, why)
		}
	}
	return nil
}
