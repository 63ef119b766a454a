package rewrite

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Without the op, frequencies that depend on how far a call reaches are computed
// by plain nodes. A cache then holds keys as they come, and all of them are
// turned in every call, as the op does it.

// writeReach makes such frequencies of the constants that are to have them.
func (t *retabler) writeReach(sites []retabled) error {
	var length string // shared by all of them
	for _, name := range slices.Sorted(maps.Keys(t.constants)) {
		r := t.constants[name]
		if r.want.Reach.Trained == 0 {
			continue
		}
		b := &builder{stem: "rope_rewrite/" + name}
		if length == "" {
			length = b.reached(r.site)
		}
		r.remove(name, t.model)
		b.byReach(r, name, length)
		b.into(r.holder, nil)
	}
	var turns []keyTurn
	for _, s := range sites {
		if s.want.Encoding.Reach.Trained == 0 || !s.lifted.layouts.cached {
			continue
		}
		want, err := s.rescaled()
		if err == nil {
			err = s.plainCache()
		}
		if err != nil {
			return &layerError{s.layer, err}
		}
		i := slices.IndexFunc(turns, func(k keyTurn) bool { return reflect.DeepEqual(k.encoding, want) })
		if i < 0 {
			b := &builder{stem: fmt.Sprintf("rope_rewrite/keys_%d", len(turns))}
			turns = append(turns, b.keyTurn(s, want, length, t.model.Opset("")))
			b.into(t.model.Graph, nil)
			i = len(turns) - 1
		}
		s.keepRaw(t.model, turns[i])
	}
	return nil
}

// tokens makes the positions of the new tokens, int64 [batch or 1, length], and
// which of them are real, bool [batch, length] or empty where all are.
func (b *builder) tokens(s retabled) (positions, real string) {
	l := s.lifted
	if l.position != nil {
		positions = b.int64s(l.position)
	} else {
		length := b.size(s.site.query.cut, slices.Index(l.layouts.query.axes, rowAxis), "length")
		start := b.scalar("start", 0)
		if l.layouts.cached {
			start = b.size(s.site.key.past(), 2, "past")
			length = b.add("Add", []string{length, start}, b.value("total"))
		}
		row := b.add("Range", []string{start, length, b.scalar("step", 1)}, b.value("row"))
		positions = b.add("Reshape", []string{row, b.constant("row_shape", 1, -1)}, b.value("positions"))
	}
	if l.mask != nil {
		dims := b.add("Shape", []string{positions}, b.value("positions_dims"))
		length := b.add("Slice", []string{dims, b.constant("second", 1), b.constant("third", 2)}, b.value("new"))
		from := b.add("Neg", []string{length}, b.value("from"))
		own := b.add("Slice", []string{l.mask.Name, from, b.constant("end", math.MaxInt64), b.value("second")}, b.value("own_mask"))
		real = b.add("Cast", []string{own}, b.value("real"), onnx.IntAttr("to", int64(onnx.Bool)))
	}
	return positions, real
}

// reached makes the largest position of a real token and one more, as a double.
func (b *builder) reached(s retabled) string {
	positions, real := b.tokens(s)
	next := b.add("Add", []string{positions, b.constant("one", 1)}, b.value("next"))
	if real != "" {
		count := b.add("Cast", []string{real}, b.value("real_int64"), onnx.IntAttr("to", int64(onnx.Int64)))
		next = b.add("Mul", []string{next, count}, b.value("next_real"))
	}
	last := b.add("ReduceMax", []string{next}, b.value("last"), onnx.IntAttr("keepdims", 0))
	return b.add("Cast", []string{last}, b.value("reach"), onnx.IntAttr("to", int64(onnx.Double)))
}

// byReach makes the frequencies of a call that reaches a length, under a name
// and in the constant's form. (rope.Encoding.At)
func (b *builder) byReach(r rotary, name, length string) {
	reach, dims := r.want.Reach, r.tensor.Dims
	double := func(part string, dims []int64, values ...float64) string {
		b.constants = append(b.constants, floatTensor(b.value(part), onnx.Double, dims, values...))
		return b.value(part)
	}
	ofPairs := func(f func(pair int) float64) (list []float64) {
		for _, pair := range r.pairs {
			list = append(list, f(pair))
		}
		return list
	}
	short := r.list(b.value("short"), r.want.Frequencies)
	b.constants = append(b.constants, short)
	over := b.add("Greater", []string{length, double("trained", []int64{}, float64(reach.Trained))}, b.value("over"))
	if reach.Long != nil {
		long := r.list(b.value("long"), reach.Long)
		b.constants = append(b.constants, long)
		b.add("Where", []string{over, long.Name, short.Name}, name)
		return
	}
	own := double("own", dims, ofPairs(func(pair int) float64 { return r.want.Frequencies[pair] })...)
	stretch := b.add("Div", []string{length, b.value("trained")}, b.value("stretch"))
	var scaled string
	if reach.Linear {
		scaled = b.add("Div", []string{own, stretch}, b.value("scaled"))
	} else {
		raised := b.add("Mul", []string{stretch, double("factor", []int64{}, reach.NTK)}, b.value("raised"))
		alpha := b.add("Sub", []string{raised, double("less", []int64{}, reach.NTK-1)}, b.value("alpha"))
		power := b.add("Pow", []string{alpha, double("exponents", dims, ofPairs(func(pair int) float64 {
			return -2 * float64(pair) / float64(r.want.RotaryDim()-2)
		})...)}, b.value("power"))
		scaled = b.add("Mul", []string{own, power}, b.value("scaled"))
	}
	far := b.add("Cast", []string{scaled}, b.value("far"), onnx.IntAttr("to", int64(short.Type)))
	b.add("Where", []string{over, far, short.Name}, name)
}

// keyTurn is what all keys of a row, cached ones included, are turned by.
type keyTurn struct {
	encoding rope.Encoding
	cos, sin string // float32 [batch or 1, 1, past + length, pairs], the gain included
}

// plainCache refuses a cache that plain nodes cannot keep un-rotated.
func (r retabled) plainCache() error {
	c, view := r.site.key.cache, r.scope.view
	switch {
	case len(r.site.key.scales) > 0:
		return errors.New("its keys are normed behind the rotation, so length=run needs the op; leave --target onnx out, or length=run")
	case c == nil:
		return errors.New("its keys are made of latent states in every call, so length=run needs the op; leave --target onnx out, or length=run")
	case r.scope.where != "":
		return fmt.Errorf("it stands in %s, where length=run needs the op; leave --target onnx out, or length=run", r.scope.where)
	case view.asWritten(c.concat) != c.concat || r.lifted.counted != nil:
		return fmt.Errorf("its cache is inside %s (%s), which turns the keys before it keeps them: length=run needs the op; leave --target onnx out, or length=run",
			label(view.asWritten(c.concat)), view.asWritten(c.concat).OpType)
	case !r.lifted.layouts.keyStored.canonical():
		return errors.New("its cache does not have the form [batch, heads, tokens, channels], so length=run needs the op; leave --target onnx out, or length=run")
	case view.element(c.fresh) != onnx.Float:
		return errors.New("its cache is not float32, so length=run needs the op; leave --target onnx out, or length=run")
	}
	return nil
}

// keyTurn makes cosines and sines for all keys: a key stands at its index and
// what the row's real new tokens stand from theirs.
func (b *builder) keyTurn(s retabled, e rope.Encoding, length string, opset int64) keyTurn {
	positions, real := b.tokens(s)
	past := b.size(s.site.key.past(), 2, "cached")
	dims := b.add("Shape", []string{positions}, b.value("all_dims"))
	fresh := b.add("Slice", []string{dims, b.constant("rows", 1), b.constant("rows_end", 2)}, b.value("fresh_dim"))
	total := b.add("Add", []string{past, b.add("Squeeze", []string{fresh}, b.value("fresh"))}, b.value("all"))
	places := b.add("Range", []string{past, total, b.scalar("by_one", 1)}, b.value("places"))
	offset := b.add("Sub", []string{positions, places}, b.value("offsets"))
	if real != "" {
		offset = b.add("Where", []string{real, offset, b.scalar("unreal", math.MinInt32)}, b.value("real_offsets"))
	}
	shift := ""
	if opset >= 18 {
		shift = b.add("ReduceMax", []string{offset, b.constant("row_axis", 1)}, b.value("shift"))
	} else {
		shift = b.add("ReduceMax", []string{offset}, b.value("shift"), onnx.IntsAttr("axes", 1))
	}
	keys := b.add("Range", []string{b.scalar("first_key", 0), total, b.value("by_one")}, b.value("keys"))
	at := b.add("Add", []string{keys, shift}, b.value("at"))
	floats := b.add("Cast", []string{at}, b.value("at_float"), onnx.IntAttr("to", int64(onnx.Float)))
	column := b.add("Reshape", []string{floats, b.constant("column", 0, 1, -1, 1)}, b.value("at_column"))
	n := len(e.Frequencies)
	list := rotary{kind: frequencyList, tensor: floatTensor("", onnx.Float, []int64{int64(n)}, e.Frequencies...), want: e,
		pairs: indices(n, func(i int) int { return i })}
	b.byReach(list, b.value("frequencies"), length)
	angles := b.add("Mul", []string{column, b.value("frequencies")}, b.value("angles"))
	b.constants = append(b.constants, floatTensor(b.value("gain"), onnx.Float, []int64{}, e.EffectiveGain()))
	turn := func(op, part string) string {
		plain := b.add(op, []string{angles}, b.value(part))
		return b.add("Mul", []string{plain, b.value("gain")}, b.value(part+"_gained"))
	}
	return keyTurn{encoding: e, cos: turn("Cos", "cos"), sin: turn("Sin", "sin")}
}

// keepRaw lets a site's cache hold keys as they come, and turns all of them
// where the site reads them.
func (r retabled) keepRaw(m *onnx.Model, k keyTurn) {
	c, g := r.site.key.cache, m.Graph
	b := &builder{stem: "rope_rewrite/" + c.present}
	key := b.ordered(b.canonical(r.site.key.cut, r.lifted.layouts.key, "key"), r.lifted.keyOrder, "key")
	turned := b.turn(c.present, k, int64(r.lifted.attention.HeadSize))
	for _, n := range g.Nodes { // b's own are not among them yet
		for i, v := range n.Inputs {
			if v == c.present {
				n.Inputs[i] = turned
			}
		}
	}
	for i, v := range c.concat.Inputs {
		if v == c.fresh {
			c.concat.Inputs[i] = key
		}
	}
	b.into(g, nil)
	sweep(g, map[*onnx.Node]bool{}, map[string]bool{c.fresh: true})
}

// turn rotates [batch, heads, tokens, channels].
func (b *builder) turn(value string, k keyTurn, channels int64) string {
	e := k.encoding
	n, from := int64(len(e.Frequencies)), int64(e.Offset)
	cut := func(part string, from, to, step int64) string {
		if from == to {
			return ""
		}
		return b.add("Slice", []string{value, b.constant(part+"_from", from), b.constant(part+"_to", to), b.constant(part+"_axis", 3), b.constant(part+"_step", step)}, b.value(part))
	}
	before, behind := cut("before", 0, from, 1), cut("behind", from+2*n, channels, 1)
	var x, y string
	if e.Layout == rope.Interleaved {
		x, y = cut("x", from, from+2*n, 2), cut("y", from+1, from+2*n, 2)
	} else {
		x, y = cut("x", from, from+n, 1), cut("y", from+n, from+2*n, 1)
	}
	mul := func(a, c, part string) string { return b.add("Mul", []string{a, c}, b.value(part)) }
	turnedX := b.add("Sub", []string{mul(x, k.cos, "x_cos"), mul(y, k.sin, "y_sin")}, b.value("turned_x"))
	turnedY := b.add("Add", []string{mul(y, k.cos, "y_cos"), mul(x, k.sin, "x_sin")}, b.value("turned_y"))
	parts := []string{turnedX, turnedY}
	if e.Layout == rope.Interleaved {
		for i, v := range parts {
			parts[i] = b.add("Unsqueeze", []string{v, b.constant(fmt.Sprintf("last_%d", i), -1)}, v+"_last")
		}
		both := b.add("Concat", parts, b.value("turned_pairs"), onnx.IntAttr("axis", -1))
		parts = []string{b.add("Reshape", []string{both, b.constant("pairs_shape", 0, 0, 0, 2*n)}, b.value("turned"))}
	}
	if before != "" {
		parts = append([]string{before}, parts...)
	}
	if behind != "" {
		parts = append(parts, behind)
	}
	return b.add("Concat", parts, b.value("rotated"), onnx.IntAttr("axis", 3))
}
