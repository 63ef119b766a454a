package rewrite

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
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
	scope *scope
	site  *site
}

// find fills the report's sites and returns those that were delimited.
func (a *analyser) find(ctx context.Context, m *onnx.Model) ([]delimited, error) {
	a.say("reading the graph")
	parts, err := scopes(m)
	if err != nil {
		return nil, err
	}
	if done := ownNodes(m); done > 0 {
		return nil, fmt.Errorf("%w that is not rewritten already (%d %s nodes are of an earlier run); start from the original file", ErrNoAttention, done, opsDomain)
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
func (a *analyser) delimit(part *scope) (list []delimited) {
	for _, c := range part.found {
		s, refusal := part.delimit(c)
		if refusal != nil {
			a.report.keep(part.where, refusal)
			continue
		}
		a.report.Sites = append(a.report.Sites, Site{Node: label(c.node), Scope: part.where, Op: c.node.OpType, Status: Kept})
		list = append(list, delimited{len(a.report.Sites) - 1, part, s})
	}
	return list
}

// keepShared keeps the sites that share a cache and returns the others.
func (a *analyser) keepShared(found []delimited) (rest []delimited) {
	var sites []*site
	for _, f := range found {
		sites = append(sites, f.site)
	}
	refused := sharesCache(sites)
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
func (a *analyser) unseen(m *onnx.Model, parts []*scope) error {
	if first, calls := functionCalls(m); calls > 0 {
		a.report.keep("", refuse(first, "no attention was found, and %d nodes call the model's own functions, this one %s, which are not looked into; %s", calls, first.OpType, inlineThem))
		return nil
	}
	for _, part := range parts {
		if n := part.view.turning(); n != nil {
			n = part.view.asWritten(n)
			a.report.keep(part.where, refuse(n, "it turns hidden states by their positions, and no softmax over products of hidden states was found behind it"))
			return nil
		}
	}
	return fmt.Errorf("%w: it has no softmax over products of hidden states", ErrNoAttention)
}

// notTurning returns an error that says how a model tells positions apart of which
// no attention can turn query and key; such attentions may be asked to change
// their masks alone.
func (a *analyser) notTurning(ctx context.Context, parts []*scope) error {
	var still *unturned
	var first *scope
	for _, part := range parts {
		if len(part.found) == 0 {
			continue
		}
		some := part.view.unturned(part.found)
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
		for _, c := range part.found {
			a.report.Sites = append(a.report.Sites, Site{Node: label(c.node), Scope: part.where, Op: c.node.OpType, Status: Kept, Reason: notTurned})
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
	return fmt.Errorf("%w: its %d attentions turn neither query nor key, %s", ErrNoAttention, count, first.view.placed(ctx, eng, still))
}

const notTurned = "it turns neither query nor key by position"

// measure measures and proves what was delimited, and returns the sites of which
// that was done, or whose rotation alone was measured.
func (a *analyser) measure(ctx context.Context, found []delimited) ([]analysed, error) {
	if len(found) == 0 {
		return nil, nil
	}
	eng, err := a.opts.engine()
	if err != nil {
		return nil, err
	}
	defer eng.Close()
	var all []analysed
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
		rotary = rotary || f.lifted.rotary()
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
func (a *analyser) measureScope(ctx context.Context, eng engine.Engine, found []delimited) ([]analysed, error) {
	g := found[0].scope.view
	var values []string
	var sites []*site
	for _, f := range found {
		values = append(values, f.site.measured()...)
		sites = append(sites, f.site)
	}
	a.say("measuring shapes")
	table, err := measureShapes(ctx, eng, g, unique(values))
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for _, f := range found {
			a.report.Sites[f.index].Reason = fmt.Sprintf("the shapes of the graph could not be measured: %v", err)
		}
		return nil, nil
	}
	sized, table := sizeSites(sites, table)
	if s := table.sizesSentence(); s != "" {
		a.report.warn(s)
	}
	l := &lifter{graph: g, loader: loader{engine: eng, table: table}}
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
	lifted *lifted
	proof  *Proof
	err    error

	rotation *lifted // of an attention that cannot be measured, once it was asked for
	unturned error   // why there is none
}

type outcomes map[outcomeKey]outcome

// outcomeKey is a site's hash and whether it was proven too.
type outcomeKey struct {
	hash   [32]byte
	proven bool
}

// measureSites measures and proves every site, once per structure.
func (a *analyser) measureSites(ctx context.Context, l *lifter, found []delimited, sized []*sizedSite) (all []analysed, err error) {
	seen := map[[32]byte]bool{} // of earlier layers
	shared := map[string][32]byte{}
	for i, f := range found {
		s := sized[i]
		hash := s.hash(l.graph, l.table, shared)
		key := outcomeKey{hash, a.proving}
		o, done := a.outcomes[key]
		if !done {
			a.say("proving attention %d of %d", i+1, len(found))
			if o, err = a.outcome(ctx, l, s); err != nil {
				return nil, err
			}
		}
		if o.err != nil && a.rotations && o.rotation == nil && o.unturned == nil {
			if o.rotation, o.unturned = l.rotationOf(ctx, s); ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
		a.outcomes[key] = o
		if measured := a.note(f.index, s, o, seen[hash]); measured != nil {
			all = append(all, analysed{index: f.index, scope: f.scope, site: s, lifted: measured})
		}
		if refusal := o.refusal(); refusal != nil && !seen[hash] && a.opts.DumpSites != "" {
			if err := l.dump(a.opts.DumpSites, f.index, s, refusal); err != nil {
				return nil, fmt.Errorf("writing the kept site at %s: %w", refusal.Node, err)
			}
		}
		seen[hash] = true
	}
	return all, nil
}

// outcome measures a site and proves it. The error is one that ends the analysis;
// what keeps the site alone is a part of the outcome.
func (a *analyser) outcome(ctx context.Context, l *lifter, s *sizedSite) (o outcome, _ error) {
	o.lifted, o.err = l.lift(ctx, s)
	if o.err == nil && a.proving {
		o.proof, o.err = l.prove(ctx, s, o.lifted)
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
func (o outcome) refusal() *Refusal {
	var refusal *Refusal
	if errors.As(o.err, &refusal) {
		return refusal
	}
	return nil
}

// note puts an outcome into the report and returns what was measured of use.
func (a *analyser) note(index int, s *sizedSite, o outcome, seen bool) *lifted {
	site := &a.report.Sites[index]
	refusal := o.refusal()
	if refusal == nil {
		site.describe(s, o.lifted)
		site.Proof, site.Status = o.proof, Rewritten
		if o.lifted.angles != rope.Float32 {
			a.report.warn(fmt.Sprintf("the model computes the angles of its rotation in 16 bits, which tell positions apart up to %d only; the op computes them in float32",
				int64(2/o.lifted.angles.Epsilon())))
		}
		return o.lifted
	}
	site.Reason = refusal.Node + ": " + refusal.Reason
	if seen {
		site.Reason = "as in an earlier layer of the same structure, " + site.Reason
	}
	switch {
	case !a.rotations:
	case o.unturned != nil:
		site.Reason += fmt.Sprintf("; nor can its rotation alone be changed: %v", o.unturned)
	case o.rotation.rotary():
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
func (a *analyser) keepRead(ctx context.Context, l *lifter, part *scope, all []analysed) error {
	var suspects []analysed
	for _, f := range all {
		if site := a.report.Sites[f.index]; site.Status == Rewritten && site.Proof != nil && site.Proof.PaddedDiffer {
			suspects = append(suspects, f)
		}
	}
	if len(suspects) == 0 {
		return nil
	}
	culprits, err := l.culprits(ctx, part, suspects)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	why := "and what the model gives for other tokens depends on them"
	if err != nil {
		culprits, why = suspects, fmt.Sprintf("and whether other tokens depend on them could not be seen: %v", err)
	}
	for _, f := range culprits {
		site := &a.report.Sites[f.index]
		site.Status, site.Proof = Kept, nil
		site.Reason = "queries of padded tokens that see no key get zeros from the op and something else from the original, " + why
	}
	return nil
}
