package site

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
)

// origin is one un-rotated value that a branch is made of.
type origin struct {
	boundary       string
	rearrangements []string     // what the cut is a mere rearrangement of, nearest first
	cache          *cacheUpdate // what it is kept in once it is rotated; nil for most
	scales         []TokenScale // what it is multiplied by on its way
}

// mostOrigins bounds the search for what a branch is made of.
const mostOrigins = 8

// origins returns what root is made of: one value, or, where channels of
// several are put side by side (latent attention gives every head a key of its
// own, and the same rotated channels to all), each of them in this order.
// Looked at are at most budget values.
func origins(g *graph.Graph, root string, stored bool, budget *int) []origin {
	*budget--
	links, rest := dominators(g, root, stored)
	last := g.Producer[links[len(links)-1].value]
	if kept := cacheUpdateAt(g, last); kept != nil && *budget > 0 {
		fresh, _ := dominators(g, kept.NewRows, true)
		cut, scales := nearestBoundary(g, fresh)
		return []origin{{cut, rearrangementsOf(g, cut), kept, scales}}
	}
	if !rest || *budget <= 0 || last == nil {
		cut, scales := nearestBoundary(g, links)
		return []origin{{cut, rearrangementsOf(g, cut), nil, scales}}
	}
	var list []origin
	for _, v := range last.Inputs {
		if !g.IsData(v) {
			continue
		}
		for _, o := range origins(g, v, stored, budget) {
			if !slices.ContainsFunc(list, func(other origin) bool { return other.boundary == o.boundary }) {
				list = append(list, o)
			}
		}
	}
	return list
}

// width is how many channels a head of the branch's cut has where heads of the
// operand have channels, 0 where nothing tells.
func (b Branch) width(channels int64) int64 {
	if len(b.Parts) > 0 {
		return 0
	}
	return channels
}

// partsLayout returns the layout of a branch whose channels come from several values:
// one head each, for all heads, or as many as the others have.
func partsLayout(t *eval.ShapeTable, b Branch, heads int64) (dim.Layout, error) {
	whole := dim.Layout{}
	for i, cut := range b.Boundaries() {
		rows := dim.LengthExtent
		if b.Shared != nil && i != b.SharedAt {
			rows = dim.TotalExtent // made anew of all tokens
		}
		ly, err := dim.LayoutOf(t.Dims[cut], 0)
		if err != nil {
			return dim.Layout{}, fmt.Errorf("%q: %w", cut, err)
		}
		if ly.Rows != rows {
			return dim.Layout{}, fmt.Errorf("%q has the shape %v; %v tokens were expected", cut, t.Dims[cut], rows)
		}
		exchangeParts(&ly, heads)
		whole.Parts, whole.Rows = append(whole.Parts, ly), ly.Rows
		whole.Heads, whole.Channels = max(whole.Heads, ly.Heads), whole.Channels+ly.Channels
	}
	for i, ly := range whole.Parts {
		if ly.Heads != 1 && ly.Heads != whole.Heads {
			return dim.Layout{}, fmt.Errorf("%q has %d heads and another part %d", b.Boundaries()[i], ly.Heads, whole.Heads)
		}
	}
	return whole, nil
}

// exchangeParts reads channels as heads and heads as channels where only the latter
// are as many as there are: an optimizer may have left the heads behind.
func exchangeParts(ly *dim.Layout, heads int64) {
	h, c := slices.Index(ly.Axes, dim.HeadAxis), slices.Index(ly.Axes, dim.ChannelAxis)
	if h < 0 || c < 0 || ly.Heads == heads || ly.Heads == 1 || ly.Channels != heads {
		return
	}
	ly.Axes[h], ly.Axes[c] = dim.ChannelAxis, dim.HeadAxis
	ly.Heads, ly.Channels = ly.Channels, ly.Heads
}
