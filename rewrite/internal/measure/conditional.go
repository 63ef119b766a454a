package measure

import (
	"context"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// choice returns the condition by which constants are chosen on the way from cuts
// to a value, "" where none are.
func choice(g *graph.Graph, value string, cuts []string) (string, error) {
	var conditions []string
	g.Upstream([]string{value}, func(v string, n *onnx.Node) []string {
		switch {
		case n == nil || slices.Contains(cuts, v):
			return nil
		case graph.ChosenConstants(n, v) != nil && g.Classes[n.Inputs[0]] > graph.ConstantClass:
			conditions = append(conditions, n.Inputs[0])
			return nil
		}
		return ir.Reads(n)
	})
	conditions = ir.Unique(conditions)
	if len(conditions) > 1 {
		return "", fmt.Errorf("it is chosen by %d conditions (%q, %q); one was expected", len(conditions), conditions[0], conditions[1])
	}
	return slices.Concat(conditions, []string{""})[0], nil
}

// measureBranches measures a rotation on both sides of a condition. The result turns by
// the frequencies of the first tokens, and by the others in calls that reach more.
// The site's attention is one of the parts of the node at.
func measureBranches(ctx context.Context, l *eval.Evaluator, at *onnx.Node, r rotation.Rotator, given []string, condition string) (*rotation.Matrix, error) {
	trained, first, err := threshold(ctx, l, at, condition)
	if err != nil {
		return nil, err
	}
	p, err := eval.Extract(l.Graph, []string{r.Out}, append(slices.Clone(given), condition))
	if err != nil {
		return nil, err
	}
	if len(p.Inputs) > 0 {
		return nil, fmt.Errorf("it turns by the input %q and by other frequencies from %d tokens on; the op tells such calls by their positions alone", p.Inputs[0].Name, trained+1)
	}
	p.Boundaries = given
	side := func(is bool) (*rotation.Matrix, error) {
		one := r
		if one.Loaded, err = l.Load(ctx, decided(p, condition, is)); err != nil {
			return nil, err
		}
		defer one.Loaded.Session.Close()
		return one.Measure(ctx)
	}
	near, err := side(first)
	if err != nil {
		return nil, err
	}
	far, err := side(!first)
	if err != nil {
		return nil, fmt.Errorf("with more than %d tokens: %w", trained, err)
	}
	return switching(near, far, trained)
}

// decided returns the piece with the constants that a condition chooses in the
// place of the choice, which ONNX Runtime would copy in every run.
func decided(p *eval.Piece, condition string, is bool) *eval.Piece {
	branch := 1
	if is {
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

// threshold returns up to how many tokens a condition stays what it is for one,
// and what that is. The site's attention is one of the node's parts.
func threshold(ctx context.Context, l *eval.Evaluator, site *onnx.Node, condition string) (trained int64, first bool, err error) {
	loaded, err := loadChoice(ctx, l, site, condition)
	if err != nil {
		return 0, false, err
	}
	defer loaded.Session.Close()
	holds := func(pt dim.Point) (bool, error) {
		if !l.Table.Past {
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
		results, err := loaded.Run(ctx, l.Table.Within(pt), feeds)
		if err != nil {
			return false, fmt.Errorf("what chooses its tables cannot be evaluated: %w", err)
		}
		return results[condition+eval.FlatSuffix].Values()[0] != 0, nil
	}
	if first, err = holds(dim.Point{B: 1, L: 1}); err != nil {
		return 0, false, err
	}
	near := func(pt dim.Point) (bool, error) {
		is, err := holds(pt)
		return is == first, err
	}
	decoding := func(tokens int64) (bool, error) { return near(dim.Point{B: 1, L: 1, P: tokens - 1}) }
	if always, err := decoding(dim.Longest + 1); err != nil {
		return 0, first, err
	} else if always {
		return 0, first, fmt.Errorf("its tables are chosen by %q, which does not change up to %d tokens; make the choice once for all before the rewrite", condition, dim.Longest+1)
	}
	if trained, err = rotation.Largest(1, dim.Longest+1, decoding); err != nil {
		return 0, first, err
	}
	return trained, first, byTokensAlone(trained, near)
}

// loadChoice loads what computes a condition from the number of tokens.
func loadChoice(ctx context.Context, l *eval.Evaluator, site *onnx.Node, condition string) (*eval.Loaded, error) {
	var total []*onnx.ValueInfo // what tells a counted cache how many there are: sizes need not
	if counted := l.Graph.Counted[l.Graph.AsWritten(site)]; counted != nil {
		name := l.Graph.Total(counted)
		total = append(total, &onnx.ValueInfo{Name: name, Type: l.Graph.Element(name)})
	}
	loaded, err := l.LoadFlat(ctx, []string{condition}, total...)
	if err != nil {
		return nil, fmt.Errorf("what chooses its tables cannot be evaluated: %w", err)
	}
	switch p := loaded.Piece; {
	case len(p.Inputs) > 0:
		err = fmt.Errorf("its tables are chosen by the input %q; a choice by the number of tokens was expected", p.Inputs[0].Name)
	case total != nil && len(p.Sizes) > 0:
		err = fmt.Errorf("its tables are chosen by the size %q; a choice by %q, what counts its cache, was expected", p.Sizes[0], total[0].Name)
	}
	if err != nil {
		loaded.Session.Close()
		return nil, err
	}
	return loaded, nil
}

// byTokensAlone checks that a choice is the near one up to so many tokens and the
// other one with more, however they come.
func byTokensAlone(trained int64, near func(dim.Point) (bool, error)) error {
	for _, total := range []int64{1, 2, trained / 2, trained - 1, trained, trained + 1, trained + 2, 2 * trained, 3*trained + 1, dim.Longest} {
		for _, length := range []int64{1, 2, total / 2, total - 1, total} {
			if length < 1 || length > total {
				continue
			}
			for _, batch := range []int64{1, 3} {
				is, err := near(dim.Point{B: batch, L: length, P: total - length})
				if err != nil {
					return err
				}
				if is != (total <= trained) {
					return fmt.Errorf("its tables are not chosen by the number of tokens alone: they change with %d, and with %d in %d rows of %d new ones they are the other ones", trained+1, total, batch, length)
				}
			}
		}
	}
	return nil
}

// switching joins what is done up to a number of tokens and what is done beyond.
func switching(m *rotation.Matrix, far *rotation.Matrix, trained int64) (*rotation.Matrix, error) {
	e, f := m.Encoding, far.Encoding
	switch {
	case m.Limit < trained-1:
		return nil, fmt.Errorf("its tables end at position %d, before %d tokens, where other ones begin", m.Limit, trained)
	case len(e.Frequencies) != len(f.Frequencies) || e.Layout != f.Layout || e.Offset != f.Offset || !slices.Equal(m.Order, far.Order):
		return nil, fmt.Errorf("up to %d tokens it turns %d pairs from channel %d, with more %d pairs from channel %d", trained, len(e.Frequencies), e.Offset, len(f.Frequencies), f.Offset)
	case !alike(e.EffectiveGain(), f.EffectiveGain()) || !alike(m.Factor, far.Factor):
		return nil, fmt.Errorf("up to %d tokens the rotation multiplies by %.6g, with more by %.6g, which the op cannot; export the model with equal factors on both sides (short_mscale, long_mscale)",
			trained, e.EffectiveGain()*m.Factor, f.EffectiveGain()*far.Factor)
	case e.Precision != f.Precision:
		return nil, fmt.Errorf("up to %d tokens its frequencies are rounded otherwise than with more", trained)
	}
	out := *m
	out.Limit, out.Unknown = far.Limit, max(m.Unknown, far.Unknown)
	if !slices.EqualFunc(e.Frequencies, f.Frequencies, alike) {
		out.Encoding.Reach = rope.Reach{Trained: trained, Long: f.Frequencies}
	}
	return &out, nil
}

// alike reports whether two measured numbers are one.
func alike(a, b float64) bool { return max(a-b, b-a) <= 16*ir.Float32eps*max(a, -a) }
