package rewrite

import (
	"context"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// An attention that cannot be lifted as a whole (its probabilities are changed,
// its scores depend on how many tokens there are) may still turn query and key as
// a rotary encoding does. Methods that change frequencies and gain alone need no
// more: with the target PlainONNX they change the constants of that rotation, and
// everything around it stays the model's own.

// rotationOf measures what a site whose attention cannot be lifted does to query
// and key by position, and nothing else.
func (l *lifter) rotationOf(ctx context.Context, s *sizedSite) (*lifted, error) {
	l = &lifter{graph: l.graph, loader: l.loader, sections: true}
	ly, err := s.turnedLayouts(l.table)
	if err != nil {
		return nil, err
	}
	if err := l.unpack(ctx, s, ly); err != nil {
		return nil, err
	}
	query, position, err := l.rotationAlone(ctx, s.query, s.product, "query", s.query.operand, ly.query, ly.queryOperand)
	if err != nil {
		return nil, err
	}
	key, keyPosition, err := l.rotationAlone(ctx, s.key, s.product, "key", s.key.stored(), ly.key, ly.keyStored)
	if err != nil {
		return nil, err
	}
	if position != nil && keyPosition != nil && position.Name != keyPosition.Name {
		return nil, refuse(s.product, "the query is rotated by the input %q, the key by %q", position.Name, keyPosition.Name)
	}
	out := &lifted{layouts: ly, counted: s.counted, position: position, fixed: l.table.fixed, rotationOnly: true}
	out.attention = rope.Attention{Heads: int(ly.query.heads), KVHeads: int(ly.key.heads), HeadSize: int(ly.query.channels)}
	if out.attention.Scale, err = s.join(&out.attention, query, key); err != nil {
		return nil, err
	}
	out.unknown = max(query.unknown, key.unknown)
	out.positionLimit, out.angles = min(query.limit, key.limit), query.angles
	out.tokenLimit = out.positionLimit + 1
	return out, nil
}

// rotationAlone measures a branch up to what is turned and no more: what a norm
// with weights does to it afterwards is none of its business.
func (l *lifter) rotationAlone(ctx context.Context, b branch, at *onnx.Node, what, out string, from, to layout) (*matrix, *onnx.ValueInfo, error) {
	if n := len(b.scales); n > 0 {
		out = b.scales[n-1].of
		var err error
		if to, err = layoutOf(l.table.dims[out], to.channels); err != nil {
			return nil, nil, refuse(at, "the rotated %s (%q) has an unexpected shape: %v", what, out, err)
		}
	}
	return l.rotation(ctx, b, at, what, out, from, to)
}

// allows refuses methods that need more than the rotation where no more was lifted.
func (l *lifted) allows(specs []rope.Spec, why string) error {
	for _, s := range specs {
		if l.rotationOnly && s.Axis != rope.ScalingAxis {
			return fmt.Errorf("its rotation alone is known, so that only methods that change frequencies and gain alone are possible, not %s %s: %s", s.Axis, s, why)
		}
	}
	return nil
}
