package measure

import (
	"context"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/score"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// cross measures a site of cross-attention: that its query, key and value are used as they
// are but for one factor, and that its scores become this factor's products, hidden where a
// mask of the source says so.
func cross(ctx context.Context, ev *eval.Evaluator, s *site.Sized) (*Measured, error) {
	ly, err := s.Layouts(ev.Table)
	if err != nil {
		return nil, err
	}
	if err := ly.Check(); err != nil {
		return nil, graph.Refuse(s.ScoresMatMul, "%v", err)
	}
	if n := site.RotatedBefore(ev.Graph, []string{s.Query.Boundary, s.Key.Boundary}); n != nil {
		return nil, graph.Refuse(s.ScoresMatMul, "its keys come from another text, and query or key is rotated by position at %s, which no method can change", ir.Label(n))
	}
	if err := checkProbabilities(ctx, ev, s, ly); err != nil {
		return nil, err
	}
	if err := checkValues(ctx, ev, s, ly); err != nil {
		return nil, err
	}
	query, err := contentFactor(ctx, ev, s.ScoresMatMul, "query", s.Query, ly.Query, ly.QueryOperand)
	if err != nil {
		return nil, err
	}
	key, err := contentFactor(ctx, ev, s.ScoresMatMul, "key", s.Key, ly.Key, ly.KeyOperand)
	if err != nil {
		return nil, err
	}
	fit, padding, err := crossScores(ctx, ev, s, ly)
	if err != nil {
		return nil, err
	}
	out := &Measured{Layouts: ly, Mask: padding, Static: ev.Table.Static, PositionLimit: ir.TopPosition, TokenLimit: dim.Longest + 1}
	a := &out.Attention
	a.Heads, a.KVHeads, a.HeadSize = int(ly.Query.Heads), int(ly.Key.Heads), int(ly.Query.Channels)
	a.Cross, a.Mask, a.Softcap, a.Sinks = true, fit.Mask, fit.Curve.Softcap, fit.Sinks
	a.Scale = query * key * fit.Curve.Factor
	return out, nil
}

// contentFactor returns the factor between a boundary and the operand that it becomes. It
// refuses a branch that does anything else, or that depends on the number of tokens.
func contentFactor(ctx context.Context, ev *eval.Evaluator, at *onnx.Node, what string, b site.Branch, in, to dim.Layout) (float64, error) {
	if b.Boundary == b.Operand {
		return 1, nil
	}
	loaded, refusal := ev.Open(ctx, at, "the path of its "+what, []string{b.Operand}, []string{b.Boundary})
	if refusal != nil {
		return 0, refusal
	}
	defer loaded.Session.Close()
	factor, err := repeatFactor(ctx, loaded, b.Boundary, b.Operand, in, to)
	if err != nil {
		return 0, graph.Refuse(at, "its %s operand differs from the %s: %v", what, what, err)
	}
	return factor, ev.Steady(ctx, at, "the path of its "+what, b.Operand, []string{b.Boundary})
}

// crossScores measures what becomes of scores up to the softmax, and returns the graph input
// with the mask of the source, nil where there is none.
func crossScores(ctx context.Context, ev *eval.Evaluator, s *site.Sized, ly *site.Layouts) (*score.Fit, *onnx.ValueInfo, error) {
	loaded, refusal := ev.Open(ctx, s.Softmax, "the mask", []string{s.SoftmaxInput()}, []string{s.Scores()})
	if refusal != nil {
		return nil, nil, refusal
	}
	defer loaded.Session.Close()
	padding, others := paddingInput(ev, loaded.Piece.Inputs, dim.SourceExtent, nil)
	if len(others) > 0 {
		return nil, nil, graph.Refuse(s.Softmax, "its mask depends on the input %q, but keys of another text may be hidden only by a mask of that text", short.Name(others[0].Name))
	}
	sc := &score.Scorer{Loaded: loaded, In: s.Scores(), Out: s.SoftmaxInput(), Fed: ly.Scores, Read: ly.Softmax, Extra: ly.Sinks}
	if padding != nil {
		sc.Mask = padding.Name
	}
	fit, err := sc.MeasureCross(ctx)
	if err != nil {
		return nil, nil, graph.Refuse(s.Softmax, "its mask is not understood: %v", err)
	}
	return fit, padding, nil
}
