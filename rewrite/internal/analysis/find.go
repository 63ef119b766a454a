package analysis

import (
	"context"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/sharedengine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// Options say which sites are wanted, and what must be measured of them.
type Options struct {
	Layers         func(int) bool // the sites that are asked for; nil is all
	OnlyMasks      bool           // only masks will be changed: non-rotary attention is accepted too
	KeepsAttention bool           // the model's own nodes may stay: a measured rotation is enough
	ScoresAlone    bool           // no rotation will be changed: measured scores are enough
	RotationAlone  bool           // no more than rotations will be changed: one that is proven without its attention is enough
	DumpSites      string         // folder for sites that are delimited and cannot be measured; "" writes none
	Progress       func(string)   // may be nil
}

// rotationMeasured reports whether a rotation is enough that is measured and not proven.
func (o Options) rotationMeasured() bool { return o.KeepsAttention && !o.OnlyMasks }

// Found is a model whose sites are delimited.
type Found struct {
	Analysis
	delimited []delimited
	still     error // how a model tells positions apart of which no layer can rotate; nil for others
	engine    *sharedengine.Engine
	opts      Options
}

// delimited is a site with its place among the sites.
type delimited struct {
	index int
	scope *site.Scope
	site  *site.Site
}

func (f *Found) say(format string, args ...any) {
	if f.opts.Progress != nil {
		f.opts.Progress(fmt.Sprintf(format, args...))
	}
}

// Find finds the sites of a model and delimits them. The error is site.ErrNoAttention if none can be
// used; the sites that were found are still returned.
func Find(ctx context.Context, m *onnx.Model, engine *sharedengine.Engine, opts Options) (*Found, error) {
	f := &Found{engine: engine, opts: opts}
	f.say("reading the graph")
	parts, err := site.Scopes(m)
	if err != nil {
		return f, err
	}
	f.Scopes = parts
	if err := f.notTurning(ctx, parts); err != nil {
		return f, err
	}
	for _, part := range parts {
		f.delimit(part)
		if ctx.Err() != nil {
			return f, ctx.Err()
		}
	}
	if len(f.Sites) == 0 {
		return f, f.unseen(m, parts)
	}
	f.keepShared()
	f.number()
	return f, nil
}

// delimit finds the sites of a scope, and delimits those that can be.
func (f *Found) delimit(part *site.Scope) {
	for _, c := range part.Found {
		s, refusal := part.Delimit(c)
		if refusal != nil {
			f.refuse(part.Where, refusal)
			continue
		}
		f.add(part, c, NotMeasured, "")
		f.delimited = append(f.delimited, delimited{len(f.Sites) - 1, part, s})
	}
}

// keepShared leaves sites that share a cache unchanged.
func (f *Found) keepShared() {
	var sites []*site.Site
	for _, d := range f.delimited {
		sites = append(sites, d.site)
	}
	refused := site.SharesCache(sites)
	var rest []delimited
	for _, d := range f.delimited {
		if refusal := refused[d.site]; refusal != nil {
			f.Sites[d.index].leave(SharesCache, refusal.Error())
			continue
		}
		rest = append(rest, d)
	}
	f.delimited = rest
}

// unseen says of a model in which no attention was found that it has none, or
// notes what may be one.
func (f *Found) unseen(m *onnx.Model, parts []*site.Scope) error {
	if first, calls := ir.FunctionCalls(m); calls > 0 {
		f.refuse("", graph.Refuse(first, "no attention layer was found outside the model's own functions, which are not searched (%d nodes call them, this one %s); %s", calls, short.Name(first.OpType), graph.InlineThem))
		return nil
	}
	for _, part := range parts {
		if n := site.RotatingNode(part.View); n != nil {
			n = part.View.AsWritten(n)
			f.refuse(part.Where, graph.Refuse(n, "this %s rotates hidden states by position, and no softmax over products of hidden states was found after it", n.OpType))
			return nil
		}
	}
	return fmt.Errorf("%w: it has no softmax over products of hidden states", site.ErrNoAttention)
}

// notTurning returns an error that says how a model tells positions apart of which
// no layer can rotate query and key; such layers may be asked to change
// their masks alone. Where they add something to scores that goes by the distance, the op may have it: the error is
// kept until they were measured.
func (f *Found) notTurning(ctx context.Context, parts []*site.Scope) error {
	var still *site.NonRotary
	var first *site.Scope
	layers := 0
	for _, part := range parts {
		if len(part.Found) == 0 {
			continue
		}
		some := site.FindNonRotary(part.View, part.Found)
		if some == nil || f.opts.OnlyMasks {
			return nil
		}
		if first == nil {
			first, still = part, some
		}
		layers += len(part.Found)
	}
	if first == nil {
		return nil
	}
	eng, err := f.engine.Get()
	if err != nil {
		eng = nil // a typed nil would make the interface non-nil
	}
	explained, byDistance := measure.ExplainPositions(ctx, first.View, eng, still)
	f.still = fmt.Errorf("%w: its %d attention layers rotate neither query nor key, %s", site.ErrNoAttention, layers, explained)
	if byDistance {
		return nil
	}
	for _, part := range parts {
		for _, c := range part.Found {
			f.add(part, c, NotRotary, notTurned)
		}
	}
	f.number()
	return f.still
}

const notTurned = "neither query nor key is rotated by position"
