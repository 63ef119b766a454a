package customop_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// cacheType is an element type of caches that differs from the node's.
type cacheType struct {
	name    string
	typ     onnx.DataType
	element onnx.DataType // of the node's other tensors
}

var cacheTypes = []cacheType{
	{"float16", onnx.Float16, onnx.Float}, {"bfloat16", onnx.BFloat16, onnx.Float},
	{"int8", onnx.Int8, onnx.Float}, {"int8", onnx.Int8, onnx.Float16}, {"int8", onnx.Int8, onnx.BFloat16},
}

func (c cacheType) String() string { return fmt.Sprintf("caches of %s beside %v", c.name, c.element) }

// store is rows of numbers as the cache holds them, and for int8 the scale of each row.
func (c cacheType) store(rows []float64, size int) (held, scales []float64) {
	if c.typ != onnx.Int8 {
		return map[onnx.DataType]halfType{onnx.Float16: float16, onnx.BFloat16: bfloat16}[c.typ].rounded(rows), nil
	}
	for row := range slices.Chunk(rows, size) {
		largest := float32(0)
		for _, x := range row {
			largest = max(largest, float32(math.Abs(x)))
		}
		scale := largest / 127
		scales = append(scales, float64(scale))
		for _, x := range row {
			step := 0.0
			if scale > 0 {
				step = math.RoundToEven(float64(float32(x) / scale))
			}
			held = append(held, step*float64(scale))
		}
	}
	return held, scales
}

// stored is the problem with a past as the cache holds it, and the scales of its rows.
func (c cacheType) stored(p ref.Problem) (_ ref.Problem, keys, values []float64) {
	p.PastKey, keys = c.store(p.PastKey, p.Attention.HeadSize)
	p.PastValue, values = c.store(p.PastValue, p.ValueSize)
	return p, keys, values
}

// node is the problem's node with caches of the type.
func (c cacheType) node(t tester, p ref.Problem) *onnx.Node {
	n := nodeOf(t, p)
	n.SetAttribute(onnx.StringAttr("cache_type", c.name))
	n.SetAttribute(onnx.IntAttr("spec_version", customop.SpecVersion))
	if c.typ == onnx.Int8 {
		for len(n.Inputs) < 13 {
			n.Inputs = append(n.Inputs, "")
		}
		n.Inputs = append(n.Inputs, "past_key_scale", "past_value_scale")
		n.Outputs = append(n.Outputs, "present_key_scale", "present_value_scale")
	}
	return n
}

// casts puts casts around the node, so that the test feeds and reads float32: integers of int8
// caches as they are.
func (c cacheType) casts(node *onnx.Node) []*onnx.Node {
	cast := func(from, to string, typ onnx.DataType) *onnx.Node {
		n := onnx.NewNode("Cast", []string{from}, []string{to})
		n.SetAttribute(onnx.IntAttr("to", int64(typ)))
		return n
	}
	types := map[string]onnx.DataType{"T": c.element, "C": c.typ}
	var list []*onnx.Node
	for i, name := range node.Inputs {
		if typ := types[customop.RotaryAttentionSpec.Inputs[i].Type]; name != "" && typ != onnx.Float && typ != 0 {
			node.Inputs[i] = name + " in few bits"
			list = append(list, cast(name, node.Inputs[i], typ))
		}
	}
	list = append(list, node)
	for i, name := range node.Outputs {
		if typ := types[customop.RotaryAttentionSpec.Outputs[i].Type]; name != "" && typ != onnx.Float && typ != 0 {
			node.Outputs[i] = name + " in few bits"
			list = append(list, cast(node.Outputs[i], name, onnx.Float))
		}
	}
	return list
}

// feeds are the problem's, with the past in steps of its scales.
func (c cacheType) feeds(p ref.Problem, keys, values []float64, flat bool) feeds {
	in := feedsOf(p, flat)
	if c.typ != onnx.Int8 {
		return in
	}
	for _, part := range []struct {
		name   string
		scales []float64
	}{{"past_key", keys}, {"past_value", values}} {
		x := in[part.name]
		size := int(x.dims[3])
		for i := range x.floats {
			if s := part.scales[i/size]; s > 0 {
				x.floats[i] = float32(math.RoundToEven(float64(x.floats[i]) / s))
			}
		}
		in[part.name+"_scale"] = floats(float32s(part.scales), x.dims[0], x.dims[1], x.dims[2], 1)
	}
	return in
}

// held is a present cache in numbers.
func (c cacheType) held(got map[string]tensor, name string) tensor {
	x := got[name]
	if c.typ != onnx.Int8 {
		return x
	}
	out := tensor{dims: x.dims, floats: slices.Clone(x.floats)}
	for i := range out.floats {
		out.floats[i] *= got[name+"_scale"].floats[i/int(x.dims[3])]
	}
	return out
}

func cacheTypeCases() map[string]ref.Problem {
	streamed := with(attention(4, 2, 32), func(a *rope.Attention) { a.Mask.Window, a.Mask.FirstKeys = 20, 3 })
	banded := with(attention(4, 2, 32), func(a *rope.Attention) { a.Bands = stringBands(40, 9) })
	return map[string]ref.Problem{
		"decode":              problem(attention(9, 3, 64), 3, 1, 301),
		"long decode":         problem(attention(4, 1, 64), 1, 1, 4097),
		"chunk":               problem(attention(4, 2, 64), 3, 29, 101),
		"few tokens":          problem(attention(4, 4, 80), 2, 3, 40),
		"heads of 10":         problem(attention(4, 2, 10), 2, 5, 35),
		"left padding":        leftPadded(problem(attention(4, 2, 64), 3, 1, 60), 0, 13, 60),
		"holes":               holes(problem(attention(4, 2, 64), 3, 50, 31), 5),
		"window, first keys":  leftPadded(problem(streamed, 2, 9, 90), 3, 0),
		"bands":               problem(banded, 2, 9, 131),
		"raw cache":           problem(with(banded, func(a *rope.Attention) { a.Cache = rope.Raw }), 2, 1, 131),
		"raw cache, chunk":    problem(with(banded, func(a *rope.Attention) { a.Cache = rope.Raw }), 1, 40, 131),
		"raw, interleaved":    problem(with(attention(4, 2, 32), func(a *rope.Attention) { a.Cache, a.Encoding.Layout = rope.Raw, rope.Interleaved }), 2, 5, 70),
		"documents":           packed(problem(documented(attention(4, 2, 32), rope.AnchorDocument), 2, 30, 60), 0, 17, 40),
		"slopes":              problem(sloped(4, 2, 64), 2, 5, 200),
		"softcap, sinks":      problem(with(attention(4, 2, 32), func(a *rope.Attention) { a.Softcap, a.Sinks = 5, []float64{1, 2, 3, 4} }), 2, 4, 50),
		"a value of its size": func() ref.Problem { p := problem(attention(4, 2, 64), 2, 3, 33); p.ValueSize = 40; return p }(),
	}
}

// TestCacheTypes: attention with caches of other types against the reference in float64, which has the
// past as the cache holds it and the new keys and values as they come, by the kernel and the fallback.
func TestCacheTypes(t *testing.T) {
	for name, p := range testsample.OfMap(t, cacheTypeCases(), 7) {
		for _, c := range cacheTypes {
			t.Run(name+", "+c.String(), func(t *testing.T) { c.settle(t, p) })
		}
	}
}

func (c cacheType) fill(p ref.Problem, seed uint64) (_ ref.Problem, keys, values []float64) {
	if c.element == onnx.Float {
		return c.stored(filled(p, seed))
	}
	return c.stored(map[onnx.DataType]halfType{onnx.Float16: float16, onnx.BFloat16: bfloat16}[c.element].filled(p, seed))
}

func (c cacheType) settle(t *testing.T, p ref.Problem) {
	first, keys, values := c.fill(p, 0)
	const numbers = 4096
	a := p.Attention
	batch, kv, total := int64(p.Batch), int64(a.KVHeads), int64(p.Past+p.Length)
	settled(t, 1+numbers/len(first.Query), false, func() *onnx.Node { return c.node(t, first) }, c.casts, typesOf(c.feeds(first, keys, values, false)),
		func(seed uint64, run func(feeds, func(*judge, string, map[string]tensor))) {
			p, keys, values := c.fill(p, seed)
			want, plain := solved(t, p)
			if c.element != onnx.Float {
				half := map[onnx.DataType]halfType{onnx.Float16: float16, onnx.BFloat16: bfloat16}[c.element]
				plain.Output = half.rounded(plain.Output)
			}
			run(c.feeds(p, keys, values, false), func(j *judge, way string, got map[string]tensor) {
				j.output.add(t, "output", got["output"], want.Output, plain.Output, batch, int64(a.Heads), int64(p.Length), int64(p.ValueSize))
				c.judgePresent(t, &j.presentKey, "present_key", way, got, want.PresentKey, p.Past, batch, kv, total, int64(a.HeadSize))
				c.judgePresent(t, &j.presentValue, "present_value", way, got, want.PresentValue, p.Past, batch, kv, total, int64(p.ValueSize))
			})
		})
}

// judgePresent compares a present cache: what was cached to the bit, and what is new with its number
// rounded as the cache does.
func (c cacheType) judgePresent(t tester, j *pool, name, way string, got map[string]tensor, want []float64, past int, dims ...int64) {
	rounded, scales := c.store(want, int(dims[3]))
	held := c.held(got, name)
	for i, row := range slices.Collect(slices.Chunk(held.floats, int(dims[3]))) {
		if i%int(dims[2]) < past && !slices.Equal(row, float32s(want[i*int(dims[3]):(i+1)*int(dims[3])])) {
			t.Fatalf("%s by %s: row %d of the past is changed", name, way, i)
		}
		if scales != nil && math.Abs(float64(got[name+"_scale"].floats[i])-scales[i]) > 4e-7*scales[i] {
			t.Fatalf("%s by %s: row %d has the scale %g, want %g", name, way, i, got[name+"_scale"].floats[i], scales[i])
		}
	}
	j.add(t, name, held, want, rounded, dims...)
}

// TestCacheTypesAreRefused: scales without integers, integers without scales, another type than the tensors have.
func TestCacheTypesAreRefused(t *testing.T) {
	c := cacheTypes[2]
	p, keys, values := c.fill(problem(attention(4, 4, 8), 1, 2, 3), 1)
	typed := func(change func(*onnx.Node)) error {
		n := c.node(t, p)
		change(n)
		_, err := sessionOf(t, c.casts(n), typesOf(c.feeds(p, keys, values, false)), 1)
		return err
	}
	refused(t, typed(func(n *onnx.Node) { n.Inputs = n.Inputs[:14] }), "past_value_scale is missing", "int8")
	refused(t, typed(func(n *onnx.Node) { n.Outputs = n.Outputs[:4] }), "present_key_scale is missing", "int8")
	refused(t, typed(setting(onnx.StringAttr("cache_type", "same"))), "cache_type is 'same'", "'int8'")
	refused(t, typed(setting(onnx.StringAttr("cache_type", "float8"))), "cache_type is 'float8'", "'bfloat16'")
	for name, op := range map[string]customop.RotaryAttention{
		"int8 without scales": {CacheType: "int8", PastKey: "k", PastValue: "v"},
		"scales alone":        {PastKey: "k", PastValue: "v", PastKeyScale: "s", PastValueScale: "t"},
		"float16 without":     {CacheType: "float16"},
		"another":             {CacheType: "int4", PastKey: "k", PastValue: "v"},
	} {
		op.Query, op.Key, op.Value, op.Output, op.NumHeads, op.KVNumHeads = "q", "k", "v", "o", 1, 1
		if _, err := op.Node("attention 3"); err == nil {
			t.Errorf("%s: the builder writes it", name)
		}
	}
}
