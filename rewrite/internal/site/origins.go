package site

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
)

// origin is one value before rotation that a branch is made of.
type origin struct {
	boundary       string
	rearrangements []string     // values with the same elements as the boundary in another shape, nearest first
	cache          *CacheUpdate // where it is cached after rotation; nil for most
	scales         []TokenScale // factors per token on its path
}

// maxOrigins bounds how many values are searched for what a branch is made of.
const maxOrigins = 8

// origins returns what root is made of: one value, or several that are concatenated
// along the channels, in this order. Latent attention does so: some channels are each
// head's own, others are rotated and shared by all heads. At most budget values are
// looked at.
func origins(g *graph.Graph, root string, cached bool, budget *int) []origin {
	*budget--
	links, rest := dominators(g, root, cached)
	producer := g.Producer[links[len(links)-1].value]
	if update := cacheUpdateAt(g, producer); update != nil && *budget > 0 {
		links, _ := dominators(g, update.NewRows, true)
		boundary, scales := nearestBoundary(g, links)
		return []origin{{boundary, rearrangementsOf(g, boundary), update, scales}}
	}
	if !rest || *budget <= 0 || producer == nil {
		boundary, scales := nearestBoundary(g, links)
		return []origin{{boundary, rearrangementsOf(g, boundary), nil, scales}}
	}
	var list []origin
	for _, v := range producer.Inputs {
		if !g.IsData(v) {
			continue
		}
		for _, o := range origins(g, v, cached, budget) {
			if !slices.ContainsFunc(list, func(other origin) bool { return other.boundary == o.boundary }) {
				list = append(list, o)
			}
		}
	}
	return list
}

// width returns how many channels a head has at the boundary when the operand's heads
// have this many; 0 where that is not known.
func (b Branch) width(channels int64) int64 {
	if len(b.Parts) > 0 {
		return 0
	}
	return channels
}

// partsLayout returns the layout of a branch whose channels are concatenated of several
// values. Each value has one head, which all heads share, or as many heads as the others.
func partsLayout(t *eval.ShapeTable, b Branch, heads int64) (dim.Layout, error) {
	layout := dim.Layout{}
	for i, boundary := range b.Boundaries() {
		rows := dim.LengthExtent
		if b.Shared != nil && i != b.SharedAt {
			rows = dim.TotalExtent // computed for all tokens in every call
		}
		ly, err := dim.LayoutOf(t.Dims[boundary], 0)
		if err != nil {
			return dim.Layout{}, fmt.Errorf("%q: %w", short.Name(boundary), err)
		}
		if ly.Rows != rows {
			return dim.Layout{}, fmt.Errorf("%q has the shape %v; expected %v tokens", short.Name(boundary), t.Dims[boundary], rows)
		}
		swapHeadsAndChannels(&ly, heads)
		layout.Parts, layout.Rows = append(layout.Parts, ly), ly.Rows
		layout.Heads, layout.Channels = max(layout.Heads, ly.Heads), layout.Channels+ly.Channels
	}
	for i, ly := range layout.Parts {
		if ly.Heads != 1 && ly.Heads != layout.Heads {
			return dim.Layout{}, fmt.Errorf("%q has %d heads and another part %d", short.Name(b.Boundaries()[i]), ly.Heads, layout.Heads)
		}
	}
	return layout, nil
}

// swapHeadsAndChannels exchanges the two axes in a layout where the number of channels,
// and not that of heads, is the site's number of heads: an optimizer may have moved
// the heads to the last dimension.
func swapHeadsAndChannels(ly *dim.Layout, heads int64) {
	h, c := slices.Index(ly.Axes, dim.HeadAxis), slices.Index(ly.Axes, dim.ChannelAxis)
	if h < 0 || c < 0 || ly.Heads == heads || ly.Heads == 1 || ly.Channels != heads {
		return
	}
	ly.Axes[h], ly.Axes[c] = dim.ChannelAxis, dim.HeadAxis
	ly.Heads, ly.Channels = ly.Channels, ly.Heads
}
