package fallback

import (
	"context"
	"fmt"
	"iter"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/contrib"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plan"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/prove"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/sharedengine"
)

// Fallback says whether a model has its op in standard operators.
type Fallback struct {
	Ops      []string // names of the op that have a function; none if Reason says why
	Bytes    int      // that the functions take in the file
	MaxError float64  // of the functions against float64, relative to the largest number of a result
	Reason   string   // why there is none
}

// Of describes the functions of a model that define its op, nil where it has none.
func Of(m *onnx.Model) *Fallback {
	functions := definition.Of(m)
	if functions == nil {
		return nil
	}
	f := &Fallback{}
	for _, of := range functions {
		f.Ops = append(f.Ops, of.Name)
		f.Bytes += of.Size()
	}
	return f
}

// Write gives a rewritten model the functions that define its ops. A model whose ops cannot be defined
// gets none, and Reason says why. nil is a model whose own nodes were changed.
func Write(ctx context.Context, m *onnx.Model, sites []*plan.Site, engine *sharedengine.Engine) (*Fallback, error) {
	before := m.IRVersion
	functions, err := definition.Write(m)
	worst := 0.0
	if err == nil {
		worst, err = proveAll(ctx, m, sites, functions, engine)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		definition.Remove(m)
		m.IRVersion = before
		return &Fallback{Ops: []string{}, Reason: err.Error()}, nil
	}
	f := Of(m)
	if f != nil {
		f.MaxError = worst
	}
	return f, nil
}

// Inline inlines the fallback in the place of the ops, after it was proven for each.
func Inline(ctx context.Context, m *onnx.Model, sites []*plan.Site, engine *sharedengine.Engine) error {
	functions, err := definition.Draft(m)
	if err == nil {
		_, err = proveAll(ctx, m, sites, functions, engine)
	}
	if err == nil {
		err = definition.Inline(m)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// proveAll proves the functions for the ops of a plan, and returns their largest error.
func proveAll(ctx context.Context, m *onnx.Model, sites []*plan.Site, functions []*onnx.Function, engine *sharedengine.Engine) (worst float64, _ error) {
	of := map[string]*onnx.Function{}
	for _, f := range functions {
		of[f.Name] = f
	}
	p := prover{engine: engine, opset: m.Opset(""), seen: map[string]bool{}}
	for _, s := range sites {
		op := becomes(s)
		if op == nil || !p.first(op) {
			continue
		}
		if err := definition.Serves(p.opset, s.Scope.View.Element(s.Site.Query.Boundary)); err != nil {
			return 0, err
		}
		off, err := p.prove(ctx, op, of[s.Change.Node().OpType])
		if err != nil {
			return 0, fmt.Errorf("its fallback could not be verified (layer %d): %w", s.Layer, err)
		}
		worst = max(worst, off)
	}
	return worst, nil
}

// becomes returns the op that a site becomes, nil where its own nodes stay.
func becomes(s *plan.Site) tried {
	if op, n := s.Change.Op(); op != nil {
		return Op{*op, n, s.Want.HeadSize, s.Scales}
	}
	if op, n := s.Change.Rotary(); op != nil {
		return rotation{*op, n, [2]int{s.Want.Heads, s.Want.KVHeads}, s.Want.HeadSize}
	}
	return nil
}

// Op is an op that a site becomes.
type Op struct {
	customop.RotaryAttention
	Node     *onnx.Node
	HeadSize int
	Scales   *contrib.Scales // see plan.Site
}

// DistinctOps yields the ops that sites become: of several that differ in names alone, the first.
func DistinctOps(sites []*plan.Site) iter.Seq2[*plan.Site, Op] {
	return func(yield func(*plan.Site, Op) bool) {
		p := prover{seen: map[string]bool{}}
		for _, s := range sites {
			if op, ok := becomes(s).(Op); ok && p.first(op) && !yield(s, op) {
				return
			}
		}
	}
}

// description describes an op without the names of its values: ops of one description are the same.
func (o Op) description() string {
	op := o.RotaryAttention
	for _, v := range []*string{&op.Query, &op.Key, &op.Value, &op.PastKey, &op.PastValue, &op.PositionIDs, &op.AttentionMask, &op.AttentionBias,
		&op.CacheLength, &op.DocumentIDs, &op.SinkLogits, &op.BiasBeforeSoftcap, &op.TotalLength, &op.Output, &op.PresentKey, &op.PresentValue, &op.LogSumExp} {
		*v = given(*v)
	}
	scales := ""
	if o.Scales != nil {
		scales = fmt.Sprintf(" %v", *o.Scales)
	}
	return fmt.Sprintf("%s %d %+v%s", o.Node.OpType, o.HeadSize, op, scales)
}

func (o Op) proven(ctx context.Context, eng engine.Engine, f *onnx.Function, opset int64, tokens int) (float64, error) {
	if tokens > 0 {
		return prove.DefinitionUpTo(ctx, eng, o.Node, o.RotaryAttention, f, opset, o.HeadSize, tokens)
	}
	return prove.Definition(ctx, eng, o.Node, o.RotaryAttention, f, opset, o.HeadSize)
}
