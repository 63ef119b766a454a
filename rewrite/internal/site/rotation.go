package site

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
)

// Some attention cannot be proven as a whole, but query and key are rotated before it as in RoPE. Their
// rotation is then a site of its own: what enters it is query and key before the rotation, and its results
// are the nearest values behind it. The op Rotary takes its place, and the attention keeps its nodes.

// Rotation returns the rotation of a site as a site of its own. It is nil where the model has no values
// right behind the rotation (it is inside a fused op, or between a cache and the scores).
func (s *Site) Rotation() *Site {
	if s.Key.Shared != nil || s.Key.Behind || s.Turns || s.Crosses || s.Alone > 0 {
		return nil
	}
	query, key := rotatedValue(s.Graph, s.Query), rotatedValue(s.Graph, s.Key)
	if query == "" || key == "" {
		return nil
	}
	r := &Site{
		Core:   Core{Softmax: s.Softmax, ScoresMatMul: s.ScoresMatMul, ValueMatMul: s.ValueMatMul},
		Graph:  s.Graph,
		Query:  Branch{Boundary: s.Query.Boundary, rearrangements: s.Query.rearrangements, Parts: s.Query.Parts, Operand: query},
		Key:    Branch{Boundary: s.Key.Boundary, rearrangements: s.Key.rearrangements, Parts: s.Key.Parts, Operand: key},
		Value:  s.Value,
		output: query,
	}
	if past := s.Key.Past(); past != "" { // positions may count from its tokens
		r.Key.Cache = &CacheUpdate{Past: past, NewRows: key}
	}
	for _, v := range []string{query, key} {
		n := s.Graph.AsWritten(s.Graph.Producer[v])
		if !slices.Contains(r.Replaced, n) {
			r.Replaced = append(r.Replaced, n)
		}
	}
	for _, n := range r.Replaced {
		if slices.ContainsFunc(n.Outputs, func(o string) bool {
			return o != "" && o != query && o != key && (s.Graph.Outputs[o] || len(s.Graph.Source.Consumers[o]) > 0)
		}) {
			return nil
		}
	}
	return r
}

// Rotation is Site.Rotation with dimensions.
func (s *Sized) Rotation() *Sized {
	r := s.Site.Rotation()
	if r == nil {
		return nil
	}
	r.Alone = dim.LastConstant(s.Table.Dims[s.Query.Operand])
	return &Sized{Site: *r, Table: s.Table}
}

// RotationValues lists the values whose dimensions have to be measured beside SizedValues for
// Sized.Rotation.
func (s *Site) RotationValues() []string {
	r := s.Rotation()
	if r == nil {
		return nil
	}
	return []string{r.Query.Operand, r.Key.Cached()}
}

// rotatedValue returns the value of the model that is nearest behind the rotation of a branch; "" where
// there is none.
func rotatedValue(g *graph.Graph, b Branch) (nearest string) {
	from := b.Cached()
	if n := len(b.Scales); n > 0 {
		from = b.Scales[n-1].Of
	}
	links, _ := dominators(g, from, b.Cache != nil)
	for _, l := range links {
		if turnedBetween(g, []string{from}, l.value) != nil {
			return nearest
		}
		if !g.Internal[l.value] {
			nearest = l.value
		}
	}
	if len(b.Parts) > 0 && turnedBetween(g, []string{from}, "") != nil { // the paths of its channels do not meet again
		return nearest
	}
	return ""
}
