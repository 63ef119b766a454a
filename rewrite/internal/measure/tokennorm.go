package measure

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// A factor after the rotation that is computed from the rotated value must be a norm.

// normFactors checks that those of a branch's factors per token that are computed from
// the rotated value depend on its length alone, which a rotation does not change: they
// are the same for a vector and its mirror image in any plane. For each such norm it
// returns by what the value before rotation is multiplied on its path to the norm; 0 for
// other factors.
func normFactors(ctx context.Context, ev *eval.Evaluator, b site.Branch, what string, in dim.Layout) ([]float64, error) {
	factors := make([]float64, len(b.Scales))
	for i, scale := range b.Scales {
		if !scale.Norm {
			continue
		}
		if _, err := site.Chain(ev.Graph, scale); err != nil {
			return nil, graph.Refuse(scale.Node, "this %s multiplies by a value computed from its input, which is not a norm: %v", scale.Node.OpType, err)
		}
		loaded, refusal := ev.Open(ctx, scale.Node, "the norm after the rotation of its "+what, []string{scale.Value}, []string{scale.Of})
		if refusal != nil {
			return nil, refusal
		}
		err := mirrored(ctx, loaded, scale)
		loaded.Session.Close()
		if err != nil {
			return nil, graph.Refuse(scale.Node, "this %s multiplies by a value computed from its input, which is not a norm: %v", scale.Node.OpType, err)
		}
		if loaded, refusal = ev.Open(ctx, scale.Node, "the rotation of its "+what, []string{scale.Of}, b.MeasuredFrom()); refusal != nil {
			return nil, refusal
		}
		factors[i], err = lengthFactor(ctx, loaded, b.Boundary, scale.Of, in)
		loaded.Session.Close()
		if err != nil {
			return nil, graph.Refuse(scale.Node, "the norm after the rotation of its %s is not understood: %v", what, err)
		}
	}
	return factors, nil
}

// lengthFactor returns how much longer a vector of a boundary is at out, whose last
// dimension is its channels. It returns an error where that is not the same for all
// vectors, tokens and heads.
func lengthFactor(ctx context.Context, l *eval.Loaded, boundary, out string, in dim.Layout) (float64, error) {
	if in.Parts != nil {
		return 0, fmt.Errorf("it is computed from several values")
	}
	rng := rand.New(rand.NewPCG(17, 18))
	pt := l.Table.Within(dim.Point{B: 2, L: 3, P: 2})
	dims := dim.Evaluate(l.Table.Dims[boundary], pt)
	elements, err := bound.Elements(dims)
	if err != nil {
		return 0, err
	}
	factor := 0.0
	for range 4 {
		x, before := make([]float32, elements), 0.0
		for c := range in.Channels {
			v := float32(rng.NormFloat64())
			before += float64(v) * float64(v)
			for b := range pt.B {
				for h := range in.Heads {
					for r := range in.Rows.At(pt) {
						x[in.Index(dims, b, h, r, c)] = v
					}
				}
			}
		}
		result, err := l.Run(ctx, pt, map[string]engine.Tensor{boundary: l.Piece.State(boundary, x, dims...)})
		if err != nil {
			return 0, err
		}
		y := result[out]
		if last := len(y.Dims) - 1; last < 0 || y.Dims[last] != in.Channels {
			return 0, fmt.Errorf("its input has the shape %v; expected %d channels last", y.Dims, in.Channels)
		}
		for vector := range slices.Chunk(y.Values(), int(in.Channels)) {
			after := 0.0
			for _, v := range vector {
				after += v * v
			}
			longer := math.Sqrt(after / before)
			if factor == 0 {
				factor = longer
			}
			if !(math.Abs(longer-factor) <= 32*math.Max(l.Piece.Precision().Epsilon(), ir.Float32eps)*factor) {
				return 0, fmt.Errorf("its input is %g times as long as the un-rotated vector, and %g times elsewhere", factor, longer)
			}
		}
	}
	if math.Abs(factor-1) <= 16*math.Max(l.Piece.Precision().Epsilon(), ir.Float32eps) {
		factor = 1
	}
	return ir.Snapped(factor, l.Piece.Precision()), nil
}

// mirrored returns an error where a norm differs between random vectors and their mirror
// images. Vectors stand along the last dimension, over which the norm is taken.
func mirrored(ctx context.Context, l *eval.Loaded, s site.TokenScale) error {
	rng := rand.New(rand.NewPCG(13, 14))
	pt := l.Table.Within(dim.Point{B: 2, L: 3, P: 2})
	dims := dim.Evaluate(l.Table.Dims[s.Of], pt)
	elements, err := bound.Elements(dims)
	if err != nil {
		return err
	}
	if len(dims) == 0 || elements == 0 {
		return fmt.Errorf("%q has the shape %v", short.Name(s.Of), dims)
	}
	channels := int(dims[len(dims)-1])
	for _, size := range []float64{1e-3, 1, 30} {
		x, y := make([]float32, elements), make([]float32, elements)
		normal := make([]float64, channels)
		for at := 0; at < len(x); at += channels {
			length, along := 0.0, 0.0
			for c := range channels {
				v := size * rng.NormFloat64()
				x[at+c] = float32(v)
				normal[c] = rng.NormFloat64()
				length, along = length+normal[c]*normal[c], along+normal[c]*v
			}
			for c := range channels {
				y[at+c] = float32(float64(x[at+c]) - 2*along/length*normal[c])
			}
		}
		var results [2]engine.Tensor
		for i, v := range [][]float32{x, y} {
			result, err := l.Run(ctx, pt, map[string]engine.Tensor{s.Of: l.Piece.State(s.Of, v, dims...)})
			if err != nil {
				return err
			}
			results[i] = result[s.Value]
		}
		slack := 8 * math.Max(l.Piece.Precision().Epsilon(), 4*ir.Float32eps)
		got := results[1].Values()
		for i, want := range results[0].Values() {
			if !(math.Abs(got[i]-want) <= slack*math.Abs(want)) {
				return fmt.Errorf("%q is %g for a vector and %g for its mirror image", short.Name(s.Value), want, got[i])
			}
		}
	}
	return nil
}

// BehindNorms returns the attention a without the gain that a method gave it, where norms
// after the rotation take this gain away, and a warning that says so. A model that is
// exported with the method has the same. original is the attention without the method.
// It returns an error where the norms take away only a part of the gain.
func BehindNorms(s *site.Sized, a, original rope.Attention) (_ rope.Attention, warning string, _ error) {
	gain, own := a.Encoding.EffectiveGain(), original.Encoding.EffectiveGain()
	switch {
	case gain == own || !s.Query.Normed() && !s.Key.Normed():
		return a, "", nil
	case !s.Query.Normed() || !s.Key.Normed() || a.Encoding.RotaryDim() != a.HeadSize:
		return a, "", fmt.Errorf("the method's gain of %g is undone for a part of the channels by a norm after the rotation; give a method without a gain (temperature=1)", gain)
	}
	a.Encoding.Gain = original.Encoding.Gain
	return a, fmt.Sprintf("a norm after the rotation undoes the method's gain of %.6g, as it does in a model exported with the method; temperature=%.6g multiplies the scores by as much", gain, gain*gain/(own*own)), nil
}
