package analysis

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/prove"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// outcome is the result of measuring and proving a site.
type outcome struct {
	measured *measure.Measured
	proof    *prove.Proof
	err      error

	graph     *graph.Graph      // in which it was measured
	rotation  *measure.Measured // of an attention that cannot be measured, once it was asked for
	notTurned error             // why there is none
}

// sites measures and proves every site of a scope, once per structure.
func (m *measurer) sites(ctx context.Context, l *eval.Evaluator, found []delimited, sized []*site.Sized) error {
	seen := map[[32]byte]bool{} // of earlier layers
	shared := map[string][32]byte{}
	for i, d := range found {
		half, wanted := m.only[d.index]
		if m.only != nil && !wanted {
			continue
		}
		s := sized[i]
		if cross := s.Cross(); cross != nil {
			s = cross
		}
		key := s.Hash(l.Graph, l.Table, shared)
		if _, done := m.outcomes[key]; half && !done {
			m.outcomes[key] = outcome{err: graph.Refuse(s.Softmax, "only its rotation is wanted")}
		}
		o, err := m.outcome(ctx, l, s, key, func() { m.say("verifying attention layer %d of %d", i+1, len(found)) })
		if err != nil {
			return err
		}
		if o.err != nil && m.opts.rotationMeasured() && !s.Crosses {
			if s, o, err = m.rotationMeasured(ctx, l, s, key, o, shared); err != nil {
				return err
			}
		}
		measured := m.note(d.index, s, o, seen[key])
		if measured == nil && m.opts.ScoresAlone && o.rotates() {
			if s, measured, err = m.scoresAlone(ctx, l, d.index, s, shared); err != nil {
				return err
			}
		}
		if measured == nil && m.opts.RotationAlone {
			if s, measured, err = m.rotationAlone(ctx, l, d.index, s, shared); err != nil {
				return err
			}
		}
		if measured != nil {
			m.Sites[d.index].Attention = &measure.Attention{Index: d.index, Scope: d.scope, Site: s, Measured: measured}
		}
		if refusal := o.refusal(); refusal != nil && !seen[key] && m.opts.DumpSites != "" {
			if err := dumpSite(l, m.opts.DumpSites, d.index, sized[i], refusal); err != nil {
				return fmt.Errorf("writing the unchanged layer at %s: %w", refusal.Node, err)
			}
		}
		seen[key] = true
	}
	return nil
}

// outcome measures and proves a site, or returns the outcome of a site with the same key. starts
// is called before it is measured. An error ends the analysis; why only this site is unchanged is
// part of the outcome.
func (m *measurer) outcome(ctx context.Context, l *eval.Evaluator, s *site.Sized, key [32]byte, starts func()) (o outcome, _ error) {
	if o, done := m.outcomes[key]; done && o.holdsIn(l.Graph) {
		return o, nil
	}
	starts()
	o.graph = l.Graph
	o.measured, o.err = measure.Site(ctx, l, s)
	if o.err == nil && m.proving {
		o.proof, o.err = m.prove(ctx, l, s, o.measured)
	}
	if ctx.Err() != nil {
		return o, ctx.Err()
	}
	if o.err != nil && o.refusal() == nil {
		return o, o.err
	}
	m.outcomes[key] = o
	return o, nil
}

// prove proves a site. A refusal by another runtime than the one that measured says which that is.
func (m *measurer) prove(ctx context.Context, l *eval.Evaluator, s *site.Sized, measured *measure.Measured) (*prove.Proof, error) {
	by := *l
	by.Engine = m.prover
	proof, err := prove.Site(ctx, &by, s, measured)
	var refusal *graph.Refusal
	if m.provedBy != "" && errors.As(err, &refusal) {
		refusal.Reason = fmt.Sprintf("verified with %s: %s", m.provedBy, refusal.Reason)
	}
	return proof, err
}

// holdsIn reports whether an outcome is one of sites of a graph: positions that are computed have a name,
// which only their own graph knows.
func (o outcome) holdsIn(g *graph.Graph) bool {
	return o.graph == g || o.measured == nil || o.measured.Computed == nil
}

// rotationMeasured completes the outcome of a site that cannot be measured as a whole with what is
// measured of its rotation alone, and returns the site of which that is.
func (m *measurer) rotationMeasured(ctx context.Context, l *eval.Evaluator, s *site.Sized, key [32]byte, o outcome, shared map[string][32]byte) (*site.Sized, outcome, error) {
	if u := s.Unrounded(); u != nil { // whose rotation the key of s says nothing of
		s, key = u, u.Hash(l.Graph, l.Table, shared)
		if known, done := m.outcomes[key]; done {
			return s, known, nil
		}
	}
	if o.rotation != nil || o.notTurned != nil {
		return s, o, nil
	}
	if o.rotation, o.notTurned = measure.RotationAlone(ctx, l, s); ctx.Err() != nil {
		return s, o, ctx.Err()
	}
	m.outcomes[key] = o
	return s, o, nil
}

// scoresAlone measures and proves a site without its rotation, and returns that site; the measurement
// is nil if that fails too.
func (m *measurer) scoresAlone(ctx context.Context, l *eval.Evaluator, index int, s *site.Sized, shared map[string][32]byte) (*site.Sized, *measure.Measured, error) {
	turned := s.Turned()
	if turned == nil {
		return s, nil, nil
	}
	half, err := m.outcome(ctx, l, turned, turned.Hash(l.Graph, l.Table, shared), func() { m.say("verifying the scores of attention layer %d", index+1) })
	if err != nil {
		return s, nil, err
	}
	if half.err != nil || half.measured.Rotary() {
		return turned, nil, nil
	}
	m.Sites[index].Proof, m.Sites[index].Unchanged = half.proof, "" // the reason stays: why the rotation is left to the model's own nodes
	return turned, half.measured, nil
}

// rotationAlone measures and proves the rotation of a site without its attention, and returns the
// rotation as a site; the measurement is nil if that fails too. A rotation that an earlier site has is
// left to that one.
func (m *measurer) rotationAlone(ctx context.Context, l *eval.Evaluator, index int, s *site.Sized, shared map[string][32]byte) (*site.Sized, *measure.Measured, error) {
	rotation := s.Rotation()
	if rotation == nil || slices.ContainsFunc(m.Sites[:index], func(of Site) bool { return of.Whole != "" && of.gives(rotation.Results()) }) {
		return s, nil, nil
	}
	o, err := m.outcome(ctx, l, rotation, rotation.Hash(l.Graph, l.Table, shared), func() { m.say("verifying the rotation of attention layer %d", index+1) })
	if err != nil || o.err != nil {
		return s, nil, err
	}
	m.Sites[index].Proof, m.Sites[index].Whole, m.Sites[index].Unchanged = o.proof, m.Sites[index].Unchanged, "" // the reason stays: why the attention keeps its nodes
	return rotation, o.measured, nil
}

// gives reports whether a site gives one of these values.
func (s Site) gives(values []string) bool {
	return slices.ContainsFunc(s.Attention.Site.Results(), func(v string) bool { return slices.Contains(values, v) })
}

// rotates reports whether a site may be rewritten without knowing its rotation: only the rotation
// was refused, or the proof of the whole.
func (o outcome) rotates() bool {
	return o.err != nil && (o.measured != nil && prove.Ran(o.err) || errors.As(o.err, new(measure.RotationRefusal)))
}

// refusal says why the site is unchanged, nil if it is not.
func (o outcome) refusal() *graph.Refusal {
	var refusal *graph.Refusal
	if errors.As(o.err, &refusal) {
		return refusal
	}
	return nil
}

// note notes an outcome, and returns the measurement that can be used.
func (m *measurer) note(index int, s *site.Sized, o outcome, seen bool) *measure.Measured {
	site := &m.Sites[index]
	refusal := o.refusal()
	if refusal == nil {
		site.Proof, site.Unchanged = o.proof, ""
		if o.measured.Angles != rope.Float32 {
			m.warn(fmt.Sprintf("the model computes its rotation angles in 16 bits, which distinguish positions only up to %d; the op computes them in float32",
				int64(2/o.measured.Angles.Epsilon())))
		}
		return o.measured
	}
	if prove.Ran(o.err) && o.measured != nil {
		site.Unchanged = NotProven
	}
	site.Reason = refusal.Error()
	if seen {
		site.Reason = "as in an earlier layer of the same structure, " + site.Reason
	}
	switch {
	case !m.opts.rotationMeasured(), s.Crosses:
	case o.notTurned != nil && o.notTurned.Error() == refusal.Error(): // which is said
	case o.notTurned != nil:
		site.Reason += fmt.Sprintf("; its rotation alone cannot be changed either: %v", o.notTurned)
	case o.rotation.Rotary():
		site.Unchanged = ""
		return o.rotation
	default:
		site.Reason += "; and it has no rotation of query and key that could be changed alone"
	}
	return nil
}
