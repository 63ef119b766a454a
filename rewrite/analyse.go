package rewrite

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// analyser finds the attentions of a model and measures them. What it learns goes
// into the report; the model is not changed.
type analyser struct {
	opts           Options
	report         *Report
	proving        bool         // sites are proven too
	onlyMasks      bool         // attention that turns nothing is of use as well
	keepsAttention bool         // see backend
	only           map[int]bool // the sites that are measured, by their place in the report; nil is all
	rotations      bool         // where an attention cannot be measured its rotation alone is of use
	outcomes       *outcomes
	graph          string // tells the analysed graph from others; "" where nothing does

	refusals []func(context.Context) (map[int]string, error) // what is still to be asked for refused
	refused  map[int]string                                  // why the op cannot take the place of a proven site
}

func (o Options) analyser(report *Report, keepsAttention bool) *analyser {
	a := &analyser{opts: o, report: report, proving: true, onlyMasks: o.onlyMasks(), outcomes: o.known, keepsAttention: keepsAttention, refused: map[int]string{}}
	a.rotations = keepsAttention && !a.onlyMasks
	if a.outcomes == nil {
		a.outcomes = &outcomes{}
	}
	return a
}

func (a *analyser) say(format string, args ...any) {
	if a.opts.Progress != nil {
		a.opts.Progress(fmt.Sprintf(format, args...))
	}
}

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
		rotary = rotary || f.Measured.Rotary() || f.Measured.Turned
	}
	if !rotary && !a.onlyMasks {
		for i := range a.report.Sites {
			a.report.Sites[i].Status, a.report.Sites[i].Reason = Kept, notTurned
		}
		return nil, fmt.Errorf("%w: none of its %d attention sites turns query and key by position", ErrNoAttention, len(found))
	}
	return a.crossBesideRotary(all), nil
}

// crossBesideRotary keeps cross-attention in a model of which no other attention is rewritten,
// and returns the other sites then.
func (a *analyser) crossBesideRotary(all []measure.Attention) []measure.Attention {
	isCross := func(f measure.Attention) bool { return f.Measured.Attention.Cross }
	if slices.ContainsFunc(all, func(f measure.Attention) bool { return f.Measured.Rotary() || f.Measured.Turned }) {
		return all
	}
	for _, f := range all {
		if isCross(f) {
			site := &a.report.Sites[f.Index]
			site.Status, site.Proof, site.Reason = Kept, nil, "it is cross-attention, which is rewritten beside attention that turns query and key by position, and no such one is"
		}
	}
	return slices.DeleteFunc(all, isCross)
}

// measureScope measures and proves the sites of one scope.
func (a *analyser) measureScope(ctx context.Context, eng engine.Engine, found []delimited) ([]measure.Attention, error) {
	g := found[0].scope.View
	var values []string
	var sites []*site.Site
	for _, f := range found {
		values = append(append(values, f.site.SizedValues()...), f.site.CrossValues()...)
		if a.halves() {
			values = append(values, f.site.TurnedValues()...)
		}
		if a.rotations {
			values = append(values, f.site.UnroundedValues()...)
		}
		sites = append(sites, f.site)
	}
	table, err := a.shapes(ctx, eng, found[0].scope, ir.Unique(values))
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
	if !a.proving {
		return all, nil
	}
	refusals := func(ctx context.Context) (map[int]string, error) { return a.paddedRead(ctx, l, found[0].scope, all) }
	if a.keepsAttention { // the model's own attention may stay
		a.refusals = append(a.refusals, refusals)
		return all, nil
	}
	refused, err := refusals(ctx)
	for i, why := range refused {
		site := &a.report.Sites[i]
		if site.ScoresOnly {
			why = site.Reason + "; nor can its scores alone be rewritten: " + why
		}
		site.Status, site.Proof, site.ScoresOnly, site.Reason = Kept, nil, false, why
	}
	return all, err
}

// opRefused says of the sites that are proven equal why the op cannot take their place all
// the same, by their place in the report.
func (r *request) opRefused(ctx context.Context) (map[int]string, error) {
	a := r.analyser
	if a == nil {
		return nil, nil
	}
	for _, of := range a.refusals {
		refused, err := of(ctx)
		if err != nil {
			return nil, err
		}
		maps.Copy(a.refused, refused)
	}
	a.refusals = nil // each is asked once
	return a.refused, nil
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
	list := o.all()
	return len(list) > 0 && !slices.ContainsFunc(list, func(s rope.Spec) bool { return s.Axis != rope.MaskAxis })
}

// halves reports whether a site whose rotation is not known is of use all the same: its scores
// may be proven, and no method needs more.
func (a *analyser) halves() bool {
	return !a.keepsAttention && !a.opts.RawCache && (len(a.opts.all()) == 0 || a.onlyMasks)
}

// measureSites measures and proves every site, once per structure.
func (a *analyser) measureSites(ctx context.Context, l *eval.Evaluator, found []delimited, sized []*site.Sized) (all []measure.Attention, err error) {
	seen := map[[32]byte]bool{} // of earlier layers
	shared := map[string][32]byte{}
	for i, f := range found {
		if a.only != nil && !a.only[f.index] {
			continue
		}
		s := sized[i]
		if cross := s.Cross(); cross != nil {
			s = cross
		}
		key := outcomeKey{s.Hash(l.Graph, l.Table, shared), a.proving}
		o, err := a.outcome(ctx, l, s, key, func() { a.say("proving attention %d of %d", i+1, len(found)) })
		if err != nil {
			return nil, err
		}
		if o.err != nil && a.rotations && !s.Crosses {
			if s, o, err = a.rotationAlone(ctx, l, s, key, o, shared); err != nil {
				return nil, err
			}
		}
		measured := a.note(f.index, s, o, seen[key.hash])
		if measured == nil && a.halves() && o.rotates() {
			if s, measured, err = a.scoresAlone(ctx, l, f.index, s, shared); err != nil {
				return nil, err
			}
		}
		if measured != nil {
			all = append(all, measure.Attention{Index: f.index, Scope: f.scope, Site: s, Measured: measured})
		}
		if refusal := o.refusal(); refusal != nil && !seen[key.hash] && a.opts.DumpSites != "" {
			if err := dumpSite(l, a.opts.DumpSites, f.index, sized[i], refusal); err != nil {
				return nil, fmt.Errorf("writing the kept site at %s: %w", refusal.Node, err)
			}
		}
		seen[key.hash] = true
	}
	return all, nil
}

// rotationAlone completes the outcome of a site that cannot be measured as a whole with what is
// measured of its rotation alone, and returns the site of which that is.
func (a *analyser) rotationAlone(ctx context.Context, l *eval.Evaluator, s *site.Sized, key outcomeKey, o outcome, shared map[string][32]byte) (*site.Sized, outcome, error) {
	if u := s.Unrounded(); u != nil { // whose rotation the key of s says nothing of
		s, key.hash = u, u.Hash(l.Graph, l.Table, shared)
		if known, done := a.outcomes.of(key); done {
			return s, known, nil
		}
	}
	if o.rotation != nil || o.notTurned != nil {
		return s, o, nil
	}
	if o.rotation, o.notTurned = measure.RotationAlone(ctx, l, s); ctx.Err() != nil {
		return s, o, ctx.Err()
	}
	a.outcomes.keep(key, o)
	return s, o, nil
}

// scoresAlone measures and proves a kept site without its rotation, and returns it as it is then; what
// was measured is nil where that is no good either.
func (a *analyser) scoresAlone(ctx context.Context, l *eval.Evaluator, index int, s *site.Sized, shared map[string][32]byte) (*site.Sized, *measure.Measured, error) {
	turned := s.Turned()
	if turned == nil {
		return s, nil, nil
	}
	key := outcomeKey{turned.Hash(l.Graph, l.Table, shared), a.proving}
	half, err := a.outcome(ctx, l, turned, key, func() { a.say("proving the scores of attention %d", index+1) })
	if err != nil {
		return s, nil, err
	}
	return turned, a.noteTurned(index, turned, half), nil
}

// paddedRead refuses the sites whose op gives queries of padded tokens that see no key
// something else than the original does, where another token depends on it. It says why by
// their place in the report.
func (a *analyser) paddedRead(ctx context.Context, l *eval.Evaluator, part *site.Scope, all []measure.Attention) (map[int]string, error) {
	var suspects []measure.Attention
	for _, f := range all {
		if site := a.report.Sites[f.Index]; site.Status == Rewritten && site.Proof != nil && site.Proof.PaddedDiffer {
			suspects = append(suspects, f)
		}
	}
	if len(suspects) == 0 {
		return nil, nil
	}
	culprits, err := a.culprits(ctx, l, part, suspects)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	why := "and what the model gives for other tokens depends on them"
	if err != nil {
		culprits, why = suspects, fmt.Sprintf("and whether other tokens depend on them could not be seen: %v", err)
	}
	refused := map[int]string{}
	for _, f := range culprits {
		refused[f.Index] = "queries of padded tokens that see no key get zeros from the op and something else from the original, " + why
	}
	return refused, nil
}
