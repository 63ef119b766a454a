package measure

import (
	"context"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/positions"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// placed is what tells the positions by which a branch is rotated. Both are nil where they are the
// indices of tokens.
type placed struct {
	input    *onnx.ValueInfo     // a graph input
	computed *positions.Computed // a value that the graph computes
}

// text names them, for a refusal.
func (p placed) text() string {
	switch {
	case p.input != nil:
		return fmt.Sprintf("the input %q", short.Name(p.input.Name))
	case p.computed != nil:
		return fmt.Sprintf("positions that the graph computes (%q)", short.Name(p.computed.Value))
	}
	return "the index of each token"
}

// onePosition refuses a site whose query and key are rotated by other positions.
func onePosition(ctx context.Context, ev *eval.Evaluator, s *site.Sized, query, key placed) error {
	differ := false
	switch q, k := query.computed, key.computed; {
	case q != nil && k != nil:
		var err error
		if differ, err = positions.Differ(ctx, ev, q, k); err != nil {
			return graph.Refuse(s.ScoresMatMul, "the positions of its query and key cannot be compared: %v", err)
		}
	case q != nil || k != nil:
		differ = true
	default:
		differ = query.input != nil && key.input != nil && query.input.Name != key.input.Name
	}
	if differ {
		return graph.Refuse(s.ScoresMatMul, "the query is rotated by %s, the key by %s, which are not the same", query.text(), key.text())
	}
	return nil
}

// openComputed opens a branch with its positions fed in place of what the graph computes them from.
func openComputed(ctx context.Context, ev *eval.Evaluator, b site.Branch, at *onnx.Node, what, out string, c *positions.Computed) (*opened, error) {
	from := append(b.MeasuredFrom(), c.Value)
	if err := ev.Steady(ctx, at, what, out, from); err != nil {
		return nil, err
	}
	p, err := eval.Extract(ev.Graph, []string{out}, from)
	if err != nil {
		return nil, graph.Refuse(at, "%s cannot be evaluated by itself: %v", what, err)
	}
	loaded, refusal := ev.OpenPiece(ctx, at, what, p.Fed(b.MeasuredFrom(), c.Info()).Sized(c.Value, c.Dims))
	if refusal != nil {
		return nil, refusal
	}
	return &opened{whole: loaded, fed: loaded, position: &rotation.Position{Name: c.Value, Type: c.Type, Dims: c.Dims}}, nil
}

// reach says how far positions that a graph computes go, and refuses what the op cannot be given.
func (m *Measured) reach(ctx context.Context, ev *eval.Evaluator, s *site.Sized) error {
	c := m.Computed
	if c.Below0 && !m.Rebuilt() {
		why := c.Unlike
		if why == "" {
			why = "cached keys stand there"
		}
		return graph.Refuse(s.ScoresMatMul, "the positions that the graph computes (%q) are below 0 for tokens that are not padding, and %s; expected positions from 0 on", short.Name(c.Value), why)
	}
	r, err := positions.Open(ctx, ev, c)
	if err != nil {
		return graph.Refuse(s.ScoresMatMul, "the positions that the graph computes (%q) cannot be evaluated: %v", short.Name(c.Value), err)
	}
	defer r.Close()
	tokens, err := r.Tokens(ctx, m.PositionLimit)
	if err != nil {
		return graph.Refuse(s.ScoresMatMul, "the positions that the graph computes (%q) cannot be evaluated: %v", short.Name(c.Value), err)
	}
	m.PositionLimit = min(m.PositionLimit, max(tokens-1, 0))
	if c.Ids == nil {
		m.TokenLimit = min(m.TokenLimit, tokens)
	}
	return nil
}

// Rebuilt reports whether the op counts tokens itself where the graph computes their positions: these
// are below 0, and a number that all tokens of a row have more or less makes no difference without a
// cache.
func (m *Measured) Rebuilt() bool {
	c := m.Computed
	return c != nil && c.Below0 && c.Unlike == "" && !m.Layouts.Cached && m.Rotated == nil
}

// Ids returns the graph input that tells positions, as they are or for the graph to compute others
// from; nil where none does.
func (m *Measured) Ids() *onnx.ValueInfo {
	if m.Computed != nil {
		return m.Computed.Ids
	}
	return m.Position
}

// Masks returns the graph inputs that say which tokens are padding: that of the scores, and that
// which positions are computed from.
func (m *Measured) Masks() (list []*onnx.ValueInfo) {
	if m.Mask != nil {
		list = append(list, m.Mask)
	}
	if c := m.Computed; c != nil && c.Mask != nil && (m.Mask == nil || c.Mask.Name != m.Mask.Name) {
		list = append(list, c.Mask)
	}
	return list
}
