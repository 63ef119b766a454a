package rewrite

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/prove"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/unread"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// analyser finds the attentions of a model and measures them. What it learns goes
// into the report; the model is not changed.
type analyser struct {
	opts      Options
	report    *Report
	proving   bool // sites are proven too
	onlyMasks bool // attention that turns nothing is of use as well
	rotations bool // where an attention cannot be measured its rotation alone is of use
	outcomes  outcomes
}

func (o Options) analyser(report *Report) *analyser {
	a := &analyser{opts: o, report: report, proving: true, onlyMasks: o.onlyMasks(), outcomes: o.known}
	a.rotations = o.Target == PlainONNX && !a.onlyMasks
	if a.outcomes == nil {
		a.outcomes = outcomes{}
	}
	return a
}

func (a *analyser) say(format string, args ...any) {
	if a.opts.Progress != nil {
		a.opts.Progress(fmt.Sprintf(format, args...))
	}
}

// delimited is a site with its place in the report.
type delimited struct {
	index int
	scope *site.Scope
	site  *site.Site
}

// find fills the report's sites and returns those that were delimited.
func (a *analyser) find(ctx context.Context, m *onnx.Model) ([]delimited, error) {
	a.say("reading the graph")
	parts, err := site.Scopes(m)
	if err != nil {
		return nil, err
	}
	if done := ownNodes(m); done > 0 {
		return nil, fmt.Errorf("%w that is not rewritten already (%d %s nodes are of an earlier run); start from the original file", ErrNoAttention, done, graph.OpsDomain)
	}
	if err := a.notTurning(ctx, parts); err != nil {
		return nil, err
	}
	var found []delimited
	for _, part := range parts {
		found = append(found, a.delimit(part)...)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if len(a.report.Sites) == 0 {
		return nil, a.unseen(m, parts)
	}
	found = a.keepShared(found)
	a.report.number()
	return found, nil
}

// delimit finds the attentions of a scope, notes them in the report and returns
// those that were delimited.
func (a *analyser) delimit(part *site.Scope) (list []delimited) {
	for _, c := range part.Found {
		s, refusal := part.Delimit(c)
		if refusal != nil {
			a.report.keep(part.Where, refusal)
			continue
		}
		a.report.Sites = append(a.report.Sites, Site{Node: ir.Label(c.Node), Scope: part.Where, Op: c.Node.OpType, Status: Kept})
		list = append(list, delimited{len(a.report.Sites) - 1, part, s})
	}
	return list
}

// keepShared keeps the sites that share a cache and returns the others.
func (a *analyser) keepShared(found []delimited) (rest []delimited) {
	var sites []*site.Site
	for _, f := range found {
		sites = append(sites, f.site)
	}
	refused := site.SharesCache(sites)
	for _, f := range found {
		if refusal := refused[f.site]; refusal != nil {
			a.report.Sites[f.index].Reason = refusal.Error()
			continue
		}
		rest = append(rest, f)
	}
	return rest
}

// unseen says of a model in which no attention was found that it has none, or
// keeps what may be one.
func (a *analyser) unseen(m *onnx.Model, parts []*site.Scope) error {
	if first, calls := ir.FunctionCalls(m); calls > 0 {
		a.report.keep("", graph.Refuse(first, "no attention was found, and %d nodes call the model's own functions, this one %s, which are not looked into; %s", calls, first.OpType, graph.InlineThem))
		return nil
	}
	for _, part := range parts {
		if n := site.RotatingNode(part.View); n != nil {
			n = part.View.AsWritten(n)
			a.report.keep(part.Where, graph.Refuse(n, "it turns hidden states by their positions, and no softmax over products of hidden states was found behind it"))
			return nil
		}
	}
	return fmt.Errorf("%w: it has no softmax over products of hidden states", ErrNoAttention)
}

// notTurning returns an error that says how a model tells positions apart of which
// no attention can turn query and key; such attentions may be asked to change
// their masks alone.
func (a *analyser) notTurning(ctx context.Context, parts []*site.Scope) error {
	var still *site.NonRotary
	var first *site.Scope
	for _, part := range parts {
		if len(part.Found) == 0 {
			continue
		}
		some := site.FindNonRotary(part.View, part.Found)
		if some == nil || a.onlyMasks {
			return nil
		}
		if first == nil {
			first, still = part, some
		}
	}
	if first == nil {
		return nil
	}
	count := 0
	for _, part := range parts {
		for _, c := range part.Found {
			a.report.Sites = append(a.report.Sites, Site{Node: ir.Label(c.Node), Scope: part.Where, Op: c.Node.OpType, Status: Kept, Reason: notTurned})
			count++
		}
	}
	a.report.number()
	eng, err := a.opts.engine()
	if err != nil {
		eng = nil // what a type would make non-nil: nothing can be evaluated
	} else {
		defer eng.Close()
	}
	return fmt.Errorf("%w: its %d attentions turn neither query nor key, %s", ErrNoAttention, count, measure.ExplainPositions(ctx, first.View, eng, still))
}

const notTurned = "it turns neither query nor key by position"

// measure measures and proves what was delimited, and returns the sites of which
// that was done, or whose rotation alone was measured.
func (a *analyser) measure(ctx context.Context, found []delimited) ([]measure.Attention, error) {
	if len(found) == 0 {
		return nil, nil
	}
	eng, err := a.opts.engine()
	if err != nil {
		return nil, err
	}
	defer eng.Close()
	var all []measure.Attention
	for rest := found; len(rest) > 0; {
		some := rest[:1]
		for len(some) < len(rest) && rest[len(some)].scope == rest[0].scope {
			some = rest[:len(some)+1]
		}
		rest = rest[len(some):]
		list, err := a.measureScope(ctx, eng, some)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	rotary := len(all) < len(a.report.Sites) // a site that was not measured may be
	for _, f := range all {
		rotary = rotary || f.Measured.Rotary()
	}
	if !rotary && !a.onlyMasks {
		for i := range a.report.Sites {
			a.report.Sites[i].Status, a.report.Sites[i].Reason = Kept, notTurned
		}
		return nil, fmt.Errorf("%w: none of its %d attention sites turns query and key by position", ErrNoAttention, len(found))
	}
	return all, nil
}

// measureScope measures and proves the sites of one scope.
func (a *analyser) measureScope(ctx context.Context, eng engine.Engine, found []delimited) ([]measure.Attention, error) {
	g := found[0].scope.View
	var values []string
	var sites []*site.Site
	for _, f := range found {
		values = append(values, f.site.SizedValues()...)
		sites = append(sites, f.site)
	}
	a.say("measuring shapes")
	table, err := eval.MeasureShapes(ctx, eng, g, ir.Unique(values))
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for _, f := range found {
			a.report.Sites[f.index].Reason = fmt.Sprintf("the shapes of the graph could not be measured: %v", err)
		}
		return nil, nil
	}
	sized, table := site.Size(sites, table)
	if s := table.SizesSentence(); s != "" {
		a.report.warn(s)
	}
	l := &eval.Evaluator{Graph: g, Loader: eval.Loader{Engine: eng, Table: table}}
	all, err := a.measureSites(ctx, l, found, sized)
	if err != nil {
		return nil, err
	}
	a.keepUnasked()
	if !a.proving || a.opts.Target == PlainONNX {
		return all, nil // the model's own attention stays
	}
	a.say("looking for readers of padded tokens")
	return all, a.keepRead(ctx, l, found[0].scope, all)
}

// keepUnasked keeps the sites that were not asked for.
func (a *analyser) keepUnasked() {
	for i := range a.report.Sites {
		if a.opts.Layers != nil && !a.opts.Layers(i) {
			s := &a.report.Sites[i]
			s.Status, s.Reason, s.skipped = Kept, "not among the layers asked for", true
		}
	}
}

// onlyMasks reports whether a mask is asked for and nothing that needs a
// rotation: attention without one can have it.
func (o Options) onlyMasks() bool {
	list := slices.Clone(o.Edits)
	for _, e := range o.LayerEdits {
		list = append(list, e.Spec)
	}
	return len(list) > 0 && !slices.ContainsFunc(list, func(s rope.Spec) bool { return s.Axis != rope.MaskAxis })
}

// outcome is what came of measuring and proving a site.
type outcome struct {
	measured *measure.Measured
	proof    *prove.Proof
	err      error

	rotation  *measure.Measured // of an attention that cannot be measured, once it was asked for
	notTurned error             // why there is none
}

type outcomes map[outcomeKey]outcome

// outcomeKey is a site's hash and whether it was proven too.
type outcomeKey struct {
	hash   [32]byte
	proven bool
}

// measureSites measures and proves every site, once per structure.
func (a *analyser) measureSites(ctx context.Context, l *eval.Evaluator, found []delimited, sized []*site.Sized) (all []measure.Attention, err error) {
	seen := map[[32]byte]bool{} // of earlier layers
	shared := map[string][32]byte{}
	for i, f := range found {
		s := sized[i]
		hash := s.Hash(l.Graph, l.Table, shared)
		key := outcomeKey{hash, a.proving}
		o, done := a.outcomes[key]
		if !done {
			a.say("proving attention %d of %d", i+1, len(found))
			if o, err = a.outcome(ctx, l, s); err != nil {
				return nil, err
			}
		}
		if o.err != nil && a.rotations && o.rotation == nil && o.notTurned == nil {
			if o.rotation, o.notTurned = measure.RotationAlone(ctx, l, s); ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
		a.outcomes[key] = o
		if measured := a.note(f.index, s, o, seen[hash]); measured != nil {
			all = append(all, measure.Attention{Index: f.index, Scope: f.scope, Site: s, Measured: measured})
		}
		if refusal := o.refusal(); refusal != nil && !seen[hash] && a.opts.DumpSites != "" {
			if err := dumpSite(l, a.opts.DumpSites, f.index, s, refusal); err != nil {
				return nil, fmt.Errorf("writing the kept site at %s: %w", refusal.Node, err)
			}
		}
		seen[hash] = true
	}
	return all, nil
}

// outcome measures a site and proves it. The error is one that ends the analysis;
// what keeps the site alone is a part of the outcome.
func (a *analyser) outcome(ctx context.Context, l *eval.Evaluator, s *site.Sized) (o outcome, _ error) {
	o.measured, o.err = measure.Site(ctx, l, s)
	if o.err == nil && a.proving {
		o.proof, o.err = prove.Site(ctx, l, s, o.measured)
	}
	if ctx.Err() != nil {
		return o, ctx.Err()
	}
	if o.err != nil && o.refusal() == nil {
		return o, o.err
	}
	return o, nil
}

// refusal says what keeps the site, nil where nothing does.
func (o outcome) refusal() *graph.Refusal {
	var refusal *graph.Refusal
	if errors.As(o.err, &refusal) {
		return refusal
	}
	return nil
}

// note puts an outcome into the report and returns what was measured of use.
func (a *analyser) note(index int, s *site.Sized, o outcome, seen bool) *measure.Measured {
	site := &a.report.Sites[index]
	refusal := o.refusal()
	if refusal == nil {
		site.describe(s, o.measured)
		site.Proof, site.Status = o.proof, Rewritten
		if o.measured.Angles != rope.Float32 {
			a.report.warn(fmt.Sprintf("the model computes the angles of its rotation in 16 bits, which tell positions apart up to %d only; the op computes them in float32",
				int64(2/o.measured.Angles.Epsilon())))
		}
		return o.measured
	}
	site.Reason = refusal.Node + ": " + refusal.Reason
	if seen {
		site.Reason = "as in an earlier layer of the same structure, " + site.Reason
	}
	switch {
	case !a.rotations:
	case o.notTurned != nil:
		site.Reason += fmt.Sprintf("; nor can its rotation alone be changed: %v", o.notTurned)
	case o.rotation.Rotary():
		site.describe(s, o.rotation)
		site.Status = Rewritten
		return o.rotation
	default:
		site.Reason += "; nor is there a rotation of query and key that could be changed alone"
	}
	return nil
}

// keepRead keeps the sites whose op gives queries of padded tokens that see no key
// something else than the original does, where another token depends on it.
func (a *analyser) keepRead(ctx context.Context, l *eval.Evaluator, part *site.Scope, all []measure.Attention) error {
	var suspects []measure.Attention
	for _, f := range all {
		if site := a.report.Sites[f.Index]; site.Status == Rewritten && site.Proof != nil && site.Proof.PaddedDiffer {
			suspects = append(suspects, f)
		}
	}
	if len(suspects) == 0 {
		return nil
	}
	culprits, err := unread.Culprits(ctx, l, part, suspects)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	why := "and what the model gives for other tokens depends on them"
	if err != nil {
		culprits, why = suspects, fmt.Sprintf("and whether other tokens depend on them could not be seen: %v", err)
	}
	for _, f := range culprits {
		site := &a.report.Sites[f.Index]
		site.Status, site.Proof = Kept, nil
		site.Reason = "queries of padded tokens that see no key get zeros from the op and something else from the original, " + why
	}
	return nil
}
