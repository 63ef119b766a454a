package customop_test

import (
	"math"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// halfType is a 16-bit element type by its definition.
type halfType struct {
	typ          onnx.DataType
	mantissaBits int
	minExponent  int // of normal numbers
}

var (
	float16  = halfType{onnx.Float16, 10, -14}
	bfloat16 = halfType{onnx.BFloat16, 7, -126}
)

// round gives the nearest number of the type, of two the even one.
func (h halfType) round(x float64) float64 {
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return x
	}
	_, e := math.Frexp(x)
	unit := math.Ldexp(1, max(e-1, h.minExponent)-h.mantissaBits)
	nearest := math.RoundToEven(x/unit) * unit
	if math.Abs(nearest) >= math.Ldexp(1, 2-h.minExponent) {
		return math.Inf(int(math.Copysign(1, x)))
	}
	return nearest
}

func (h halfType) rounded(values []float64) []float64 {
	list := make([]float64, len(values))
	for i, v := range values {
		list[i] = h.round(v)
	}
	return list
}

// casts wraps a node's tensors of the element type in casts from and to float32,
// so that the test feeds and reads float32 numbers that the type holds exactly.
func (h halfType) casts(node *onnx.Node) []*onnx.Node {
	cast := func(from, to string, typ onnx.DataType) *onnx.Node {
		c := onnx.NewNode("Cast", []string{from}, []string{to})
		c.SetAttribute(onnx.IntAttr("to", int64(typ)))
		return c
	}
	var list []*onnx.Node
	spec := customop.Specs[slices.IndexFunc(customop.Specs, func(s customop.Spec) bool { return s.Name == node.OpType })]
	for i, name := range node.Inputs {
		if name != "" && (spec.Inputs[i].Type == "T" || spec.Inputs[i].Type == "C") {
			list = append(list, cast(name, name+" in 16 bits", h.typ))
			node.Inputs[i] = name + " in 16 bits"
		}
	}
	list = append(list, node)
	for i, name := range node.Outputs {
		if name != "" && (spec.Outputs[i].Type == "T" || spec.Outputs[i].Type == "C") {
			list = append(list, cast(name+" in 16 bits", name, onnx.Float))
			node.Outputs[i] = name + " in 16 bits"
		}
	}
	return list
}

// filled is the problem with tensors that the type holds.
func (h halfType) filled(p ref.Problem, seed uint64) ref.Problem {
	p = filled(p, seed)
	for _, list := range []*[]float64{&p.Query, &p.Key, &p.Value, &p.PastKey, &p.PastValue} {
		*list = h.rounded(*list)
	}
	return p
}

// plain is what an implementation in 16 bits gives: everything is computed in
// float32, but new keys are rounded before the product, as the cache holds them,
// and so is the output; fast rounds the rotated queries too. It needs one band.
func (h halfType) plain(t tester, p ref.Problem, fast bool) ref.Result {
	t.Helper()
	turned := func(values []float64, heads int) []float64 {
		alone := p
		alone.Attention.Heads, alone.Attention.KVHeads = heads, heads
		alone.Past, alone.PastKey, alone.PastValue = 0, nil, nil
		alone.KeyMask, alone.Attention.Mask.Padding = nil, false
		alone.Documents, alone.Attention.Mask.Documents = nil, rope.NoDocuments
		alone.Query, alone.Key = values, values
		alone.Value, alone.ValueSize = make([]float64, p.Batch*heads*p.Length), 1
		if p.Positions == nil {
			for range p.Batch {
				for l := range p.Length {
					alone.Positions = append(alone.Positions, int64(p.Past+l))
				}
			}
		}
		result, err := ref.RunFloat32(alone)
		if err != nil {
			t.Fatal(err)
		}
		return result.PresentKey
	}
	p.Key = h.rounded(turned(p.Key, p.Attention.KVHeads))
	p.Query = turned(p.Query, p.Attention.Heads)
	if fast {
		p.Query = h.rounded(p.Query)
	}
	p.Attention.Encoding = rope.Encoding{}
	result, err := ref.RunFloat32(p)
	if err != nil {
		t.Fatal(err)
	}
	result.Output = h.rounded(result.Output)
	return result
}

func TestHalfPrecisionAgainstReference(t *testing.T) {
	const last = 131071
	llama := attention(4, 2, 64)
	for name, p := range testsample.OfMap(t, map[string]ref.Problem{
		"one token":      problem(llama, 1, 1, 0),
		"prefill MHA":    problem(attention(4, 4, 64), 1, 37, 0),
		"prefill GQA":    problem(attention(9, 3, 64), 3, 131, 0),
		"decode":         problem(attention(9, 3, 64), 3, 1, 301),
		"long decode":    problem(attention(4, 1, 64), 1, 1, 4097),
		"chunk":          problem(llama, 3, 29, 101),
		"no rotation":    problem(with(llama, func(a *rope.Attention) { a.Encoding.Frequencies = nil }), 1, 17, 5),
		"both ways":      problem(with(llama, func(a *rope.Attention) { a.Mask.Causal = false }), 3, 45, 0),
		"scale and gain": problem(with(llama, func(a *rope.Attention) { a.Scale, a.Encoding.Gain = 0.07, 1.25 }), 1, 33, 12),
		"negative scale": problem(with(llama, func(a *rope.Attention) { a.Scale = -0.07 }), 1, 33, 12),
		"interleaved":    problem(with(llama, func(a *rope.Attention) { a.Encoding.Layout = rope.Interleaved }), 3, 33, 12),
		"far":            from(problem(llama, 3, 65, 0), last-64, 40000, 0),
		"far decode":     from(problem(llama, 1, 1, 33), last),
		"left padding":   leftPadded(problem(llama, 3, 40, 0), 0, 13, 39),
		"holes":          holes(problem(llama, 3, 50, 31), 5),
		"window":         problem(with(llama, func(a *rope.Attention) { a.Mask.Window = 7 }), 3, 50, 20),
		"anchor and window": packed(leftPadded(problem(with(llama, func(a *rope.Attention) {
			a.Mask.Window, a.Mask.FirstKeys, a.Mask.Documents = 12, 1, rope.AnchorDocument
		}), 3, 50, 20), 0, 13, 60), 0, 1, 30),
		"gain and temperature": problem(with(llama, func(a *rope.Attention) {
			a.Encoding.Gain, a.Temperature = 1.25, rope.Temperature{Slope: 0.25}
		}), 3, 33, 30),
		"heads of 10":       problem(attention(4, 2, 10), 3, 35, 6),
		"heads of 10, once": problem(attention(4, 2, 10), 3, 1, 35),
		"heads of 128":      problem(attention(4, 2, 128), 1, 35, 6),
	}, 7) {
		t.Run(name, func(t *testing.T) {
			for _, h := range []halfType{float16, bfloat16} {
				for _, fast := range []bool{false, true} {
					h.settle(t, p, fast)
				}
			}
		})
	}
}

func (h halfType) settle(t *testing.T, p ref.Problem, fast bool) {
	t.Helper()
	first := h.filled(p, 0)
	node := func() *onnx.Node {
		n := nodeOf(t, first)
		if fast {
			n.SetAttribute(onnx.StringAttr("precision", "fast"))
			n.SetAttribute(onnx.IntAttr("spec_version", customop.SpecVersion))
		}
		return n
	}
	a := p.Attention
	batch, kv, total := int64(p.Batch), int64(a.KVHeads), int64(p.Past+p.Length)
	// flat and fast are independent
	settled(t, 1+1024/len(first.Query), fast, node, h.casts, typesOf(feedsOf(first, fast)), func(seed uint64, run func(feeds, func(*judge, string, map[string]tensor))) {
		p := h.filled(p, seed)
		want, err := ref.Run(p)
		if err != nil {
			t.Fatal(err)
		}
		plain := h.plain(t, p, fast)
		run(feedsOf(p, fast), func(j *judge, _ string, got map[string]tensor) {
			output := got["output"]
			if fast {
				output = splitHeads(output, int64(a.Heads))
			}
			j.output.add(t, "output", output, want.Output, plain.Output, batch, int64(a.Heads), int64(p.Length), int64(p.ValueSize))
			j.presentKey.add(t, "present_key", got["present_key"], want.PresentKey, plain.PresentKey, batch, kv, total, int64(a.HeadSize))
			j.presentValue.add(t, "present_value", got["present_value"], want.PresentValue, plain.PresentValue, batch, kv, total, int64(p.ValueSize))
		})
	})
	if t.Failed() {
		t.Logf("type %d, fast %v", h.typ, fast)
	}
}

// exact keeps what fast rounds: its error is that of the output's own rounding.
func TestExactIsMoreExactThanFast(t *testing.T) {
	a := attention(4, 2, 64)
	a.Scale = 1 // large scores, where a rounded key shows
	p := bfloat16.filled(problem(a, 1, 200, 0), 1)
	want, err := ref.Run(p)
	if err != nil {
		t.Fatal(err)
	}
	rms := func(precision string) float64 {
		node := nodeOf(t, p)
		node.SetAttribute(onnx.StringAttr("precision", precision))
		node.SetAttribute(onnx.IntAttr("spec_version", 2))
		in := feedsOf(p, false)
		s, err := sessionOf(t, bfloat16.casts(node), typesOf(in), 2)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.run(in)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for i, w := range want.Output {
			sum += (w - float64(got["output"].floats[i])) * (w - float64(got["output"].floats[i]))
		}
		return math.Sqrt(sum / float64(len(want.Output)))
	}
	exact, fast := rms("exact"), rms("fast")
	t.Logf("root mean square error: exact %.3g, fast %.3g", exact, fast)
	if exact*3 > fast {
		t.Errorf("exact is off by %.3g, fast by %.3g: exact should be far better", exact, fast)
	}
}

// All T tensors of a node have one type.
func TestMixedTypesAreRefused(t *testing.T) {
	p := filled(problem(attention(4, 2, 8), 1, 3, 2), 1)
	in := feedsOf(p, false)
	for _, name := range []string{"key", "value", "past_key", "past_value"} {
		node := nodeOf(t, p)
		cast := onnx.NewNode("Cast", []string{name}, []string{name + " in 16 bits"})
		cast.SetAttribute(onnx.IntAttr("to", int64(onnx.Float16)))
		node.Inputs[slices.Index(node.Inputs, name)] = name + " in 16 bits"
		if _, err := sessionOf(t, []*onnx.Node{cast, node}, typesOf(in), 1); err == nil {
			t.Errorf("a node with %s alone in float16 was accepted", name)
		}
	}
}
