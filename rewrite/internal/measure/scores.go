package measure

import (
	"context"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/score"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// measureScores measures what becomes of scores up to the softmax: factor, softcap, sinks
// and mask. It also returns the graph input with the padding mask, nil where there is none.
func measureScores(ctx context.Context, ev *eval.Evaluator, s *site.Sized, ly *site.Layouts) (*score.Fit, *onnx.ValueInfo, error) {
	loaded, refusal := ev.Open(ctx, s.Softmax, "the mask", []string{s.SoftmaxInput()}, []string{s.Scores()})
	if refusal != nil {
		return nil, nil, refusal
	}
	defer loaded.Session.Close()
	sc := &score.Scorer{Loaded: loaded, In: s.Scores(), Out: s.SoftmaxInput(), Heads: ly.Query.Heads, Extra: ly.Sinks}
	var mask *onnx.ValueInfo
	for _, v := range loaded.Piece.Inputs {
		dims := ev.Table.Inputs[v.Name]
		if mask == nil && len(dims) == 2 && (dims[0] == dim.BatchExtent || dims[0] == dim.ConstantExtent(1)) && dims[1] == eval.TotalOf(ev.Table) {
			mask, sc.Mask = v, v.Name
			continue
		}
		sc.Others = append(sc.Others, v)
	}
	sc.Fewer(ctx)
	alone := *sc
	var hidden error
	switch {
	case ev.Table.Past:
	case ev.Table.Static.L > 0:
		if ev.Table.Static.L*ev.Table.Static.L*sc.Heads > score.MaxStatic {
			return nil, nil, graph.Refuse(s.Softmax, "its mask of %d heads for %d tokens is more than is evaluated as a whole; export the model with a dynamic length", sc.Heads, ev.Table.Static.L)
		}
		sc.Whole, alone.Whole = true, true
	default:
		alone.Whole = true
		chosen, err := score.ChooseRows(ctx, ev, loaded, sc)
		switch {
		case err == nil:
			defer chosen.Session.Close()
		case rotation.Ended(err):
			return nil, nil, graph.Refuse(s.Softmax, "its mask cannot be evaluated: %v", err)
		default:
			hidden = fmt.Errorf("the model has no cache, so one query with many keys before it cannot be asked, and %w", err)
			if n := ev.Graph.Multiplies(s.SoftmaxInput(), s.Scores()); n != nil {
				return nil, nil, graph.Refuse(s.Softmax, "its mask is not understood: %v; and %s multiplies scores by what is not constant", hidden, ir.Label(n))
			}
			sc = &alone
		}
	}
	fit, err := sc.Measure(ctx)
	if err != nil {
		if hidden != nil {
			err = fmt.Errorf("%w; %w", hidden, err)
		}
		return nil, nil, graph.Refuse(s.Softmax, "its mask is not understood: %v", err)
	}
	if fit.Mask.Bias {
		fit.Scalar = alone.ScalarBias(ctx)
	}
	return fit, mask, nil
}
