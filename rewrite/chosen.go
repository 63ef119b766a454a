package rewrite

import (
	"context"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Some exporters keep LongRoPE's two sets of frequencies: an If on the number of
// tokens chooses between two tables of cosines and two of sines. Each side is
// measured by itself, and at which number of tokens the choice changes.

// chosenConstants returns what an If gives for its output, the constants of its two
// branches; nil for other nodes, and where a branch computes something.
func chosenConstants(n *onnx.Node, value string) []*onnx.Tensor {
	if !standard(n, "If") {
		return nil
	}
	var list []*onnx.Tensor
	for _, name := range []string{"then_branch", "else_branch"} {
		branch, k := n.Graph(name), slices.Index(n.Outputs, value)
		if branch == nil || k >= len(branch.Outputs) {
			return nil
		}
		t := branch.Initializer(branch.Outputs[k].Name)
		for _, made := range branch.Nodes {
			if slices.Contains(made.Outputs, branch.Outputs[k].Name) {
				t = constantValue(made)
			}
		}
		if t == nil {
			return nil
		}
		list = append(list, t)
	}
	return list
}

// choice returns the condition by which constants are chosen on the way from cuts
// to a value, "" where none are.
func (g *graph) choice(value string, cuts []string) (string, error) {
	var conditions []string
	g.upstream([]string{value}, func(v string, n *onnx.Node) []string {
		switch {
		case n == nil || slices.Contains(cuts, v):
			return nil
		case chosenConstants(n, v) != nil && g.classes[n.Inputs[0]] > constantClass:
			conditions = append(conditions, n.Inputs[0])
			return nil
		}
		return reads(n)
	})
	conditions = unique(conditions)
	if len(conditions) > 1 {
		return "", fmt.Errorf("it is chosen by %d conditions (%q, %q); one was expected", len(conditions), conditions[0], conditions[1])
	}
	return slices.Concat(conditions, []string{""})[0], nil
}

// bySides measures a rotation on both sides of a condition. The result turns by
// the frequencies of the first tokens, and by the others in calls that reach more.
// The site's attention is one of the parts of the node at.
func (l *lifter) bySides(ctx context.Context, at *onnx.Node, r rotator, given []string, condition string) (*matrix, error) {
	trained, first, err := l.threshold(ctx, at, condition)
	if err != nil {
		return nil, err
	}
	p, err := l.graph.extract([]string{r.out}, append(slices.Clone(given), condition))
	if err != nil {
		return nil, err
	}
	if len(p.inputs) > 0 {
		return nil, fmt.Errorf("it turns by the input %q and by other frequencies from %d tokens on; the op tells such calls by their positions alone", p.inputs[0].Name, trained+1)
	}
	p.cuts = given
	side := func(is bool) (*matrix, error) {
		one := r
		if one.loaded, err = l.load(ctx, p.decided(condition, is)); err != nil {
			return nil, err
		}
		defer one.loaded.session.Close()
		return one.measure(ctx)
	}
	near, err := side(first)
	if err != nil {
		return nil, err
	}
	far, err := side(!first)
	if err != nil {
		return nil, fmt.Errorf("with more than %d tokens: %w", trained, err)
	}
	return near.switching(far, trained)
}

// decided returns the piece with the constants that a condition chooses in the
// place of the choice, which ONNX Runtime would copy in every run.
func (p *piece) decided(condition string, is bool) *piece {
	branch := 1
	if is {
		branch = 0
	}
	q := *p
	q.nodes, q.consts = nil, slices.Clone(p.consts)
	for _, n := range p.nodes {
		if !standard(n, "If") || n.Inputs[0] != condition {
			q.nodes = append(q.nodes, n)
			continue
		}
		for _, o := range n.Outputs {
			if list := chosenConstants(n, o); list != nil && o != "" {
				t := list[branch].Clone()
				t.Name = o
				q.consts = append(q.consts, t)
			}
		}
	}
	return &q
}

// threshold returns up to how many tokens a condition stays what it is for one,
// and what that is. The site's attention is one of the node's parts.
func (l *lifter) threshold(ctx context.Context, site *onnx.Node, condition string) (trained int64, first bool, err error) {
	loaded, err := l.loadChoice(ctx, site, condition)
	if err != nil {
		return 0, false, err
	}
	defer loaded.session.Close()
	holds := func(pt point) (bool, error) {
		if !l.table.past {
			pt.L, pt.P = pt.L+pt.P, 0
		}
		feeds := map[string]engine.Tensor{}
		for _, v := range loaded.piece.typed {
			t, err := engine.Integers(v.Type, []int64{pt.L + pt.P}, 1)
			if err != nil {
				return false, err
			}
			feeds[v.Name] = t
		}
		results, err := loaded.run(ctx, l.table.within(pt), feeds)
		if err != nil {
			return false, fmt.Errorf("what chooses its tables cannot be evaluated: %w", err)
		}
		return results[condition+flatSuffix].Values()[0] != 0, nil
	}
	if first, err = holds(point{B: 1, L: 1}); err != nil {
		return 0, false, err
	}
	near := func(pt point) (bool, error) {
		is, err := holds(pt)
		return is == first, err
	}
	decoding := func(tokens int64) (bool, error) { return near(point{B: 1, L: 1, P: tokens - 1}) }
	if always, err := decoding(longest + 1); err != nil {
		return 0, first, err
	} else if always {
		return 0, first, fmt.Errorf("its tables are chosen by %q, which does not change up to %d tokens; make the choice once for all before the rewrite", condition, longest+1)
	}
	if trained, err = largest(1, longest+1, decoding); err != nil {
		return 0, first, err
	}
	return trained, first, byTokensAlone(trained, near)
}

// loadChoice loads what computes a condition from the number of tokens.
func (l *lifter) loadChoice(ctx context.Context, site *onnx.Node, condition string) (*loaded, error) {
	var total []*onnx.ValueInfo // what tells a counted cache how many there are: sizes need not
	if counted := l.graph.counted[l.graph.asWritten(site)]; counted != nil {
		name := l.graph.total(counted)
		total = append(total, &onnx.ValueInfo{Name: name, Type: l.graph.element(name)})
	}
	loaded, err := l.loadFlat(ctx, []string{condition}, total...)
	if err != nil {
		return nil, fmt.Errorf("what chooses its tables cannot be evaluated: %w", err)
	}
	switch p := loaded.piece; {
	case len(p.inputs) > 0:
		err = fmt.Errorf("its tables are chosen by the input %q; a choice by the number of tokens was expected", p.inputs[0].Name)
	case total != nil && len(p.sizes) > 0:
		err = fmt.Errorf("its tables are chosen by the size %q; a choice by %q, what counts its cache, was expected", p.sizes[0], total[0].Name)
	}
	if err != nil {
		loaded.session.Close()
		return nil, err
	}
	return loaded, nil
}

// byTokensAlone checks that a choice is the near one up to so many tokens and the
// other one with more, however they come.
func byTokensAlone(trained int64, near func(point) (bool, error)) error {
	for _, total := range []int64{1, 2, trained / 2, trained - 1, trained, trained + 1, trained + 2, 2 * trained, 3*trained + 1, longest} {
		for _, length := range []int64{1, 2, total / 2, total - 1, total} {
			if length < 1 || length > total {
				continue
			}
			for _, batch := range []int64{1, 3} {
				is, err := near(point{B: batch, L: length, P: total - length})
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
func (m *matrix) switching(far *matrix, trained int64) (*matrix, error) {
	e, f := m.encoding, far.encoding
	switch {
	case m.limit < trained-1:
		return nil, fmt.Errorf("its tables end at position %d, before %d tokens, where other ones begin", m.limit, trained)
	case len(e.Frequencies) != len(f.Frequencies) || e.Layout != f.Layout || e.Offset != f.Offset || !slices.Equal(m.order, far.order):
		return nil, fmt.Errorf("up to %d tokens it turns %d pairs from channel %d, with more %d pairs from channel %d", trained, len(e.Frequencies), e.Offset, len(f.Frequencies), f.Offset)
	case !alike(e.EffectiveGain(), f.EffectiveGain()) || !alike(m.factor, far.factor):
		return nil, fmt.Errorf("up to %d tokens the rotation multiplies by %.6g, with more by %.6g, which the op cannot; export the model with equal factors on both sides (short_mscale, long_mscale)",
			trained, e.EffectiveGain()*m.factor, f.EffectiveGain()*far.factor)
	case e.Precision != f.Precision:
		return nil, fmt.Errorf("up to %d tokens its frequencies are rounded otherwise than with more", trained)
	}
	out := *m
	out.limit, out.unknown = far.limit, max(m.unknown, far.unknown)
	if !slices.EqualFunc(e.Frequencies, f.Frequencies, alike) {
		out.encoding.Reach = rope.Reach{Trained: trained, Long: f.Frequencies}
	}
	return &out, nil
}

// alike reports whether two measured numbers are one.
func alike(a, b float64) bool { return max(a-b, b-a) <= 16*float32eps*max(a, -a) }
