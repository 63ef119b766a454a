package measure

import (
	"context"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/score"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// scores is what was measured of the way from the scores to the softmax.
type scores struct {
	*score.Fit
	padding    *onnx.ValueInfo // graph input with the padding mask; nil where there is none
	scalarBias bool            // see Measured.ScalarBias

	consecutive bool // see Slots.Consecutive
	inOrder     bool // see Measured.InOrder
}

// measureScores measures what becomes of scores up to the softmax: factor, softcap, sinks
// and mask. places is an input that holds positions and no padding mask, nil where none is known.
func measureScores(ctx context.Context, ev *eval.Evaluator, s *site.Sized, ly *site.Layouts, places *onnx.ValueInfo) (*scores, error) {
	loaded, refusal := ev.Open(ctx, s.Softmax, "the mask", []string{s.SoftmaxInput()}, s.ScoresFrom())
	if refusal != nil {
		return nil, refusal
	}
	defer loaded.Session.Close()
	padding, others := paddingInput(ev, loaded.Piece.Inputs, eval.TotalOf(ev.Table), places)
	sc := &score.Scorer{Loaded: loaded, Evaluator: ev, In: s.Scores(), Out: s.SoftmaxInput(), Fed: ly.Scores, Read: ly.Softmax, Others: others, Biases: s.Biases, Extra: ly.Sinks}
	if padding != nil {
		sc.Mask = padding.Name
	}
	sc = sc.Fewer(ctx)
	alone := sc // evaluates all rows
	var hidden error
	switch {
	case ev.Table.Past:
	case ev.Table.Static.L > 0:
		if ev.Table.Static.L*ev.Table.Static.L*sc.Fed.Heads > score.MaxStatic {
			return nil, graph.Refuse(s.Softmax, "its mask of %d heads for %d tokens is too large to evaluate; export the model with a dynamic length", sc.Fed.Heads, ev.Table.Static.L)
		}
		sc = sc.AllRows()
		alone = sc
	default:
		alone = sc.AllRows()
		chosen, err := sc.ChooseRows(ctx, ev)
		switch {
		case err == nil:
			defer chosen.Loaded.Session.Close()
			sc = chosen
		case bisect.Ended(err):
			return nil, graph.Refuse(s.Softmax, "its mask cannot be evaluated: %v", err)
		default:
			hidden = fmt.Errorf("the model has no cache, so one query with many earlier keys cannot be tested, and %w", err)
			if n := ev.Graph.Multiplies(s.SoftmaxInput(), s.Scores()); n != nil {
				return nil, graph.Refuse(s.Softmax, "its mask is not understood: %v; and %s multiplies scores by a value that is not constant", hidden, ir.Label(n))
			}
			sc = alone
		}
	}
	fit, err := sc.Measure(ctx)
	if err != nil {
		if hidden != nil {
			err = fmt.Errorf("%w; %w", hidden, err)
		}
		return nil, graph.Refuse(s.Softmax, "its mask is not understood: %v", err)
	}
	fit.Distance = ofAllHeads(fit.Distance, int(ly.Scores.Heads))
	consecutive, err := sc.MorePlaces(ctx)
	if err != nil {
		return nil, graph.Refuse(s.Softmax, "its mask cannot be evaluated: %v", err)
	}
	inOrder := false
	if places != nil {
		if inOrder, err = sc.SeesInOrder(ctx, places); err != nil {
			return nil, graph.Refuse(s.Softmax, "its mask cannot be evaluated: %v", err)
		}
	}
	return &scores{Fit: fit, padding: padding, scalarBias: fit.Mask.Bias && alone.ScalarBias(ctx), consecutive: consecutive, inOrder: inOrder}, nil
}

// ofAllHeads returns a bias that was measured of two heads in place of many that are alike.
func ofAllHeads(d rope.Distance, heads int) rope.Distance {
	if len(d.Slopes) > 0 && len(d.Slopes) < heads {
		d.Slopes = slices.Repeat(d.Slopes[:1], heads)
	}
	for b, list := range d.Biases {
		if len(list) < heads {
			d.Biases[b] = slices.Repeat(list[:1], heads)
		}
	}
	return d
}

// paddingInput returns the input that may be the padding mask, [batch, keys], nil where there
// is none, and the other inputs. It is fed 0 and 1 alone, so that token ids are none, nor are places.
func paddingInput(ev *eval.Evaluator, inputs []*onnx.ValueInfo, keys dim.Extent, places *onnx.ValueInfo) (padding *onnx.ValueInfo, others []*onnx.ValueInfo) {
	t := ev.Table
	for _, v := range inputs {
		dims := t.Inputs[v.Name]
		if t.Slotted() && v.Name == t.Slots.Input.Name {
			continue
		}
		if padding == nil && v != places && len(dims) == 2 && (dims[0] == dim.BatchExtent || dims[0] == dim.ConstantExtent(1)) && dims[1] == keys && !ev.Graph.PicksRows(v.Name) {
			padding = v
			continue
		}
		others = append(others, v)
	}
	return padding, others
}
