package modelconfig

import (
	"maps"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Computes returns what transformers makes of a layer on a base: an attention that turns as many pairs as a, by the
// powers of the base, with the claimed scaling.
func (r Rotation) Computes(a rope.Attention, theta float64, c rope.Context) (rope.Attention, error) {
	if r.Unread != nil {
		return rope.Attention{}, r.Unread
	}
	pairs := len(a.Encoding.Frequencies)
	plain := rope.Attention{Heads: 1, KVHeads: 1, HeadSize: 2 * pairs, Encoding: rope.Encoding{Frequencies: make([]float64, pairs)}}
	base := rope.Spec{Axis: rope.ScalingAxis, Name: baseAlone, Params: map[string]rope.Value{"rope_theta": rope.Number(theta)}}
	c.Theta = theta
	plain, _, err := base.Apply(plain, c)
	if err != nil || r.Scaling.Name == "" {
		return plain, err
	}
	got, _, err := ByRun(r.Scaling).Apply(plain, c)
	if own := &got.Encoding; slices.Equal(own.LengthDependent.Long, own.Frequencies) {
		own.LengthDependent = rope.LengthDependent{} // one list for every length
	}
	return got, err
}

// ByRun returns a scaling that depends on the length so that each call's counts, as in transformers.
func ByRun(scaling rope.Spec) rope.Spec {
	m, err := rope.Lookup(rope.ScalingAxis, scaling.Name)
	if err != nil || !m.ByLength {
		return scaling
	}
	return With(scaling, "length", rope.Text("run"))
}

// With returns a spec with a parameter.
func With(spec rope.Spec, key string, value rope.Value) rope.Spec {
	spec.Params = maps.Clone(spec.Params)
	if spec.Params == nil {
		spec.Params = map[string]rope.Value{}
	}
	spec.Params[key] = value
	return spec
}

// SameFrequencies compares how fast pairs turn in calls of every length, to a relative error. Which way they turn is
// the graph's own.
func SameFrequencies(a, b rope.Encoding, off float64) bool {
	b = b.WithSenses(b.Senses())
	x, y := a.LengthDependent, b.LengthDependent
	near := func(a, b float64) bool { return Near(a, b, off) }
	return slices.EqualFunc(a.Frequencies, b.Frequencies, near) && slices.EqualFunc(x.Long, y.Long, near) &&
		x.Trained == y.Trained && near(x.NTK, y.NTK) && x.Linear == y.Linear
}

// Near reports whether two numbers are the same to a relative error.
func Near(a, b, off float64) bool { return math.Abs(a-b) <= off*max(math.Abs(a), math.Abs(b)) }
