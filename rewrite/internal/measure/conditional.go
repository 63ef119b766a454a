package measure

import (
	"context"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// choice returns the condition of the If nodes that choose between constants on the path
// from the boundaries to a value, "" where there are none.
func choice(g *graph.Graph, value string, boundaries []string) (string, error) {
	var conditions []string
	g.Upstream([]string{value}, func(v string, n *onnx.Node) []string {
		switch {
		case n == nil || slices.Contains(boundaries, v):
			return nil
		case graph.ChosenConstants(n, v) != nil && g.Classes[n.Inputs[0]] > graph.ConstantClass:
			conditions = append(conditions, n.Inputs[0])
			return nil
		}
		return ir.Reads(n)
	})
	conditions = ir.Unique(conditions)
	if len(conditions) > 1 {
		return "", fmt.Errorf("it is chosen by %d conditions (%q, %q); expected one", len(conditions), short.Name(conditions[0]), short.Name(conditions[1]))
	}
	return slices.Concat(conditions, []string{""})[0], nil
}

// measureBranches measures a rotation with both branches of a condition on the number of
// tokens. The result has the frequencies for calls of few tokens, and as LengthDependent those for
// calls of more. measure measures the piece from given to out with one of the branches. at is
// the node of the site, or a part of it, for texts.
func measureBranches(ctx context.Context, ev *eval.Evaluator, at *onnx.Node, out string, given []string, condition string,
	measure func(*eval.Loaded) (*rotation.Matrix, error)) (*rotation.Matrix, error) {
	trained, first, err := threshold(ctx, ev, at, condition)
	if err != nil {
		return nil, err
	}
	p, err := eval.Extract(ev.Graph, []string{out}, append(slices.Clone(given), condition))
	if err != nil {
		return nil, err
	}
	if len(p.Inputs) > 0 {
		return nil, fmt.Errorf("it rotates by the input %q and by other frequencies from %d tokens on; the op recognises such calls only by their positions", short.Name(p.Inputs[0].Name), trained+1)
	}
	p = p.Fed(given)
	side := func(holds bool) (*rotation.Matrix, error) {
		loaded, err := ev.Load(ctx, withCondition(p, condition, holds))
		if err != nil {
			return nil, err
		}
		defer loaded.Session.Close()
		return measure(loaded)
	}
	near, err := side(first)
	if err != nil {
		return nil, err
	}
	far, err := side(!first)
	if err != nil {
		return nil, fmt.Errorf("with more than %d tokens: %w", trained, err)
	}
	return joinTrainedAndLong(near, far, trained)
}

// withCondition returns the piece with one branch of a condition: its constants stand in
// place of the If, which would make ONNX Runtime copy them in every run.
func withCondition(p *eval.Piece, condition string, holds bool) *eval.Piece {
	branch := 1
	if holds {
		branch = 0
	}
	q := *p
	q.Nodes, q.Consts = nil, slices.Clone(p.Consts)
	for _, n := range p.Nodes {
		if !ir.Standard(n, "If") || n.Inputs[0] != condition {
			q.Nodes = append(q.Nodes, n)
			continue
		}
		for _, o := range n.Outputs {
			if list := graph.ChosenConstants(n, o); list != nil && o != "" {
				t := list[branch].Clone()
				t.Name = o
				q.Consts = append(q.Consts, t)
			}
		}
	}
	return &q
}

// threshold returns the largest number of tokens for which a condition is what it is for
// one token, and what it is there.
func threshold(ctx context.Context, ev *eval.Evaluator, site *onnx.Node, condition string) (trained int64, first bool, err error) {
	loaded, err := loadChoice(ctx, ev, site, condition)
	if err != nil {
		return 0, false, err
	}
	defer loaded.Session.Close()
	holdsAt := func(pt dim.Point) (bool, error) {
		if !ev.Table.Past {
			pt.L, pt.P = pt.L+pt.P, 0
		}
		feeds := map[string]engine.Tensor{}
		for _, v := range loaded.Piece.Typed {
			t, err := engine.Integers(v.Type, []int64{pt.L + pt.P}, 1)
			if err != nil {
				return false, err
			}
			feeds[v.Name] = t
		}
		results, err := loaded.Run(ctx, ev.Table.Within(pt), feeds)
		if err != nil {
			return false, fmt.Errorf("what chooses its tables cannot be evaluated: %w", err)
		}
		return results[condition+eval.FlatSuffix].Values()[0] != 0, nil
	}
	if first, err = holdsAt(dim.Point{B: 1, L: 1}); err != nil {
		return 0, false, err
	}
	near := func(pt dim.Point) (bool, error) {
		holds, err := holdsAt(pt)
		return holds == first, err
	}
	decoding := func(tokens int64) (bool, error) { return near(dim.Point{B: 1, L: 1, P: tokens - 1}) }
	if always, err := decoding(dim.Longest + 1); err != nil {
		return 0, first, err
	} else if always {
		return 0, first, fmt.Errorf("its tables are chosen by %q, which does not change up to %d tokens; make the choice constant before the rewrite", short.Name(condition), dim.Longest+1)
	}
	if trained, err = bisect.Largest(1, dim.Longest+1, decoding); err != nil {
		return 0, first, err
	}
	return trained, first, byTokensAlone(trained, near)
}

// loadChoice loads the piece that computes a condition from the number of tokens.
func loadChoice(ctx context.Context, ev *eval.Evaluator, site *onnx.Node, condition string) (*eval.Loaded, error) {
	var total []*onnx.ValueInfo // of a length-tracked cache: the input with the number of tokens, which no size tells
	if counted := ev.Graph.LengthTracked[ev.Graph.AsWritten(site)]; counted != nil {
		name := ev.Graph.Total(counted)
		total = append(total, &onnx.ValueInfo{Name: name, Type: ev.Graph.Element(name)})
	}
	loaded, err := ev.LoadFlat(ctx, []string{condition}, total...)
	if err != nil {
		return nil, fmt.Errorf("what chooses its tables cannot be evaluated: %w", err)
	}
	switch p := loaded.Piece; {
	case len(p.Inputs) > 0:
		err = fmt.Errorf("its tables are chosen by the input %q; expected a choice by the number of tokens", short.Name(p.Inputs[0].Name))
	case total != nil && len(p.Sizes) > 0:
		err = fmt.Errorf("its tables are chosen by the size %q; expected a choice by %q, the size of its cache", short.Name(p.Sizes[0]), short.Name(total[0].Name))
	}
	if err != nil {
		loaded.Session.Close()
		return nil, err
	}
	return loaded, nil
}

// byTokensAlone checks that a condition depends on the number of tokens alone: the first
// branch up to trained tokens and the other one beyond, whatever the batch is and
// however many of the tokens are cached.
func byTokensAlone(trained int64, near func(dim.Point) (bool, error)) error {
	for _, total := range []int64{1, 2, trained / 2, trained - 1, trained, trained + 1, trained + 2, 2 * trained, 3*trained + 1, dim.Longest} {
		for _, length := range []int64{1, 2, total / 2, total - 1, total} {
			if length < 1 || length > total {
				continue
			}
			for _, batch := range []int64{1, 3} {
				holds, err := near(dim.Point{B: batch, L: length, P: total - length})
				if err != nil {
					return err
				}
				if holds != (total <= trained) {
					return fmt.Errorf("its tables are not chosen only by the number of tokens: they change at %d tokens, but differ with %d tokens in %d rows of %d new ones", trained+1, total, batch, length)
				}
			}
		}
	}
	return nil
}

// joinTrainedAndLong returns one rotation that has the frequencies of near up to trained
// tokens and those of far beyond. It returns an error where they differ in more.
func joinTrainedAndLong(near *rotation.Matrix, far *rotation.Matrix, trained int64) (*rotation.Matrix, error) {
	e, f := near.Encoding, far.Encoding
	switch {
	case near.Limit < trained-1:
		return nil, fmt.Errorf("its tables end at position %d, before the next ones begin at %d tokens", near.Limit, trained)
	case len(e.Frequencies) != len(f.Frequencies) || e.Layout != f.Layout || e.Offset != f.Offset || !slices.Equal(near.Order, far.Order) || !slices.Equal(near.Factors, far.Factors):
		return nil, fmt.Errorf("up to %d tokens it rotates %d pairs from channel %d, with more tokens %d pairs from channel %d", trained, len(e.Frequencies), e.Offset, len(f.Frequencies), f.Offset)
	case !alike(e.EffectiveGain(), f.EffectiveGain()) || !alike(near.Factor, far.Factor):
		return nil, fmt.Errorf("up to %d tokens the rotation multiplies by %.6g, with more tokens by %.6g, which the op cannot do; export the model with equal factors on both sides (short_mscale, long_mscale)",
			trained, e.EffectiveGain()*near.Factor, f.EffectiveGain()*far.Factor)
	case e.Precision != f.Precision:
		return nil, fmt.Errorf("up to %d tokens its frequencies are rounded differently than with more", trained)
	}
	out := *near
	out.Limit, out.Unknown, out.Finer = far.Limit, max(near.Unknown, far.Unknown), nil
	out.Encoding.ExactAngles = e.ExactAngles && f.ExactAngles
	if !slices.EqualFunc(e.Frequencies, f.Frequencies, alike) {
		out.Encoding.LengthDependent = rope.LengthDependent{Trained: trained, Long: f.Frequencies}
	}
	return &out, nil
}

// alike reports whether two measured numbers are equal up to rounding.
func alike(a, b float64) bool { return max(a-b, b-a) <= 16*ir.Float32eps*max(a, -a) }
