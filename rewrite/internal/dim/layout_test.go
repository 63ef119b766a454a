package dim

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A dimension of size 1 next to heads and channels does not change where an element lies.
func TestUnitAxes(t *testing.T) {
	ly, err := LayoutOf([]Extent{BatchExtent, LengthExtent, ConstantExtent(2), ConstantExtent(1), ConstantExtent(16)}, 16)
	if err != nil {
		t.Fatal(err)
	}
	if ly.Heads != 2 || ly.Channels != 16 || !ly.Is(BatchAxis, RowAxis, HeadAxis, UnitAxis, ChannelAxis) {
		t.Fatalf("%d heads of %d channels, axes %v", ly.Heads, ly.Channels, ly.Axes)
	}
	plain, err := LayoutOf([]Extent{BatchExtent, LengthExtent, ConstantExtent(2), ConstantExtent(16)}, 16)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		at := func(name string, n int64) int64 { return rapid.Int64Range(0, n-1).Draw(t, name) }
		b, r, h, c := at("batch", 3), at("row", 5), at("head", 2), at("channel", 16)
		if got, want := ly.Index([]int64{3, 5, 2, 1, 16}, b, h, r, c), plain.Index([]int64{3, 5, 2, 16}, b, h, r, c); got != want {
			t.Fatalf("the element is at %d, %d was expected", got, want)
		}
	})
	// In front of the length it may be another axis; a dimension above 1 is no unit axis.
	for _, dims := range [][]Extent{
		{BatchExtent, ConstantExtent(1), LengthExtent, ConstantExtent(2), ConstantExtent(16)},
		{BatchExtent, LengthExtent, ConstantExtent(2), ConstantExtent(4), ConstantExtent(16)},
	} {
		if _, err := LayoutOf(dims, 16); err == nil || !strings.Contains(err.Error(), "not batch, heads, length and channels") {
			t.Errorf("%v: the error is %v", dims, err)
		}
	}
}

// Strides lead to the same elements as Index, in every order of axes.
func TestStrides(t *testing.T) {
	orders := [][]Axis{
		{BatchAxis, HeadAxis, RowAxis, ChannelAxis}, {BatchAxis, RowAxis, HeadAxis, ChannelAxis}, {RowAxis, BatchAxis, ChannelAxis, HeadAxis},
		{BatchAxis, RowAxis, MergedAxis}, {BatchHeadAxis, RowAxis, ChannelAxis}, {BatchAxis, RowAxis, HeadAxis, UnitAxis, ChannelAxis},
	}
	rapid.Check(t, func(t *rapid.T) {
		ly := Layout{Axes: rapid.SampledFrom(orders).Draw(t, "axes"), Heads: 2, Channels: 16}
		if rapid.Bool().Draw(t, "packed") {
			ly.First, ly.All = 3, 6
		}
		sizes := map[Axis]int64{BatchAxis: 3, HeadAxis: 6, RowAxis: 5, ChannelAxis: 16, MergedAxis: 6 * 16, BatchHeadAxis: 3 * 6, UnitAxis: 1}
		var dims []int64
		for _, a := range ly.Axes {
			dims = append(dims, sizes[a])
		}
		at := func(name string, n int64) int64 { return rapid.Int64Range(0, n-1).Draw(t, name) }
		b, r, h, c := at("batch", 3), at("row", 5), at("head", 2), at("channel", 16)
		if got, want := ly.Strides(dims).Index(b, h, r, c), ly.Index(dims, b, h, r, c); got != want {
			t.Fatalf("the element is at %d, %d was expected", got, want)
		}
	})
}

// A value of no heads or no channels has no layout: what is measured of it would be nothing.
func TestWithoutNumbers(t *testing.T) {
	for _, dims := range [][]Extent{
		{BatchExtent, ConstantExtent(0), LengthExtent, ConstantExtent(8)},
		{BatchExtent, ConstantExtent(4), LengthExtent, ConstantExtent(0)},
		{BatchExtent, LengthExtent, ConstantExtent(0)},
	} {
		if ly, err := LayoutOf(dims, 8); err == nil || !strings.Contains(err.Error(), "without a number") {
			t.Errorf("%v: %+v, %v", dims, ly, err)
		}
	}
}
