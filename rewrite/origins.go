package rewrite

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// origin is one un-rotated value that a branch is made of.
type origin struct {
	cut    string
	before []string     // what the cut is a mere rearrangement of, nearest first
	cache  *cache       // what it is kept in once it is rotated; nil for most
	scales []tokenScale // what it is multiplied by on its way
}

// mostOrigins bounds the search for what a branch is made of.
const mostOrigins = 8

// origins returns what root is made of: one value, or, where channels of
// several are put side by side (latent attention gives every head a key of its
// own, and the same rotated channels to all), each of them in this order.
// Looked at are at most budget values.
func (g *graph) origins(root string, stored bool, budget *int) []origin {
	*budget--
	links, rest := g.dominators(root, stored)
	last := g.producer[links[len(links)-1].value]
	if kept := g.cacheConcat(last); kept != nil && *budget > 0 {
		fresh, _ := g.dominators(kept.fresh, true)
		cut, scales := g.nearestCut(fresh)
		return []origin{{cut, g.before(cut), kept, scales}}
	}
	if !rest || *budget <= 0 || last == nil {
		cut, scales := g.nearestCut(links)
		return []origin{{cut, g.before(cut), nil, scales}}
	}
	var list []origin
	for _, v := range last.Inputs {
		if !g.isData(v) {
			continue
		}
		for _, o := range g.origins(v, stored, budget) {
			if !slices.ContainsFunc(list, func(other origin) bool { return other.cut == o.cut }) {
				list = append(list, o)
			}
		}
	}
	return list
}

// width is how many channels a head of the branch's cut has where heads of the
// operand have channels, 0 where nothing tells.
func (b branch) width(channels int64) int64 {
	if len(b.beside) > 0 {
		return 0
	}
	return channels
}

// beside returns the layout of a branch whose channels come from several values:
// one head each, for all heads, or as many as the others have.
func (t *shapeTable) beside(b branch, heads int64) (layout, error) {
	whole := layout{}
	for i, cut := range b.cuts() {
		rows := lengthExtent
		if b.shared != nil && i != b.sharedAt {
			rows = totalExtent // made anew of all tokens
		}
		ly, err := layoutOf(t.dims[cut], 0)
		if err != nil {
			return layout{}, fmt.Errorf("%q: %w", cut, err)
		}
		if ly.rows != rows {
			return layout{}, fmt.Errorf("%q has the shape %v; %v tokens were expected", cut, t.dims[cut], rows)
		}
		ly.exchange(heads)
		whole.parts, whole.rows = append(whole.parts, ly), ly.rows
		whole.heads, whole.channels = max(whole.heads, ly.heads), whole.channels+ly.channels
	}
	for i, ly := range whole.parts {
		if ly.heads != 1 && ly.heads != whole.heads {
			return layout{}, fmt.Errorf("%q has %d heads and another part %d", b.cuts()[i], ly.heads, whole.heads)
		}
	}
	return whole, nil
}

// exchange reads channels as heads and heads as channels where only the latter
// are as many as there are: an optimizer may have left the heads behind.
func (ly *layout) exchange(heads int64) {
	h, c := slices.Index(ly.axes, headAxis), slices.Index(ly.axes, channelAxis)
	if h < 0 || c < 0 || ly.heads == heads || ly.heads == 1 || ly.channels != heads {
		return
	}
	ly.axes[h], ly.axes[c] = channelAxis, headAxis
	ly.heads, ly.channels = ly.channels, ly.heads
}

// joined brings a branch into [batch, heads, length, channels]; the channels of
// several values come side by side.
func (b *builder) joined(value string, beside []string, ly layout, part string) string {
	if ly.parts == nil {
		return b.canonical(value, ly, part)
	}
	list := make([]string, len(ly.parts))
	for i, v := range append([]string{value}, beside...) {
		list[i] = b.canonical(v, ly.parts[i], fmt.Sprintf("%s_%d", part, i))
	}
	return b.sideBySide(list, ly, part)
}

// sideBySide joins the channels of values in canonical form; what all heads
// share is repeated.
func (b *builder) sideBySide(values []string, ly layout, part string) string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = v
		if ly.parts[i].heads < ly.heads {
			name := fmt.Sprintf("%s_%d", part, i)
			list[i] = b.add("Tile", []string{v, b.constant(name+"_repeats", 1, ly.heads, 1, 1)}, b.value(name+"_heads"))
		}
	}
	return b.add("Concat", list, b.value(part+"_joined"), onnx.IntAttr("axis", 3))
}
