package plainonnx

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Frequencies may depend on the length of a call. Without the op, plain nodes compute
// them. The cache then holds keys before rotation, and every call rotates all of them,
// as the op does.

// writeLengthDependent replaces the constants that are to depend on the length by nodes
// that compute them, and changes the caches of these sites.
func (t *rotaryConstants) writeLengthDependent(sites []Layer) error {
	var length string // the name of the length, computed once for all constants
	for _, name := range slices.Sorted(maps.Keys(t.constants)) {
		r := t.constants[name]
		if r.want.LengthDependent.Trained == 0 {
			continue
		}
		b := &ir.Builder{Stem: "rope_rewrite/" + name}
		if length == "" {
			length = callLength(b, r.site)
		}
		r.remove(name, t.model)
		lengthDependentFrequencies(b, r, name, length)
		b.Into(r.holder, nil)
	}
	var rotations []keyRotation
	for _, s := range sites {
		if s.Want.Encoding.LengthDependent.Trained == 0 || !s.cachesRotated() {
			continue
		}
		want, err := s.wantedEncoding()
		if err == nil {
			err = s.checkCache()
		}
		if err != nil {
			return &LayerError{s.Number, err}
		}
		i := slices.IndexFunc(rotations, func(k keyRotation) bool { return reflect.DeepEqual(k.encoding, want) })
		if i < 0 {
			b := &ir.Builder{Stem: fmt.Sprintf("rope_rewrite/keys_%d", len(rotations))}
			rotations = append(rotations, newKeyRotation(b, s, want, length, t.model.Opset("")))
			b.Into(t.model.Graph, nil)
			i = len(rotations) - 1
		}
		s.cacheUnrotated(t.model, rotations[i])
	}
	return nil
}

// newTokenPositions computes the positions of the new tokens, int64 [batch or 1, length],
// and which of them are not padding, bool [batch, length]; "" without a padding mask.
func newTokenPositions(b *ir.Builder, s Layer) (positions, real string) {
	l := s.Measured
	if l.Position != nil {
		positions = b.Int64s(l.Position)
	} else {
		length := b.NamedSize("length", s.Site.Query.Boundary, slices.Index(l.Layouts.Query.Axes, dim.RowAxis))
		start := b.Scalar("start", 0)
		if l.Layouts.Cached {
			start = b.NamedSize("past", s.Site.Key.Past(), 2)
			length = b.AddAs("total", "Add", []string{length, start})
		}
		row := b.AddAs("row", "Range", []string{start, length, b.Scalar("step", 1)})
		positions = b.AddAs("positions", "Reshape", []string{row, b.Constant("row_shape", 1, -1)})
	}
	if l.Mask != nil {
		dims := b.AddAs("positions_dims", "Shape", []string{positions})
		length := b.AddAs("new", "Slice", []string{dims, b.Constant("second", 1), b.Constant("third", 2)})
		from := b.AddAs("from", "Neg", []string{length})
		own := b.AddAs("own_mask", "Slice", []string{l.Mask.Name, from, b.Constant("end", math.MaxInt64), b.Value("second")})
		real = b.AddAs("real", "Cast", []string{own}, onnx.IntAttr("to", int64(onnx.Bool)))
	}
	return positions, real
}

// callLength computes the length of a call, a double without dimensions: one more than the
// largest position of a token that is not padding.
func callLength(b *ir.Builder, s Layer) string {
	positions, real := newTokenPositions(b, s)
	next := b.AddAs("next", "Add", []string{positions, b.Constant("one", 1)})
	if real != "" {
		count := b.AddAs("real_int64", "Cast", []string{real}, onnx.IntAttr("to", int64(onnx.Int64)))
		next = b.AddAs("next_real", "Mul", []string{next, count})
	}
	last := b.AddAs("last", "ReduceMax", []string{next}, onnx.IntAttr("keepdims", 0))
	return b.AddAs("reach", "Cast", []string{last}, onnx.IntAttr("to", int64(onnx.Double)))
}

// lengthDependentFrequencies computes the frequencies of a call of some length, under the
// given name and in the constant's form, as rope.Encoding.At does.
func lengthDependentFrequencies(b *ir.Builder, r rotaryConstant, name, length string) {
	reach, dims := r.want.LengthDependent, r.tensor.Dims
	double := func(part string, dims []int64, values ...float64) string {
		b.Constants = append(b.Constants, ir.FloatTensor(b.Value(part), onnx.Double, dims, values...))
		return b.Value(part)
	}
	ofPairs := func(f func(pair int) float64) (list []float64) {
		for _, pair := range r.pairs {
			list = append(list, f(pair))
		}
		return list
	}
	short := r.frequencyTensor(b.Value("short"), r.want.Frequencies)
	b.Constants = append(b.Constants, short)
	over := b.AddAs("over", "Greater", []string{length, double("trained", []int64{}, float64(reach.Trained))})
	if reach.Long != nil {
		long := r.frequencyTensor(b.Value("long"), reach.Long)
		b.Constants = append(b.Constants, long)
		b.AddTo(name, "Where", []string{over, long.Name, short.Name})
		return
	}
	own := double("own", dims, ofPairs(func(pair int) float64 { return r.want.Frequencies[pair] })...)
	stretch := b.AddAs("stretch", "Div", []string{length, b.Value("trained")})
	var scaled string
	if reach.Linear {
		scaled = b.AddAs("scaled", "Div", []string{own, stretch})
	} else {
		raised := b.AddAs("raised", "Mul", []string{stretch, double("factor", []int64{}, reach.NTK)})
		alpha := b.AddAs("alpha", "Sub", []string{raised, double("less", []int64{}, reach.NTK-1)})
		exponents := double("exponents", dims, ofPairs(func(pair int) float64 {
			return -2 * float64(pair) / float64(r.want.RotaryDim()-2)
		})...)
		power := b.AddAs("power", "Pow", []string{alpha, exponents})
		scaled = b.AddAs("scaled", "Mul", []string{own, power})
	}
	far := b.AddAs("far", "Cast", []string{scaled}, onnx.IntAttr("to", int64(short.Type)))
	b.AddTo(name, "Where", []string{over, far, short.Name})
}

// keyRotation is the rotation of all keys of a call, cached ones included.
type keyRotation struct {
	encoding rope.Encoding
	cos, sin string // float32 [batch or 1, 1, past + length, pairs], the gain included
}

// cachesRotated reports whether the site's keys are rotated before they are cached.
func (s Layer) cachesRotated() bool {
	return s.Measured.Layouts.Cached && s.Measured.Attention.Cache == rope.Rotated
}

// checkCache returns an error for a site whose cache cannot hold keys before rotation
// without the op.
func (s Layer) checkCache() error {
	c, view := s.Site.Key.Cache, s.Scope.View
	switch {
	case len(s.Site.Key.Scales) > 0:
		return errors.New("its keys are normed after the rotation and cached in that form")
	case c == nil:
		return errors.New("its keys are made of latent states in every call")
	case s.Scope.Where != "":
		return fmt.Errorf("its cache is in %s", s.Scope.Where)
	case view.AsWritten(c.Concat) != c.Concat || s.Measured.LengthTracked != nil:
		return fmt.Errorf("its cache is inside %s (%s), which rotates the keys before it caches them",
			ir.Label(view.AsWritten(c.Concat)), view.AsWritten(c.Concat).OpType)
	case !s.Measured.Layouts.KeyCached.Canonical():
		return errors.New("its cache does not have the form [batch, heads, tokens, channels]")
	case view.Element(c.NewRows) != onnx.Float:
		return errors.New("its cache is not float32")
	}
	return nil
}

// newKeyRotation computes cosines and sines for all keys. The position of a key is its
// index plus an offset per row: the largest difference of position and index among the
// row's new tokens that are not padding.
func newKeyRotation(b *ir.Builder, s Layer, e rope.Encoding, length string, opset int64) keyRotation {
	positions, real := newTokenPositions(b, s)
	past := b.NamedSize("cached", s.Site.Key.Past(), 2)
	dims := b.AddAs("all_dims", "Shape", []string{positions})
	newTokens := b.AddAs("fresh_dim", "Slice", []string{dims, b.Constant("rows", 1), b.Constant("rows_end", 2)})
	total := b.AddAs("all", "Add", []string{past, b.AddAs("fresh", "Squeeze", []string{newTokens})})
	places := b.AddAs("places", "Range", []string{past, total, b.Scalar("by_one", 1)})
	offset := b.AddAs("offsets", "Sub", []string{positions, places})
	if real != "" {
		offset = b.AddAs("real_offsets", "Where", []string{real, offset, b.Scalar("unreal", math.MinInt32)})
	}
	shift := ""
	if opset >= 18 {
		shift = b.AddAs("shift", "ReduceMax", []string{offset, b.Constant("row_axis", 1)})
	} else {
		shift = b.AddAs("shift", "ReduceMax", []string{offset}, onnx.IntsAttr("axes", 1))
	}
	keys := b.AddAs("keys", "Range", []string{b.Scalar("first_key", 0), total, b.Value("by_one")})
	at := b.AddAs("at", "Add", []string{keys, shift})
	floats := b.AddAs("at_float", "Cast", []string{at}, onnx.IntAttr("to", int64(onnx.Float)))
	column := b.AddAs("at_column", "Reshape", []string{floats, b.Constant("column", 0, 1, -1, 1)})
	n := len(e.Frequencies)
	list := rotaryConstant{kind: frequencyList, tensor: ir.FloatTensor("", onnx.Float, []int64{int64(n)}, e.Frequencies...), want: e,
		pairs: indices(n, func(i int) int { return i })}
	lengthDependentFrequencies(b, list, b.Value("frequencies"), length)
	angles := b.AddAs("angles", "Mul", []string{column, b.Value("frequencies")})
	b.Constants = append(b.Constants, ir.FloatTensor(b.Value("gain"), onnx.Float, []int64{}, e.EffectiveGain()))
	rotate := func(op, part string) string {
		plain := b.AddAs(part, op, []string{angles})
		return b.AddAs(part+"_gained", "Mul", []string{plain, b.Value("gain")})
	}
	return keyRotation{encoding: e, cos: rotate("Cos", "cos"), sin: rotate("Sin", "sin")}
}

// cacheUnrotated makes a site's cache hold keys before rotation, and rotates all of them
// where the model reads the cache.
func (s Layer) cacheUnrotated(m *onnx.Model, k keyRotation) {
	c, g := s.Site.Key.Cache, m.Graph
	b := &ir.Builder{Stem: "rope_rewrite/" + c.Present}
	key := lower.Ordered(b, lower.Canonical(b, s.Site.Key.Boundary, s.Measured.Layouts.Key, "key"), s.Measured.KeyOrder, "key")
	rotated := rotate(b, c.Present, k, int64(s.Measured.Attention.HeadSize))
	for _, n := range g.Nodes { // the nodes of b are not among them yet
		for i, v := range n.Inputs {
			if v == c.Present {
				n.Inputs[i] = rotated
			}
		}
	}
	for i, v := range c.Concat.Inputs {
		if v == c.NewRows {
			c.Concat.Inputs[i] = key
		}
	}
	b.Into(g, nil)
	ir.Sweep(g, map[*onnx.Node]bool{}, map[string]bool{c.NewRows: true})
}

// rotate rotates keys [batch, heads, tokens, channels].
func rotate(b *ir.Builder, value string, k keyRotation, channels int64) string {
	e := k.encoding
	n, from := int64(len(e.Frequencies)), int64(e.Offset)
	slice := func(part string, from, to, step int64) string {
		if from == to {
			return ""
		}
		return b.AddAs(part, "Slice", []string{value, b.Constant(part+"_from", from), b.Constant(part+"_to", to), b.Constant(part+"_axis", 3), b.Constant(part+"_step", step)})
	}
	before, behind := slice("before", 0, from, 1), slice("behind", from+2*n, channels, 1)
	var x, y string
	if e.Layout == rope.Interleaved {
		x, y = slice("x", from, from+2*n, 2), slice("y", from+1, from+2*n, 2)
	} else {
		x, y = slice("x", from, from+n, 1), slice("y", from+n, from+2*n, 1)
	}
	mul := func(a, c, part string) string { return b.AddAs(part, "Mul", []string{a, c}) }
	rotatedX := b.AddAs("turned_x", "Sub", []string{mul(x, k.cos, "x_cos"), mul(y, k.sin, "y_sin")})
	rotatedY := b.AddAs("turned_y", "Add", []string{mul(y, k.cos, "y_cos"), mul(x, k.sin, "x_sin")})
	parts := []string{rotatedX, rotatedY}
	if e.Layout == rope.Interleaved {
		for i, v := range parts {
			parts[i] = b.AddTo(v+"_last", "Unsqueeze", []string{v, b.Constant(fmt.Sprintf("last_%d", i), -1)})
		}
		both := b.AddAs("turned_pairs", "Concat", parts, onnx.IntAttr("axis", -1))
		parts = []string{b.AddAs("turned", "Reshape", []string{both, b.Constant("pairs_shape", 0, 0, 0, 2*n)})}
	}
	if before != "" {
		parts = append([]string{before}, parts...)
	}
	if behind != "" {
		parts = append(parts, behind)
	}
	return b.AddAs("rotated", "Concat", parts, onnx.IntAttr("axis", 3))
}
