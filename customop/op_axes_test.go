package customop_test

import (
	"math/rand/v2"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// sections gives pairs their axes in runs, as Qwen2-VL does.
func sections(sizes ...int) (axes []int) {
	for axis, n := range sizes {
		for range n {
			axes = append(axes, axis)
		}
	}
	return axes
}

// picture gives every row positions on three axes: some words, a picture of rows and
// columns at one time, and words behind it, from the largest position on.
func picture(p ref.Problem, start int64) ref.Problem {
	const words, width = 3, 4
	axes := [3][]int64{}
	for b := range p.Batch {
		first := start + int64(5*b)
		for l := range p.Length {
			at := [3]int64{first + int64(l), first + int64(l), first + int64(l)}
			if i := int64(l - words); i >= 0 && i < width*width {
				at = [3]int64{first + words, first + words + i/width, first + words + i%width}
			} else if i >= width*width {
				next := first + words + width + i - width*width
				at = [3]int64{next, next, next}
			}
			for axis := range axes {
				axes[axis] = append(axes[axis], at[axis])
			}
		}
	}
	p.Positions = append(append(axes[0], axes[1]...), axes[2]...)
	return p
}

// scattered gives every token a random position on each axis.
func anywhere(p ref.Problem, axes int, last int64) ref.Problem {
	r := rand.New(rand.NewPCG(5, 6))
	for range axes * p.Batch * p.Length {
		p.Positions = append(p.Positions, r.Int64N(last+1))
	}
	return p
}

func factors(n int, seed uint64) []float64 {
	r := rand.New(rand.NewPCG(seed, 3))
	list := make([]float64, n)
	for i := range list {
		list[i] = float64(float32(0.5 + r.Float64()))
	}
	list[0] = -list[0]
	return list
}

func TestPositionAxesAndFactors(t *testing.T) {
	qwen := with(attention(4, 2, 64), func(a *rope.Attention) { a.Encoding.Axes = sections(8, 12, 12) })
	woven := with(attention(4, 2, 64), func(a *rope.Attention) {
		a.Encoding.Axes = sections(32)
		for i := range 24 {
			a.Encoding.Axes[i] = i % 3
		}
	})
	normed := with(attention(4, 2, 64), func(a *rope.Attention) { a.QueryFactors, a.KeyFactors = factors(64, 1), factors(64, 2) })
	for name, p := range map[string]ref.Problem{
		"picture":             picture(problem(qwen, 3, 33, 0), 0),
		"picture later":       picture(problem(woven, 2, 29, 40), 90),
		"scattered":           anywhere(problem(woven, 3, 41, 7), 3, 400),
		"far":                 anywhere(problem(qwen, 2, 41, 0), 3, 131071),
		"more axes than read": anywhere(problem(qwen, 1, 11, 3), 4, 1000),
		"decode":              anywhere(problem(qwen, 2, 1, 60), 3, 500),
		"exact angles":        anywhere(problem(with(qwen, func(a *rope.Attention) { a.Encoding.ExactAngles = true }), 2, 21, 0), 3, 131071),
		"interleaved pairs":   anywhere(problem(with(qwen, func(a *rope.Attention) { a.Encoding.Layout = rope.Interleaved }), 2, 21, 4), 3, 500),
		"some channels": anywhere(problem(with(attention(4, 2, 64), func(a *rope.Attention) {
			a.Encoding = rope.Encoding{Frequencies: frequencies(16, 10000), Offset: 24, Axes: sections(2, 3, 3)}
		}), 2, 21, 4), 3, 500),
		"dynamic NTK": anywhere(problem(with(qwen, func(a *rope.Attention) {
			a.Encoding.LengthDependent = rope.LengthDependent{Trained: 300, NTK: 4}
		}), 2, 9, 0), 3, 500),
		"factors":                    problem(normed, 2, 33, 12),
		"factors, no rotation":       problem(with(normed, func(a *rope.Attention) { a.Encoding.Frequencies = nil }), 2, 9, 4),
		"factors of queries":         problem(with(normed, func(a *rope.Attention) { a.KeyFactors = nil }), 2, 33, 0),
		"factors of keys":            problem(with(normed, func(a *rope.Attention) { a.QueryFactors = nil }), 1, 1, 40),
		"factors, raw cache":         problem(with(normed, func(a *rope.Attention) { a.Cache = rope.Raw }), 2, 33, 12),
		"factors of keys, raw cache": problem(with(normed, func(a *rope.Attention) { a.Cache, a.QueryFactors = rope.Raw, nil }), 2, 1, 12),
		"factors and bands":          problem(with(normed, func(a *rope.Attention) { a.Bands = stringBands(20, 9) }), 2, 33, 12),
		"factors and axes":           anywhere(problem(with(normed, func(a *rope.Attention) { a.Encoding.Axes = qwen.Encoding.Axes }), 2, 33, 12), 3, 400),
		"factors, a head of odd size": problem(with(attention(2, 1, 13), func(a *rope.Attention) {
			a.Encoding.Frequencies, a.QueryFactors, a.KeyFactors = frequencies(8, 10000), factors(13, 4), factors(13, 5)
		}), 1, 7, 3),
	} {
		t.Run(name, func(t *testing.T) {
			settle(t, p, false)
			if p.Past == 0 {
				settle(t, p, true)
			}
		})
	}
}

// One position per token on all axes is the attention without axes, to the last bit.
func TestEqualAxes(t *testing.T) {
	plain := filled(from(problem(attention(4, 2, 64), 2, 19, 6), 40, 7), 3)
	several := plain
	several.Attention.Encoding.Axes = sections(8, 12, 12)
	several.Positions = append(append(append([]int64(nil), plain.Positions...), plain.Positions...), plain.Positions...)
	want, got := outputsOf(t, plain, false), outputsOf(t, several, false)
	for name, x := range want {
		for i, v := range x.floats {
			if got[name].floats[i] != v {
				t.Fatalf("%s[%d] is %g with three equal positions and %g with one", name, i, got[name].floats[i], v)
			}
		}
	}
}

// What asks for one position, and factors that fit no head, is refused when the session is
// created, and axes and positions that are not there when it runs.
func TestRefusesAxesAndFactors(t *testing.T) {
	axes := func(list ...int64) func(*onnx.Node) {
		return func(n *onnx.Node) {
			reading(5, "position_ids")(n)
			n.SetAttribute(onnx.IntAttr("spec_version", 6))
			n.SetAttribute(onnx.IntsAttr("position_axes", list...))
		}
	}
	all := make([]int64, 4)
	both := func(more ...func(*onnx.Node)) func(*onnx.Node) {
		return func(n *onnx.Node) {
			axes(all...)(n)
			for _, m := range more {
				m(n)
			}
		}
	}
	refuseNodes(t, map[string]damage{
		"axes of fewer pairs":  {axes(0, 1), []string{"position_axes", "2", "frequencies", "4"}},
		"negative axis":        {axes(append([]int64{-1}, all[1:]...)...), []string{"position_axes", "-1"}},
		"axes, no positions":   {setting(onnx.IntsAttr("position_axes", all...)), []string{"position_axes", "position_ids"}},
		"axes and bands":       {both(setting(onnx.IntsAttr("band_starts", 0, 9))), []string{"position_axes", "bands"}},
		"axes and an offset":   {both(setting(onnx.FloatsAttr("band_query_offsets", 1))), []string{"position_axes", "bands"}},
		"axes, raw":            {both(setting(onnx.StringAttr("cache", "raw"))), []string{"position_axes", "raw"}},
		"axes and temperature": {both(setting(onnx.FloatsAttr("temperature", 1, 2, 3, 4))), []string{"position_axes", "temperature"}},
		"factors of two sizes": {func(n *onnx.Node) {
			n.SetAttribute(onnx.FloatsAttr("query_factors", 1, 2))
			n.SetAttribute(onnx.FloatsAttr("key_factors", 1))
		}, []string{"query_factors", "2", "key_factors", "1"}},
	})
	p := filled(anywhere(problem(with(attention(4, 2, 64), func(a *rope.Attention) { a.Encoding.Axes = sections(8, 12, 12) }), 2, 3, 0), 3, 9), 1)
	for name, c := range map[string]struct {
		change func(*ref.Problem, feeds)
		want   []string
	}{
		"two axes":     {func(p *ref.Problem, in feeds) { in["position_ids"] = integers(p.Positions[:12], 2, 2, 3) }, []string{"position_ids [2, 2, 3]", "axis 2"}},
		"one position": {func(p *ref.Problem, in feeds) { in["position_ids"] = integers(p.Positions[:6], 2, 3) }, []string{"position_ids [2, 3]", "[3, 2, 3]", "axes"}},
		"negative": {func(p *ref.Problem, in feeds) {
			in["position_ids"].integers[7] = -5
		}, []string{"-5", "row 0", "place 1", "axis 1", "between 0 and"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := feedsOf(p, false)
			s, err := newSession(t, nodeOf(t, p), typesOf(in), 2)
			if err != nil {
				t.Fatal(err)
			}
			c.change(&p, in)
			_, err = s.run(in)
			refused(t, err, c.want...)
		})
	}
	odd := filled(problem(with(attention(4, 2, 64), func(a *rope.Attention) { a.QueryFactors = factors(64, 1) }), 1, 3, 0), 1)
	node := nodeOf(t, odd)
	node.SetAttribute(onnx.FloatsAttr("query_factors", 1, 2))
	in := feedsOf(odd, false)
	s, err := newSession(t, node, typesOf(in), 2)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.run(in)
	refused(t, err, "query_factors", "2", "head size 64")
}

// A node needs the newest specification only for what that brought.
func TestOldestSpecification(t *testing.T) {
	version := func(a rope.Attention, p func(ref.Problem) ref.Problem) int64 {
		return nodeOf(t, p(problem(a, 1, 2, 0))).Int("spec_version", 0)
	}
	plain := func(p ref.Problem) ref.Problem { return p }
	for _, c := range []struct {
		name string
		got  int64
		want int64
	}{
		{"plain", version(attention(4, 2, 64), plain), 2}, // for log_sum_exp
		{"factors", version(with(attention(4, 2, 64), func(a *rope.Attention) { a.KeyFactors = factors(64, 1) }), plain), 6},
		{"axes", version(with(attention(4, 2, 64), func(a *rope.Attention) { a.Encoding.Axes = sections(8, 12, 12) }), func(p ref.Problem) ref.Problem { return anywhere(p, 3, 9) }), 6},
	} {
		if c.got != c.want {
			t.Errorf("a node with %s asks for specification %d, want %d", c.name, c.got, c.want)
		}
	}
}
