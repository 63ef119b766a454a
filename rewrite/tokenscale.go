package rewrite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/onnx"
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
			one, some = g.overLast(n, hiddenRank), true
		case standard(n, "Unsqueeze"):
			one, some = slices.ContainsFunc(g.axes(n), func(axis int64) bool { return lastAxis(axis, hiddenRank) }), true
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

// hiddenRank is taken to be that of hidden states, which scaleLayout makes sure of.
const hiddenRank = 4

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
		case n == nil || !reduces && !standard(n, elementwise...) || reduces && !g.overLast(n, hiddenRank):
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

// scaled reports whether something else than a norm does.
func (b branch) scaled() bool {
	return slices.ContainsFunc(b.scales, func(s tokenScale) bool { return !s.norm })
}

// afterRotation says what does so in a site, "" where nothing does.
func (s *site) afterRotation() string {
	var list []string
	say := func(what string, is func(branch) bool) {
		switch query, key := is(s.query), is(s.key); {
		case query && key:
			list = append(list, "query and key "+what)
		case query:
			list = append(list, "query "+what)
		case key:
			list = append(list, "key "+what)
		}
	}
	say("normed", branch.normed)
	say("scaled", branch.scaled)
	return strings.Join(list, ", ")
}
