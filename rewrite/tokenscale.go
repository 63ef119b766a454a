package rewrite

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Some models multiply the whole query or key of a token and head by one number
// after it is turned: the root mean square of a norm without weights, or a
// temperature that grows with the position (both in Llama 4). Such a number
// commutes with every rotation, so the op is given query and key that are
// multiplied already. No rotation changes a norm: it is taken before instead.

// tokenScale is a product or quotient with such a number.
type tokenScale struct {
	node  *onnx.Node
	value string // one number for each token, each head or both
	of    string // what is multiplied or divided by it
	norm  bool   // the number is made of what is turned
}

// tokenScale reads n as one, nil when it is none.
func (g *graph) tokenScale(n *onnx.Node) *tokenScale {
	is := func(value, of string) bool {
		if !g.isData(of) || g.internal[value] {
			return false
		}
		c := g.constants[value]
		return (c != nil && c.Len() > 1 || c == nil && !g.fixed(value)) && g.oneChannel(value) && !g.oneChannel(of)
	}
	switch {
	case standard(n, "Mul", "Div") && is(n.Inputs[1], n.Inputs[0]):
		return &tokenScale{node: n, value: n.Inputs[1], of: n.Inputs[0]}
	case standard(n, "Mul") && is(n.Inputs[0], n.Inputs[1]):
		return &tokenScale{node: n, value: n.Inputs[0], of: n.Inputs[1]}
	}
	return nil
}

// oneChannel reports whether a value is for certain the same for all elements
// along its last dimension, of which it has several numbers otherwise.
func (g *graph) oneChannel(value string) bool {
	one := true
	some := false
	last := func(v string) bool { // the list of a shape ends with 1
		for standard(g.producer[v], "Concat") {
			v = g.producer[v].Inputs[len(g.producer[v].Inputs)-1]
		}
		list := g.integers(v)
		return len(list) > 0 && list[len(list)-1] == 1
	}
	g.upstream([]string{value}, func(v string, n *onnx.Node) []string {
		switch c := g.constants[v]; {
		case !one || v == "":
		case c != nil && c.Len() == 1:
		case c != nil:
			wide := len(c.Dims) > 1 && c.Dims[len(c.Dims)-1] == 1
			one, some = wide, some || wide
		case standard(n, "ReduceMean", "ReduceSum", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceMax", "ReduceMin"):
			one, some = g.overChannels(n), true
		case standard(n, "Unsqueeze"):
			one, some = slices.ContainsFunc(g.axes(n), lastAxis), true
		case standard(n, "Reshape") && last(n.Inputs[1]):
			some = true
		case standard(n, "Expand"):
			return n.Inputs[:1]
		case standard(n, elementwise...):
			return n.Inputs
		default:
			one = false
		}
		return nil
	})
	return one && some
}

// overChannels reports whether a reduction is over the channels alone, and keeps
// the dimension.
func (g *graph) overChannels(n *onnx.Node) bool {
	axes := g.axes(n)
	return n.Int("keepdims", 1) == 1 && len(axes) == 1 && lastAxis(axes[0])
}

// lastAxis takes a hidden state to have four dimensions, which scaleLayout makes sure of.
func lastAxis(axis int64) bool { return axis == -1 || axis == 3 }

// axes returns those of a node that has them as an attribute or as a constant.
func (g *graph) axes(n *onnx.Node) []int64 {
	if len(n.Inputs) > 1 {
		return g.integers(n.Inputs[1])
	}
	return n.Ints("axes")
}

// chain returns the nodes that make a norm out of what it is taken of, in order,
// or an error where other orders of its dimensions would change what they do.
func (g *graph) chain(s tokenScale) (nodes []*onnx.Node, err error) {
	needed := map[*onnx.Node]bool{}
	g.upstream([]string{s.value}, func(v string, n *onnx.Node) []string {
		c := g.constants[v]
		reduces := n != nil && strings.HasPrefix(n.OpType, "Reduce")
		switch {
		case v == s.of || err != nil:
		case g.internal[v]:
			err = fmt.Errorf("%q is made inside a fused op", v)
		case c != nil && c.Len() == 1:
		case n == nil || !reduces && !standard(n, elementwise...) || reduces && !g.overChannels(n):
			err = fmt.Errorf("it also depends on %q", v)
		default:
			needed[n] = true
			if reduces {
				return n.Inputs[:1]
			}
			return n.Inputs
		}
		return nil
	})
	for _, n := range g.nodes {
		if needed[n] {
			nodes = append(nodes, n)
		}
	}
	return nodes, err
}

// madeOf reports whether a value depends on one of these hidden states.
func (g *graph) madeOf(value string, states []string) (is bool) {
	g.upstream([]string{value}, func(v string, n *onnx.Node) []string {
		is = is || slices.Contains(states, v)
		if is || n == nil || !g.isData(v) || g.weightProduct(n) {
			return nil
		}
		return reads(n)
	})
	return is
}

// integers returns the values of a constant list, nil where it is none.
func (g *graph) integers(value string) []int64 {
	t := g.constants[value]
	if t == nil || t.Type != onnx.Int64 {
		return nil
	}
	list, err := t.Int64s()
	if err != nil {
		return nil
	}
	return list
}

// given returns what the way of the branch is measured from: its un-rotated
// values, and the numbers that multiply it.
func (b branch) given() []string {
	list := b.cuts()
	for _, s := range b.scales {
		list = append(list, s.value)
	}
	return list
}

// entering returns those of them that are not made of what is turned.
func (b branch) entering() []string {
	list := b.cuts()
	for _, s := range b.scales {
		if !s.norm {
			list = append(list, s.value)
		}
	}
	return list
}

// normed reports whether a norm stands behind the rotation.
func (b branch) normed() bool {
	return slices.ContainsFunc(b.scales, func(s tokenScale) bool { return s.norm })
}

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
	rng := rand.New(rand.NewPCG(17, 18))
	pt := l.table.within(point{B: 2, L: 3, P: 2})
	dims := evaluate(l.table.dims[cut], pt)
	elements, err := room(dims)
	if err != nil {
		return 0, err
	}
	x := make([]float32, elements)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	result, err := l.run(ctx, pt, map[string]engine.Tensor{cut: l.piece.state(cut, x, dims...)})
	if err != nil {
		return 0, err
	}
	y := result[out]
	values := y.Values()
	factor := 0.0
	for b := range pt.B {
		for h := range to.heads {
			for r := range pt.L {
				var before, after float64
				for c := range in.channels {
					u, v := float64(x[in.index(dims, b, h*in.heads/to.heads, r, c)]), values[to.index(y.Dims, b, h, r, c)]
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
func (s *site) behindNorms(a, before rope.Attention) (_ rope.Attention, warning string, _ error) {
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

// scaleLayout says where the numbers of a scale lie, nil where there is one for all.
func (t *shapeTable) scaleLayout(s tokenScale) (*layout, error) {
	dims := t.dims[s.value]
	if !slices.ContainsFunc(dims, func(e extent) bool { return e != constantExtent(1) }) {
		return nil, nil
	}
	ly, err := layoutOf(t.dims[s.of], 0)
	if err != nil {
		return nil, err
	}
	at := slices.Index(ly.axes, channelAxis)
	if len(ly.axes) != 4 || len(dims) != 4 || at < 0 || slices.Contains(ly.axes, unitAxis) || dims[at] != constantExtent(1) {
		return nil, fmt.Errorf("%q of shape %v multiplies a value of shape %v; a number for each token and head was expected", s.value, dims, t.dims[s.of])
	}
	return &ly, nil
}

// scaled multiplies [batch, heads, length, channels] of an element type by the
// numbers of scales, in the type that the model does it in.
func (b *builder) scaled(value string, list []placedScale, element onnx.DataType, part string) string {
	for i, s := range list {
		name := fmt.Sprintf("%s_scale_%d", part, i)
		by := s.value
		if s.layout != nil && !s.norm {
			by = b.canonical(by, *s.layout, name)
		}
		if s.element != element {
			value = b.add("Cast", []string{value}, b.value(name+"_wide"), onnx.IntAttr("to", int64(s.element)))
		}
		if s.norm {
			of := value
			if s.longer != 1 {
				of = b.add("Mul", []string{value, b.floats(name+"_longer", s.element, []float64{s.longer})}, b.value(name+"_of"))
			}
			by = b.repeated(s.chain, map[string]string{s.of: of}, s.value, name)
		}
		value = b.add(s.node.OpType, []string{value, by}, b.value(name+"_by"))
		if s.element != element {
			value = b.add("Cast", []string{value}, b.value(name+"_back"), onnx.IntAttr("to", int64(element)))
		}
	}
	return value
}

// repeated writes nodes once more with other inputs, and returns what a value of
// theirs is then called.
func (b *builder) repeated(nodes []*onnx.Node, names map[string]string, value, part string) string {
	for i, n := range nodes {
		c := n.Clone()
		for k, v := range c.Inputs {
			if names[v] != "" {
				c.Inputs[k] = names[v]
			}
		}
		for k, v := range c.Outputs {
			names[v] = b.value(fmt.Sprintf("%s_%d_%d", part, i, k))
			c.Outputs[k] = names[v]
		}
		c.Name = c.Outputs[0]
		b.nodes = append(b.nodes, c)
	}
	return names[value]
}

// placedScale is a scale as the op's nodes have it.
type placedScale struct {
	tokenScale
	layout  *layout
	element onnx.DataType
	chain   []*onnx.Node // that make a norm
	longer  float64      // what the norm is taken of, times the un-rotated vector
}

// placed completes a branch's scales, the nearest to the cut first; longer is
// what norms returned of them.
func (b branch) placed(g *graph, t *shapeTable, longer []float64) (list []placedScale, err error) {
	for i, s := range slices.Backward(b.scales) {
		ly, err := t.scaleLayout(s)
		if err != nil {
			return nil, err
		}
		p := placedScale{tokenScale: s, layout: ly, element: g.element(s.value), longer: longer[i]}
		if s.norm {
			if p.chain, err = g.chain(s); err != nil {
				return nil, err
			}
		}
		list = append(list, p)
	}
	return list, nil
}
