package site

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Some models multiply the whole query or key of a token and head by one number after
// its rotation: by the inverse root mean square of a norm, or by a temperature that grows
// with the position (Llama 4 has both). Such a factor commutes with every rotation. So it
// is applied before the op. A rotation does not change a norm, so the norm is computed
// before it too. The weights of a norm do not commute; they are measured with the rotation
// (rotation/factors.go) and stay behind it.

// TokenScale is such a factor per token: the Mul or Div with it.
type TokenScale struct {
	Node  *onnx.Node
	Value string // the factor: one number for each token, each head or both
	Of    string // what is multiplied or divided by it
	Norm  bool   // the factor is computed from the rotated value itself
}

// ScaleLayout returns the layout of a factor per token, which is that of what it
// multiplies; nil where it is a single number. It returns an error where the factor's
// shape does not go with that of what it multiplies.
func ScaleLayout(t *eval.ShapeTable, s TokenScale) (*dim.Layout, error) {
	dims := t.Dims[s.Value]
	if !slices.ContainsFunc(dims, func(e dim.Extent) bool { return e != dim.ConstantExtent(1) }) {
		return nil, nil
	}
	ly, err := dim.LayoutOf(t.Dims[s.Of], 0)
	if err != nil {
		return nil, err
	}
	at := slices.Index(ly.Axes, dim.ChannelAxis)
	if len(ly.Axes) != 4 || len(dims) != 4 || at < 0 || slices.Contains(ly.Axes, dim.UnitAxis) || dims[at] != dim.ConstantExtent(1) {
		return nil, fmt.Errorf("%q of shape %v multiplies a value of shape %v; expected a number for each token and head", short.Name(s.Value), dims, t.Dims[s.Of])
	}
	return &ly, nil
}

// tokenScale returns the factor per token that n multiplies by, nil where n does not.
func tokenScale(g *graph.Graph, n *onnx.Node) *TokenScale {
	is := func(value, of string) bool {
		if !g.IsData(of) {
			return false
		}
		c := g.Constants[value]
		return (c != nil && c.Len() > 1 || c == nil && !positionInvariant(g, value)) && oneChannel(g, value) && !oneChannel(g, of)
	}
	switch {
	case ir.Standard(n, "Mul", "Div") && is(n.Inputs[1], n.Inputs[0]):
		return &TokenScale{Node: n, Value: n.Inputs[1], Of: n.Inputs[0]}
	case ir.Standard(n, "Mul") && is(n.Inputs[0], n.Inputs[1]):
		return &TokenScale{Node: n, Value: n.Inputs[0], Of: n.Inputs[1]}
	}
	return nil
}

// oneChannel reports whether a value is known to be the same for all channels, the last
// dimension, and to have several numbers along other dimensions.
func oneChannel(g *graph.Graph, value string) bool {
	one := true
	some := false
	last := func(v string) bool { // reports whether a shape ends with 1
		for ir.Standard(g.Producer[v], "Concat") {
			v = g.Producer[v].Inputs[len(g.Producer[v].Inputs)-1]
		}
		list := g.Integers(v)
		return len(list) > 0 && list[len(list)-1] == 1
	}
	g.Upstream([]string{value}, func(v string, n *onnx.Node) []string {
		switch c := g.Constants[v]; {
		case !one || v == "":
		case c != nil && c.Len() == 1:
		case c != nil:
			wide := len(c.Dims) > 1 && c.Dims[len(c.Dims)-1] == 1
			one, some = wide, some || wide
		case ir.Standard(n, "ReduceMean", "ReduceSum", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceMax", "ReduceMin"):
			one, some = g.OverLast(n, hiddenRank), true
		case ir.Standard(n, "Unsqueeze"):
			rank := hiddenRank
			if r, known := g.Rank(v); known { // a number for each token alone may have two dimensions
				rank = r
			}
			one, some = slices.ContainsFunc(g.Axes(n), func(axis int64) bool { return ir.LastAxis(axis, rank) }), true
		case ir.Standard(n, "Reshape") && last(n.Inputs[1]):
			some = true
		case ir.Standard(n, "Expand"):
			return n.Inputs[:1]
		case ir.Standard(n, eval.Elementwise...):
			return n.Inputs
		default:
			one = false
		}
		return nil
	})
	return one && some
}

// hiddenRank is the assumed number of dimensions of hidden states; ScaleLayout checks it.
const hiddenRank = 4

// Chain returns the nodes that compute a norm from s.Of, in topological order. It
// returns an error where the norm also depends on something else, or where the nodes
// would compute something else on [batch, heads, tokens, channels].
func Chain(g *graph.Graph, s TokenScale) (nodes []*onnx.Node, err error) {
	needed := map[*onnx.Node]bool{}
	g.Upstream([]string{s.Value}, func(v string, n *onnx.Node) []string {
		c := g.Constants[v]
		reduces := n != nil && strings.HasPrefix(n.OpType, "Reduce")
		switch {
		case v == s.Of || err != nil:
		case c != nil && c.Len() == 1:
		case n == nil || !reduces && !ir.Standard(n, eval.Elementwise...) || reduces && !g.OverLast(n, hiddenRank):
			err = fmt.Errorf("it also depends on %q", short.Name(v))
		default:
			needed[n] = true
			if reduces {
				return n.Inputs[:1]
			}
			return n.Inputs
		}
		return nil
	})
	for _, n := range g.Nodes {
		if needed[n] {
			nodes = append(nodes, n)
		}
	}
	return nodes, err
}

// findNorms says which factors of query and key are norms.
func (s *Site) findNorms() {
	states := s.States()
	for _, list := range [][]TokenScale{s.Query.Scales, s.Key.Scales} {
		for i, scale := range list {
			list[i].Norm = dependsOn(s.Graph, scale.Value, states)
		}
	}
}

// dependsOn reports whether a value depends on one of the given hidden states.
func dependsOn(g *graph.Graph, value string, states []string) (is bool) {
	g.Upstream([]string{value}, func(v string, n *onnx.Node) []string {
		is = is || slices.Contains(states, v)
		if is || n == nil || !g.IsData(v) || g.WeightProduct(n) {
			return nil
		}
		return ir.Reads(n)
	})
	return is
}

// MeasuredFrom returns the values that are fed when the branch is measured: its
// boundaries and its factors per token.
func (b Branch) MeasuredFrom() []string {
	list := b.Boundaries()
	for _, s := range b.Scales {
		list = append(list, s.Value)
	}
	return list
}

// entering returns those of these values that are not computed from the branch itself:
// all but the norms.
func (b Branch) entering() []string {
	list := b.Boundaries()
	for _, s := range b.Scales {
		if !s.Norm {
			list = append(list, s.Value)
		}
	}
	return list
}

// Normed reports whether there is a norm after the rotation.
func (b Branch) Normed() bool {
	return slices.ContainsFunc(b.Scales, func(s TokenScale) bool { return s.Norm })
}

// scaled reports whether there is a factor after the rotation that is not a norm.
func (b Branch) scaled() bool {
	return slices.ContainsFunc(b.Scales, func(s TokenScale) bool { return !s.Norm })
}

// AfterRotation names the norms and factors after a site's rotation in words, "" where
// there are none.
func (s *Site) AfterRotation() string {
	var list []string
	add := func(what string, is func(Branch) bool) {
		switch query, key := is(s.Query), is(s.Key); {
		case query && key:
			list = append(list, "query and key "+what)
		case query:
			list = append(list, "query "+what)
		case key:
			list = append(list, "key "+what)
		}
	}
	add("normed", Branch.Normed)
	add("scaled", Branch.scaled)
	return strings.Join(list, ", ")
}
