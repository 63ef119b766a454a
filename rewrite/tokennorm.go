package rewrite

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// What stands behind a rotation and is made of what is turned must be a norm.

// norms makes sure that what a branch's scales are made of query or key alone is
// their length, which no rotation changes: the same for a vector and its mirror
// image in any plane. It returns what the un-rotated value is multiplied by
// before each norm is taken.
func (l *lifter) norms(ctx context.Context, b branch, what string, in layout) ([]float64, error) {
	factors := make([]float64, len(b.scales))
	for i, scale := range b.scales {
		if !scale.norm {
			continue
		}
		if _, err := l.graph.chain(scale); err != nil {
			return nil, refuse(scale.node, "what it multiplies by is made of what is turned, and no norm: %v", err)
		}
		loaded, refusal := l.open(ctx, scale.node, "the norm behind the rotation of its "+what, []string{scale.value}, []string{scale.of})
		if refusal != nil {
			return nil, refusal
		}
		err := loaded.mirrored(ctx, scale)
		loaded.session.Close()
		if err != nil {
			return nil, refuse(scale.node, "what it multiplies by is made of what is turned, and no norm: %v", err)
		}
		if loaded, refusal = l.open(ctx, scale.node, "the rotation of its "+what, []string{scale.of}, b.given()); refusal != nil {
			return nil, refusal
		}
		factors[i], err = loaded.lengthened(ctx, b.cut, scale.of, in)
		loaded.session.Close()
		if err != nil {
			return nil, refuse(scale.node, "the norm behind the rotation of its %s is not understood: %v", what, err)
		}
	}
	return factors, nil
}

// lengthened returns how much longer vectors become on their way.
func (l *loaded) lengthened(ctx context.Context, cut, out string, in layout) (float64, error) {
	if in.parts != nil {
		return 0, fmt.Errorf("it is taken of several values")
	}
	to, err := layoutOf(l.table.dims[out], in.channels)
	if err != nil {
		return 0, err
	}
	pt := l.table.within(point{B: 2, L: 3, P: 2})
	x, y, err := l.random(ctx, pt, cut, out, 17)
	if err != nil {
		return 0, err
	}
	given, values := x.Values(), y.Values()
	factor := 0.0
	for b := range pt.B {
		for h := range to.heads {
			for r := range pt.L {
				var before, after float64
				for c := range in.channels {
					u, v := given[in.index(x.Dims, b, h*in.heads/to.heads, r, c)], values[to.index(y.Dims, b, h, r, c)]
					before, after = before+u*u, after+v*v
				}
				longer := math.Sqrt(after / before)
				if factor == 0 {
					factor = longer
				}
				if !(math.Abs(longer-factor) <= 32*math.Max(l.piece.precision().Epsilon(), float32eps)*factor) {
					return 0, fmt.Errorf("what it is taken of is %g times as long as the un-rotated vector, and %g times elsewhere", factor, longer)
				}
			}
		}
	}
	if math.Abs(factor-1) <= 16*math.Max(l.piece.precision().Epsilon(), float32eps) {
		factor = 1
	}
	return snapped(factor, l.piece.precision()), nil
}

// mirrored compares what a scale is for random vectors and for their mirror images.
func (l *loaded) mirrored(ctx context.Context, s tokenScale) error {
	rng := rand.New(rand.NewPCG(13, 14))
	ly, err := layoutOf(l.table.dims[s.of], 0)
	if err != nil {
		return err
	}
	pt := l.table.within(point{B: 2, L: 3, P: 2})
	dims := evaluate(l.table.dims[s.of], pt)
	elements, err := room(dims)
	if err != nil {
		return err
	}
	for _, size := range []float64{1e-3, 1, 30} {
		x, y := make([]float32, elements), make([]float32, elements)
		for b := range pt.B {
			for h := range ly.heads {
				for r := range ly.rows.at(pt) {
					normal, length, along := make([]float64, ly.channels), 0.0, 0.0
					for c := range ly.channels {
						v := size * rng.NormFloat64()
						x[ly.index(dims, b, h, r, c)] = float32(v)
						normal[c] = rng.NormFloat64()
						length, along = length+normal[c]*normal[c], along+normal[c]*v
					}
					for c := range ly.channels {
						at := ly.index(dims, b, h, r, c)
						y[at] = float32(float64(x[at]) - 2*along/length*normal[c])
					}
				}
			}
		}
		var results [2]engine.Tensor
		for i, v := range [][]float32{x, y} {
			result, err := l.run(ctx, pt, map[string]engine.Tensor{s.of: l.piece.state(s.of, v, dims...)})
			if err != nil {
				return err
			}
			results[i] = result[s.value]
		}
		slack := 8 * math.Max(l.piece.precision().Epsilon(), 4*float32eps)
		got := results[1].Values()
		for i, want := range results[0].Values() {
			if !(math.Abs(got[i]-want) <= slack*math.Abs(want)) {
				return fmt.Errorf("%q is %g for a vector and %g for its mirror image", s.value, want, got[i])
			}
		}
	}
	return nil
}

// behindNorms takes out of an edited attention what a norm behind the rotation
// takes away: its gain. It is what a model has that is exported with the method.
func (s *sizedSite) behindNorms(a, before rope.Attention) (_ rope.Attention, warning string, _ error) {
	gain, own := a.Encoding.EffectiveGain(), before.Encoding.EffectiveGain()
	switch {
	case gain == own || !s.query.normed() && !s.key.normed():
		return a, "", nil
	case !s.query.normed() || !s.key.normed() || a.Encoding.RotaryDim() != a.HeadSize:
		return a, "", fmt.Errorf("the method multiplies what it turns by %g, and a norm behind the rotation takes that away from some of it only; a method without a gain is possible (temperature=1)", gain)
	}
	a.Encoding.Gain = before.Encoding.Gain
	return a, fmt.Sprintf("queries and keys are normed after they are turned, which takes the method's gain of %.6g away, as in a model that is exported with the method; temperature=%.6g would multiply scores by as much", gain, gain*gain/(own*own)), nil
}
