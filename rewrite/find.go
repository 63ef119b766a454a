package rewrite

import (
	"context"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

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
