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

// analysed is one site with what was measured of it.
type analysed struct {
	index  int // in the report
	scope  *scope
	site   *site
	lifted *lifted
}

// analyse fills the report's sites and returns those that were delimited.
func analyse(ctx context.Context, m *onnx.Model, opts Options, report *Report) ([]analysed, error) {
	say := opts.Progress
	if say == nil {
		say = func(string) {}
	}
	say("reading the graph")
	parts, err := scopes(m)
	if err != nil {
		return nil, err
	}
	if done := ownNodes(m); done > 0 {
		return nil, fmt.Errorf("%w that is not rewritten already (%d %s nodes are of an earlier run); start from the original file", ErrNoAttention, done, opsDomain)
	}
	var found []analysed
	if err := notTurning(ctx, parts, opts, report); err != nil {
		return nil, err
	}
	for _, part := range parts {
		found = append(found, part.delimit(report)...)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if len(report.Sites) == 0 {
		return nil, unseen(m, parts, report)
	}
	found = report.keepShared(found)
	report.number()
	if len(found) == 0 {
		return nil, nil
	}
	eng, err := opts.engine()
	if err != nil {
		return nil, err
	}
	defer eng.Close()
	for rest := found; len(rest) > 0; {
		some := rest[:1]
		for len(some) < len(rest) && rest[len(some)].scope == rest[0].scope {
			some = rest[:len(some)+1]
		}
		rest = rest[len(some):]
		if err := measure(ctx, eng, some, opts, report, say); err != nil {
			return nil, err
		}
	}
	rotary := len(found) < len(report.Sites) // a site that was not delimited may be
	for _, f := range found {
		rotary = rotary || f.lifted == nil || f.lifted.rotary()
	}
	if !rotary && !opts.onlyMasks() {
		for i := range report.Sites {
			report.Sites[i].Status, report.Sites[i].Reason = Kept, notTurned
		}
		return nil, fmt.Errorf("%w: none of its %d attention sites turns query and key by position", ErrNoAttention, len(found))
	}
	return found, nil
}

// unseen says of a model in which no attention was found that it has none, or
// keeps what may be one.
func unseen(m *onnx.Model, parts []*scope, report *Report) error {
	if first, calls := functionCalls(m); calls > 0 {
		report.keep("", refuse(first, "no attention was found, and %d nodes call the model's own functions, this one %s, which are not looked into; %s", calls, first.OpType, inlineThem))
		return nil
	}
	for _, part := range parts {
		if n := part.view.turning(); n != nil {
			n = part.view.asWritten(n)
			report.keep(part.where, refuse(n, "it turns hidden states by their positions, and no softmax over products of hidden states was found behind it"))
			return nil
		}
	}
	return fmt.Errorf("%w: it has no softmax over products of hidden states", ErrNoAttention)
}

// delimit finds the attentions of a scope, notes them in the report and returns
// those that were delimited.
func (s *scope) delimit(report *Report) (found []analysed) {
	for _, c := range s.find() {
		var delimited *site
		refusal := c.refusal
		if refusal == nil {
			delimited, refusal = s.view.delimit(*c.core)
			if refusal == nil {
				refusal = s.own(delimited)
			}
			if refusal != nil {
				refusal.Op = c.node.OpType
			}
		}
		if refusal != nil {
			report.keep(s.where, refusal)
			continue
		}
		report.Sites = append(report.Sites, Site{Node: label(c.node), Scope: s.where, Op: c.node.OpType, Status: Kept})
		found = append(found, analysed{index: len(report.Sites) - 1, scope: s, site: delimited})
	}
	return found
}

// measure lifts and proves the sites of one scope.
func measure(ctx context.Context, eng engine.Engine, found []analysed, opts Options, report *Report, say func(string)) error {
	g := found[0].scope.view
	var values []string
	for _, f := range found {
		values = append(values, f.site.measured()...)
	}
	say("measuring shapes")
	table, err := measureShapes(ctx, eng, g, unique(values))
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return report.keepAll(found, fmt.Errorf("the shapes of the graph could not be measured: %w", err))
	}
	for _, f := range found {
		f.site.settle(table)
	}
	if s := table.sizesSentence(); s != "" {
		report.warn(s)
	}
	l := &lifter{graph: g, loader: loader{engine: eng, table: table}}
	if err := measureAll(ctx, l, found, opts, report, say); err != nil {
		return err
	}
	if opts.Target == PlainONNX {
		return nil // the model's own attention stays
	}
	say("looking for readers of padded tokens")
	return l.keepRead(ctx, found[0].scope, found, report)
}

// notTurning returns an error that says how a model tells positions apart of which
// no attention can turn query and key; such attentions may be asked to change
// their masks alone.
func notTurning(ctx context.Context, parts []*scope, opts Options, report *Report) error {
	var still *unturned
	var first *scope
	for _, part := range parts {
		candidates := part.find()
		if len(candidates) == 0 {
			continue
		}
		some := part.view.unturned(candidates)
		if some == nil || opts.onlyMasks() {
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
		for _, c := range part.find() {
			report.Sites = append(report.Sites, Site{Node: label(c.node), Scope: part.where, Op: c.node.OpType, Status: Kept, Reason: notTurned})
			count++
		}
	}
	report.number()
	return fmt.Errorf("%w: its %d attentions turn neither query nor key, %s", ErrNoAttention, count, first.view.placed(ctx, opts, still))
}

const notTurned = "it turns neither query nor key by position"

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

	rotation *lifted // of an attention that is not lifted, once it was asked for
	unturned error   // why there is none
}

type outcomes map[outcomeKey]outcome

// outcomeKey is a site's hash and whether it was measured only.
type outcomeKey struct {
	hash     [32]byte
	measured bool
}

// measureAll lifts and proves every site, once per structure.
func measureAll(ctx context.Context, l *lifter, found []analysed, opts Options, report *Report, say func(string)) error {
	known := opts.known
	if known == nil {
		known = outcomes{}
	}
	proven := map[[32]byte]bool{} // by an earlier layer
	shared := map[string][32]byte{}
	for i := range found {
		f := &found[i]
		hash := f.site.hash(l.graph, l.table, shared)
		seen := proven[hash]
		proven[hash] = true
		key := outcomeKey{hash, opts.measureOnly}
		o, done := known[key]
		if !done {
			say(fmt.Sprintf("proving attention %d of %d", i+1, len(found)))
			o.lifted, o.err = l.lift(ctx, f.site)
			if o.err == nil && !opts.measureOnly {
				o.proof, o.err = l.prove(ctx, f.site, o.lifted)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			known[key] = o
		}
		var rotation *lifted // of an attention that cannot be lifted itself
		if o.err != nil && opts.Target == PlainONNX && !opts.onlyMasks() {
			if o.rotation == nil && o.unturned == nil {
				if o.rotation, o.unturned = l.rotationOf(ctx, f.site); ctx.Err() != nil {
					return ctx.Err()
				}
				known[key] = o
			}
			rotation = o.rotation
		}
		site := &report.Sites[f.index]
		var refusal *Refusal
		switch {
		case errors.As(o.err, &refusal):
			site.Reason = refusal.Node + ": " + refusal.Reason
			if !seen && opts.DumpSites != "" {
				if err := l.dump(opts.DumpSites, f.index, f.site, refusal); err != nil {
					return fmt.Errorf("writing the kept site at %s: %w", refusal.Node, err)
				}
			}
			if seen {
				site.Reason = "as in an earlier layer of the same structure, " + site.Reason
			}
			if o.unturned != nil {
				site.Reason += fmt.Sprintf("; nor can its rotation alone be changed: %v", o.unturned)
			}
			if rotation != nil && !rotation.rotary() {
				site.Reason += "; nor is there a rotation of query and key that could be changed alone"
			}
			if rotation != nil && rotation.rotary() {
				f.lifted = rotation
				site.describe(f.site, rotation)
				site.Status = Rewritten
			}
		case o.err != nil:
			return o.err
		default:
			f.lifted = o.lifted
			site.describe(f.site, o.lifted)
			site.Proof = o.proof
			site.Status = Rewritten
			if o.lifted.angles != rope.Float32 {
				report.warn(fmt.Sprintf("the model computes the angles of its rotation in 16 bits, which tell positions apart up to %d only; the op computes them in float32",
					int64(2/o.lifted.angles.Epsilon())))
			}
		}
	}
	for i := range report.Sites {
		if opts.Layers != nil && !opts.Layers(i) {
			report.Sites[i].Status, report.Sites[i].Reason = Kept, notSelected
		}
	}
	return nil
}
