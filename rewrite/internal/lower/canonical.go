package lower

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// joined brings a branch to [batch, heads, length, channels]. Where it is made of several
// values, their channels are concatenated.
func joined(b *ir.Builder, value string, parts []string, ly dim.Layout, part string) string {
	if ly.Parts == nil {
		return Canonical(b, value, ly, part)
	}
	list := make([]string, len(ly.Parts))
	for i, v := range append([]string{value}, parts...) {
		list[i] = Canonical(b, v, ly.Parts[i], fmt.Sprintf("%s_%d", part, i))
	}
	return concatenated(b, list, ly, part)
}

// concatenated concatenates the channels of values [batch, heads, length, channels]. A
// value of one head, which all heads share, is repeated.
func concatenated(b *ir.Builder, values []string, ly dim.Layout, part string) string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = v
		if ly.Parts[i].Heads < ly.Heads {
			name := fmt.Sprintf("%s_%d", part, i)
			list[i] = b.AddAs(name+"_heads", "Tile", []string{v, b.Constant(name+"_repeats", 1, ly.Heads, 1, 1)})
		}
	}
	return b.AddAs(part+"_joined", "Concat", list, onnx.IntAttr("axis", 3))
}

// Canonical brings a hidden state with the layout ly to [batch, heads, length, channels],
// the form of the op's inputs, and returns its name. part is for the names of new nodes.
func Canonical(b *ir.Builder, value string, ly dim.Layout, part string) string {
	if ly.All > 0 {
		return Canonical(b, unpacked(b, value, ly, part), dim.Layout{Axes: ly.Axes, Heads: ly.Heads, Channels: ly.Channels, Rows: ly.Rows}, part)
	}
	if slices.Contains(ly.Axes, dim.UnitAxis) {
		return Canonical(b, compact(b, value, &ly, part), ly, part)
	}
	switch {
	case ly.Canonical():
		return value
	case ly.Is(dim.BatchAxis, dim.RowAxis, dim.MergedAxis):
		split := b.AddAs(part+"_split", "Reshape", []string{value, b.Constant(part+"_shape", 0, 0, ly.Heads, ly.Channels)})
		return b.AddAs(part, "Transpose", []string{split}, onnx.IntsAttr("perm", 0, 2, 1, 3))
	case ly.Is(dim.BatchHeadAxis, dim.RowAxis, dim.ChannelAxis):
		// [batch·heads, length, channels]: Reshape works out the batch.
		width := b.AddAs(part+"_dims", "Shape", []string{value})
		rest := b.AddAs(part+"_rest", "Slice", []string{width, b.Constant(part+"_from", 1), b.Constant(part+"_to", 3)})
		shape := b.AddAs(part+"_shape", "Concat", []string{b.Constant(part+"_front", -1, ly.Heads), rest}, onnx.IntAttr("axis", 0))
		return b.AddAs(part, "Reshape", []string{value, shape})
	case slices.Contains(ly.Axes, dim.BatchHeadAxis):
		front := []dim.Axis{dim.BatchHeadAxis, dim.RowAxis, dim.ChannelAxis}
		order := make([]int64, len(front))
		for i, axis := range front {
			order[i] = int64(slices.Index(ly.Axes, axis))
		}
		ly.Axes = front
		return Canonical(b, b.AddAs(part+"_rows", "Transpose", []string{value}, onnx.IntsAttr("perm", order...)), ly, part)
	}
	perm := make([]int64, 4)
	for i, a := range ly.Axes {
		switch a {
		case dim.BatchAxis:
			perm[0] = int64(i)
		case dim.HeadAxis:
			perm[1] = int64(i)
		case dim.RowAxis:
			perm[2] = int64(i)
		case dim.ChannelAxis:
			perm[3] = int64(i)
		}
	}
	return b.AddAs(part, "Transpose", []string{value}, onnx.IntsAttr("perm", perm...))
}

// Ordered puts the channels of [batch, heads, length, channels] in another order: channel
// i of the result is channel order[i] of the value. nil leaves the value as it is.
func Ordered(b *ir.Builder, value string, order []int64, part string) string {
	if order == nil {
		return value
	}
	return b.AddAs(part+"_ordered", "Gather", []string{value, b.Constant(part+"_order", order...)}, onnx.IntAttr("axis", 3))
}

// compact removes dimensions of one element, which come after batch and rows, and sets
// the layout to that of the result.
func compact(b *ir.Builder, value string, ly *dim.Layout, part string) string {
	var axes []dim.Axis
	var shape []int64
	for _, a := range ly.Axes {
		size := int64(0) // 0 in a Reshape keeps the dimension
		switch a {
		case dim.UnitAxis:
			continue
		case dim.HeadAxis:
			size = ly.Heads
		case dim.ChannelAxis:
			size = ly.Channels
		case dim.MergedAxis:
			size = ly.Heads * ly.Channels
		}
		axes, shape = append(axes, a), append(shape, size)
	}
	ly.Axes = axes
	return b.AddAs(part+"_compact", "Reshape", []string{value, b.Constant(part+"_compact_shape", shape...)})
}

// unpacked takes the heads of query, key or value out of a value that holds them packed
// together with others.
func unpacked(b *ir.Builder, value string, ly dim.Layout, part string) string {
	for i, a := range ly.Axes {
		step := int64(1)
		switch a {
		case dim.MergedAxis:
			step = ly.Channels
		case dim.HeadAxis:
		default:
			continue
		}
		from, to := b.Constant(part+"_begin", ly.First*step), b.Constant(part+"_end", (ly.First+ly.Heads)*step)
		return b.AddAs(part+"_only", "Slice", []string{value, from, to, b.Constant(part+"_axis", int64(i))})
	}
	return value
}

// tail is the nodes between the op's output and the value that it replaces.
type tail struct {
	from  string // the op's output
	nodes []*onnx.Node
}

// restore brings an output of the op [batch, heads, length, channels] to the layout that the
// model's own value has. part is for the names of new nodes.
func restore(b *ir.Builder, output string, ly dim.Layout, part string) tail {
	if ly.Canonical() {
		return tail{from: output}
	}
	inner := &ir.Builder{Stem: b.Stem}
	from := b.Value(part)
	switch {
	case ly.Is(dim.BatchHeadAxis, dim.RowAxis, dim.ChannelAxis):
		dims := inner.AddAs(part+"_dims", "Shape", []string{from})
		rest := inner.AddAs(part+"_rest", "Slice", []string{dims, inner.Constant(part+"_from", 2), inner.Constant(part+"_to", 4)})
		shape := inner.AddAs(part+"_shape", "Concat", []string{inner.Constant(part+"_front", -1), rest}, onnx.IntAttr("axis", 0))
		inner.AddTo(output, "Reshape", []string{from, shape})
	case ly.Is(dim.BatchAxis, dim.RowAxis, dim.MergedAxis):
		swapped := inner.AddAs(part+"_rows", "Transpose", []string{from}, onnx.IntsAttr("perm", 0, 2, 1, 3))
		inner.AddTo(output, "Reshape", []string{swapped, inner.Constant(part+"_shape", 0, 0, -1)})
	default:
		perm := make([]int64, 4)
		place := map[dim.Axis]int64{dim.BatchAxis: 0, dim.HeadAxis: 1, dim.RowAxis: 2, dim.ChannelAxis: 3}
		for i, a := range ly.Axes {
			perm[i] = place[a]
		}
		inner.AddTo(output, "Transpose", []string{from}, onnx.IntsAttr("perm", perm...))
	}
	b.Constants = append(b.Constants, inner.Constants...)
	return tail{from: from, nodes: inner.Nodes}
}
