package rewrite

import (
	"fmt"
	"slices"
)

// axis says what one dimension of a hidden state counts.
type axis uint8

const (
	batchAxis     axis = iota
	headAxis           // heads
	rowAxis            // tokens: new, cached or both
	channelAxis        // channels of one head
	mergedAxis         // heads · channels, head by head
	batchHeadAxis      // batch · heads, row of the batch by row
	unitAxis           // nothing: one element
)

// layout says where the element (batch, head, row, channel) of a hidden state lies.
type layout struct {
	axes            []axis
	heads, channels int64
	rows            extent
	parts           []layout // where channels of several values stand side by side: theirs; nil otherwise
	first, all      int64    // where query, key and value stand in one value: the first head of this one, and the heads of all three; 0 otherwise
}

// layoutOf recognises the axes of a value by their sizes: one is the batch,
// one follows the length or past, the rest are heads and channels in this
// order, or their product; channels, if not 0, is the head size that splits it.
func layoutOf(dims []extent, channels int64) (layout, error) {
	ly := layout{axes: make([]axis, len(dims))}
	var constants []int
	batch, rows := false, false
	for i, e := range dims {
		switch {
		case e == batchExtent && !batch:
			ly.axes[i], batch = batchAxis, true
		case e == lengthExtent || e == pastExtent || e == totalExtent:
			if rows {
				return layout{}, fmt.Errorf("two of its dimensions follow the length: %v", dims)
			}
			ly.axes[i], ly.rows, rows = rowAxis, e, true
		case e.constant():
			constants = append(constants, i)
		case e == extent{B: e.B} && !batch:
			ly.axes[i], ly.heads, batch = batchHeadAxis, e.B, true
		default:
			return layout{}, fmt.Errorf("its dimension %d is %v, which is neither batch, length nor constant", i, e)
		}
	}
	if !batch || !rows {
		return layout{}, fmt.Errorf("its dimensions %v lack a batch or a length", dims)
	}
	// Grouped heads may have a dimension of their own for the one key of a group.
	for i := 0; len(constants) > 2 && i < len(constants); {
		if at := constants[i]; dims[at].One == 1 && !slices.ContainsFunc(dims[at:], func(e extent) bool { return !e.constant() }) {
			ly.axes[at] = unitAxis
			constants = slices.Delete(constants, i, i+1)
			continue
		}
		i++
	}
	switch {
	case len(constants) == 2 && ly.heads == 0:
		ly.axes[constants[0]], ly.heads = headAxis, dims[constants[0]].One
		ly.axes[constants[1]], ly.channels = channelAxis, dims[constants[1]].One
	case len(constants) == 1 && ly.heads != 0:
		ly.axes[constants[0]], ly.channels = channelAxis, dims[constants[0]].One
	case len(constants) == 1:
		width := dims[constants[0]].One
		if channels == 0 {
			channels = width
		}
		if channels < 1 || width%channels != 0 {
			return layout{}, fmt.Errorf("its width %d is not a multiple of the head size %d", width, channels)
		}
		ly.axes[constants[0]], ly.heads, ly.channels = mergedAxis, width/channels, channels
	default:
		return layout{}, fmt.Errorf("its dimensions %v are not batch, heads, length and channels", dims)
	}
	return ly, nil
}

// each returns the layouts of the values that it takes to make this one.
func (ly layout) each() []layout {
	if ly.parts != nil {
		return ly.parts
	}
	return []layout{ly}
}

// index returns the place of an element in a tensor with these dims.
func (ly layout) index(dims []int64, b, h, r, c int64) int64 {
	at := int64(0)
	for i, a := range ly.axes {
		at *= dims[i]
		switch a {
		case batchAxis:
			at += b
		case headAxis:
			at += ly.first + h
		case rowAxis:
			at += r
		case channelAxis:
			at += c
		case mergedAxis:
			at += (ly.first+h)*ly.channels + c
		case batchHeadAxis:
			at += b*max(ly.heads, ly.all) + ly.first + h
		}
	}
	return at
}

// is reports whether the axes are exactly these.
func (ly layout) is(axes ...axis) bool {
	if len(axes) != len(ly.axes) {
		return false
	}
	for i := range axes {
		if ly.axes[i] != axes[i] {
			return false
		}
	}
	return true
}

// canonical is [batch, heads, rows, channels].
func (ly layout) canonical() bool { return ly.is(batchAxis, headAxis, rowAxis, channelAxis) }
