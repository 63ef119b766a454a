package site

import (
	"bytes"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Static quantisation rounds query and key to 8 bits between their rotation and their product.
// No attention in float does that, so such a site is unchanged. But the rotation before it may be
// computed in float, and is then known by itself: it is looked at up to the value that is
// rounded.

// Unrounded returns the site with query and key as they are before they are rounded for their
// product. It is nil where neither is.
func (s *Site) Unrounded() *Site {
	if s.Turns || s.Crosses {
		return nil
	}
	query, key := unrounded(s.Graph, s.Query.Operand), unrounded(s.Graph, s.Key.Operand)
	if query == s.Query.Operand && key == s.Key.Operand {
		return nil
	}
	u := *s
	u.Rounded = true
	u.Query, u.Key = follow(s.Graph, query, maxOrigins), follow(s.Graph, key, maxOrigins)
	if slices.Contains(u.Query.Boundaries(), "") || slices.Contains(u.Key.Boundaries(), "") || u.Query.Cache != nil {
		return nil
	}
	if u.Key.Update() == nil {
		u.Key = keysAsOutput(s.Graph, u.Key)
	}
	u.findNorms()
	return &u
}

// Unrounded is Site.Unrounded with dimensions.
func (s *Sized) Unrounded() *Sized {
	u := s.Site.Unrounded()
	if u == nil {
		return nil
	}
	return u.sized(s.Table)
}

// UnroundedValues lists the values whose dimensions have to be measured beside SizedValues for
// Sized.Unrounded.
func (s *Site) UnroundedValues() []string {
	u := s.Unrounded()
	if u == nil {
		return nil
	}
	return u.SizedValues()
}

// unrounded returns what an operand is before it is rounded; the operand itself where nothing
// but its elements' order changes on the way back from it.
func unrounded(g *graph.Graph, operand string) string {
	found := operand
	for {
		back := g.Producer[rearranged(g, found)]
		if !ir.Standard(back, "DequantizeLinear") {
			return found
		}
		round := g.Producer[rearranged(g, back.Inputs[0])]
		if !rounds(g, round, back) {
			return found
		}
		found = round.Inputs[0]
	}
}

// rearranged returns the value of whose elements v is made, each as it is: moved or repeated.
func rearranged(g *graph.Graph, v string) string {
	for {
		n := g.Producer[v]
		if !ir.Standard(n, "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Expand") || !g.IsData(n.Inputs[0]) {
			return v
		}
		v = n.Inputs[0]
	}
}

// rounds reports whether two nodes round every element in one way and change nothing else: to
// 8 bits by one constant scale, and back by the same.
func rounds(g *graph.Graph, round, back *onnx.Node) bool {
	if !ir.Standard(round, "QuantizeLinear") || len(round.Inputs) != 3 || len(back.Inputs) != 3 || !g.IsData(round.Inputs[0]) {
		return false
	}
	for i := 1; i < 3; i++ {
		a, b := g.Constants[round.Inputs[i]], g.Constants[back.Inputs[i]]
		if a == nil || b == nil || a.Type != b.Type || a.Len() != 1 || b.Len() != 1 {
			return false
		}
		x, err := a.Bytes()
		y, other := b.Bytes()
		if err != nil || other != nil || !bytes.Equal(x, y) {
			return false
		}
	}
	return graph.Quantised(g.Constants[round.Inputs[2]].Type)
}
