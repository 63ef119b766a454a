package dim

import (
	"fmt"
	"slices"
)

// Axis is what one dimension of a hidden state holds.
type Axis uint8

// What a dimension holds.
const (
	BatchAxis     Axis = iota
	HeadAxis           // heads
	RowAxis            // tokens: new, cached or both
	ChannelAxis        // channels of one head
	MergedAxis         // heads · channels, head by head
	BatchHeadAxis      // batch · heads, row of the batch by row
	UnitAxis           // none: the dimension has one element
)

// Layout says where the element (batch, head, row, channel) of a hidden state lies.
type Layout struct {
	Axes            []Axis
	Heads, Channels int64
	Rows            Extent
	Parts           []Layout // the layouts of the values whose channels are concatenated; nil for one value
	First, All      int64    // for query, key and value packed in one value: the first head of this one, and the heads of all three; 0 otherwise
}

// LayoutOf recognises the axes of a value by their sizes: one is the batch, one
// follows length or past, the others are heads and channels, in this order, or one
// dimension that holds heads · channels. channels is the head size that splits such
// a dimension; with 0 it is one head. Other shapes are errors.
func LayoutOf(dims []Extent, channels int64) (Layout, error) {
	ly := Layout{Axes: make([]Axis, len(dims))}
	var constants []int
	batch, rows := false, false
	for i, e := range dims {
		switch {
		case e == BatchExtent && !batch:
			ly.Axes[i], batch = BatchAxis, true
		case e == LengthExtent || e == PastExtent || e == TotalExtent || e == SourceExtent:
			if rows {
				return Layout{}, fmt.Errorf("two of its dimensions depend on the length: %v", dims)
			}
			ly.Axes[i], ly.Rows, rows = RowAxis, e, true
		case e.Constant():
			constants = append(constants, i)
		case e == Extent{B: e.B} && !batch:
			ly.Axes[i], ly.Heads, batch = BatchHeadAxis, e.B, true
		default:
			return Layout{}, fmt.Errorf("its dimension %d is %v, which is not batch, length or a constant", i, e)
		}
	}
	if !batch || !rows {
		return Layout{}, fmt.Errorf("its dimensions %v lack a batch or a length", dims)
	}
	// With grouped heads the one key of a group may have a dimension of size 1.
	for i := 0; len(constants) > 2 && i < len(constants); {
		if at := constants[i]; dims[at].One == 1 && !slices.ContainsFunc(dims[at:], func(e Extent) bool { return !e.Constant() }) {
			ly.Axes[at] = UnitAxis
			constants = slices.Delete(constants, i, i+1)
			continue
		}
		i++
	}
	switch {
	case len(constants) == 2 && ly.Heads == 0:
		ly.Axes[constants[0]], ly.Heads = HeadAxis, dims[constants[0]].One
		ly.Axes[constants[1]], ly.Channels = ChannelAxis, dims[constants[1]].One
	case len(constants) == 1 && ly.Heads != 0:
		ly.Axes[constants[0]], ly.Channels = ChannelAxis, dims[constants[0]].One
	case len(constants) == 1:
		width := dims[constants[0]].One
		if channels == 0 {
			channels = width
		}
		if channels < 1 || width%channels != 0 {
			return Layout{}, fmt.Errorf("its width %d is not a multiple of the head size %d", width, channels)
		}
		ly.Axes[constants[0]], ly.Heads, ly.Channels = MergedAxis, width/channels, channels
	default:
		return Layout{}, fmt.Errorf("its dimensions %v are not batch, heads, length and channels", dims)
	}
	if ly.Heads < 1 || ly.Channels < 1 {
		return Layout{}, fmt.Errorf("its dimensions %v leave it without a number", dims)
	}
	return ly, nil
}

// Each returns the layouts of the values that are concatenated to this one; most
// often that is the layout itself.
func (ly Layout) Each() []Layout {
	if ly.Parts != nil {
		return ly.Parts
	}
	return []Layout{ly}
}

// Index returns the index of the element (batch b, head h, row r, channel c) in the
// data of a tensor with these dims.
func (ly Layout) Index(dims []int64, b, h, r, c int64) int64 {
	at := int64(0)
	for i, a := range ly.Axes {
		at *= dims[i]
		switch a {
		case BatchAxis:
			at += b
		case HeadAxis:
			at += ly.First + h
		case RowAxis:
			at += r
		case ChannelAxis:
			at += c
		case MergedAxis:
			at += (ly.First+h)*ly.Channels + c
		case BatchHeadAxis:
			at += b*max(ly.Heads, ly.All) + ly.First + h
		}
	}
	return at
}

// Strides says how far apart in the data of a tensor elements are that differ by one in
// their batch, head, row or channel.
type Strides struct{ First, Batch, Head, Row, Channel int64 }

// Strides returns the strides of a tensor with these dims.
func (ly Layout) Strides(dims []int64) Strides {
	first := ly.Index(dims, 0, 0, 0, 0)
	return Strides{
		First: first, Batch: ly.Index(dims, 1, 0, 0, 0) - first, Head: ly.Index(dims, 0, 1, 0, 0) - first,
		Row: ly.Index(dims, 0, 0, 1, 0) - first, Channel: ly.Index(dims, 0, 0, 0, 1) - first,
	}
}

// Index returns the same as that of the layout.
func (s Strides) Index(b, h, r, c int64) int64 {
	return s.First + b*s.Batch + h*s.Head + r*s.Row + c*s.Channel
}

// Is reports whether the axes are exactly these.
func (ly Layout) Is(axes ...Axis) bool {
	if len(axes) != len(ly.Axes) {
		return false
	}
	for i := range axes {
		if ly.Axes[i] != axes[i] {
			return false
		}
	}
	return true
}

// Canonical reports whether the axes are [batch, heads, rows, channels].
func (ly Layout) Canonical() bool { return ly.Is(BatchAxis, HeadAxis, RowAxis, ChannelAxis) }
