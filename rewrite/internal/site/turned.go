package site

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Some models rotate query and key in a way that is not a rotary encoding, or cannot be
// measured, while everything after that is ordinary attention. Such a site is looked at once
// more from where query and key are already rotated: the model's own nodes still rotate them,
// and the op does the rest.

// Turned returns the site without its rotation: the query enters it as the scores read it, the
// key as it is cached or as the scores read it. It is nil where there is no such value between
// the nodes that the op replaces (latent attention, a fused op that rotates by itself).
func (s *Site) Turned() *Site {
	if s.Key.Shared != nil || s.Key.Behind || s.Turns || s.Crosses {
		return nil
	}
	t := *s
	t.Turns = true
	t.Query = turned(s.Graph, s.Query)
	t.Key = turned(s.Graph, s.Key)
	if t.Query.Boundary == "" || t.Key.Boundary == "" || t.Key.Cache != nil && t.Key.Cache.Past == "" {
		return nil
	}
	if leak(s.Graph, t.Output(), t.Boundaries()) != "" {
		return nil
	}
	return &t
}

// turned is a branch from the nearest value of the model before the product, or before the
// cache. The values before that one stand in its place where they alone have the heads that
// the cache or the value has.
func turned(g *graph.Graph, b Branch) Branch {
	t := Branch{Operand: b.Operand, Cache: b.Cache}
	if values := near(g, b.Cached(), b.Cache != nil); len(values) > 0 {
		t.Boundary, t.rearrangements = values[0], values[1:]
	}
	return t
}

// near lists the values of the model that everything on the way to a value goes through, the
// nearest first. A norm or temperature stays before them, with what it multiplies.
func near(g *graph.Graph, value string, cached bool) (values []string) {
	links, _ := dominators(g, value, cached)
	for _, l := range links {
		if l.scale != nil {
			break
		}
		if !g.Internal[l.value] {
			values = append(values, l.value)
		}
	}
	return values
}

// TurnedValues lists the values whose dimensions have to be measured beside SizedValues for
// Sized.Turned.
func (s *Site) TurnedValues() []string {
	t := s.Turned()
	if t == nil {
		return nil
	}
	return ir.Unique(slices.Concat(
		[]string{t.Query.Boundary, t.Key.Boundary}, t.Query.rearrangements, t.Key.rearrangements))
}

// Turned is Site.Turned with dimensions.
func (s *Sized) Turned() *Sized {
	t := s.Site.Turned()
	if t == nil {
		return nil
	}
	out := &Sized{Site: *t, Table: s.Table}
	channels := dim.LastConstant(s.Table.Dims[s.Query.Operand])
	nearest := func(b Branch, heads int64) string {
		return nearestRecognised(s.Table, b.Boundary, b.rearrangements, func(dims []dim.Extent) bool {
			ly, err := dim.LayoutOf(dims, channels)
			return err == nil && (heads == 0 || ly.Heads == heads)
		})
	}
	value, err := dim.LayoutOf(s.Table.Dims[s.Value.Boundary], dim.LastConstant(s.Table.Dims[s.Value.Operand]))
	if err != nil {
		return nil
	}
	out.Query.Boundary, out.Key.Boundary = nearest(t.Query, 0), nearest(t.Key, value.Heads)
	return out
}
