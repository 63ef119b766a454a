package rewrite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/paddingreaders"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/prove"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// outcome is what came of measuring and proving a site.
type outcome struct {
	measured *measure.Measured
	proof    *prove.Proof
	err      error

	rotation  *measure.Measured // of an attention that cannot be measured, once it was asked for
	notTurned error             // why there is none
}

// outcomes are those of one model's sites, for several rewrites of it at a time.
type outcomes struct {
	known    sync.Map
	shapes   sync.Map // *eval.ShapeTable by what was asked of a graph
	culprits sync.Map // places of sites in the report, likewise

	definitions sync.Map // errors of functions that define ops, by what tells both apart
}

// remember returns what was computed under a key before, or computes and keeps it. Nothing
// is kept under "".
func remember[T any](known *sync.Map, key string, compute func() (T, error)) (T, error) {
	if found, ok := known.Load(key); ok {
		return found.(T), nil
	}
	out, err := compute()
	if err == nil && key != "" {
		known.Store(key, out)
	}
	return out, err
}

// asked says what is asked of a scope of the analysed graph, "" where nothing tells the
// graph from others.
func (a *analyser) asked(of *site.Scope, what any) string {
	if a.graph == "" {
		return ""
	}
	return fmt.Sprintf("%s %q %q", a.graph, of.Where, what)
}

// shapes measures the shapes of a scope's graph.
func (a *analyser) shapes(ctx context.Context, eng engine.Engine, of *site.Scope, values []string) (*eval.ShapeTable, error) {
	return remember(&a.outcomes.shapes, a.asked(of, values), func() (*eval.ShapeTable, error) {
		a.say("measuring shapes")
		return eval.MeasureShapes(ctx, eng, of.View, values)
	})
}

// culprits returns those of the suspects whose outputs for padded queries are read.
func (a *analyser) culprits(ctx context.Context, l *eval.Evaluator, of *site.Scope, suspects []measure.Attention) ([]measure.Attention, error) {
	var places []string
	for _, f := range suspects {
		places = append(places, strconv.Itoa(f.Index))
	}
	found, err := remember(&a.outcomes.culprits, a.asked(of, places), func() (map[int]bool, error) {
		a.say("looking for readers of padded tokens")
		list, err := paddingreaders.Culprits(ctx, l, of, suspects)
		found := map[int]bool{}
		for _, f := range list {
			found[f.Index] = true
		}
		return found, err
	})
	return slices.DeleteFunc(slices.Clone(suspects), func(f measure.Attention) bool { return !found[f.Index] }), err
}

func (o *outcomes) of(key outcomeKey) (outcome, bool) {
	found, ok := o.known.Load(key)
	if !ok {
		return outcome{}, false
	}
	return found.(outcome), true
}

func (o *outcomes) keep(key outcomeKey, of outcome) { o.known.Store(key, of) }

// outcomeKey is a site's hash and whether it was proven too.
type outcomeKey struct {
	hash   [32]byte
	proven bool
}

// outcome measures a site and proves it, or returns what came of one with the same key. starts
// is called before it is measured. The error is one that ends the analysis; what keeps the site
// alone is a part of the outcome.
func (a *analyser) outcome(ctx context.Context, l *eval.Evaluator, s *site.Sized, key outcomeKey, starts func()) (o outcome, _ error) {
	if o, done := a.outcomes.of(key); done {
		return o, nil
	}
	starts()
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
	a.outcomes.keep(key, o)
	return o, nil
}

// rotates reports whether a site may be kept for its rotation alone: that was refused, or the
// proof of the whole.
func (o outcome) rotates() bool {
	return o.err != nil && (o.measured != nil && prove.Ran(o.err) || errors.As(o.err, new(measure.RotationRefusal)))
}

// refusal says what keeps the site, nil where nothing does.
func (o outcome) refusal() *graph.Refusal {
	var refusal *graph.Refusal
	if errors.As(o.err, &refusal) {
		return refusal
	}
	return nil
}

// noteTurned puts the outcome of a site whose rotation is left to the model's own nodes into the
// report, behind the reason for that, and returns what was measured; nil where it is no good either.
func (a *analyser) noteTurned(index int, s *site.Sized, o outcome) *measure.Measured {
	if o.err != nil || o.measured.Rotary() {
		return nil
	}
	site := &a.report.Sites[index]
	site.describe(s, o.measured)
	site.Proof, site.Status = (*Proof)(o.proof), Rewritten
	return o.measured
}

// note puts an outcome into the report and returns what was measured of use.
func (a *analyser) note(index int, s *site.Sized, o outcome, seen bool) *measure.Measured {
	site := &a.report.Sites[index]
	refusal := o.refusal()
	if refusal == nil {
		site.describe(s, o.measured)
		site.Proof, site.Status = (*Proof)(o.proof), Rewritten
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
	case !a.rotations, s.Crosses:
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
