package rewrite

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A dimension of one element beside heads and channels moves no element.
func TestUnitAxes(t *testing.T) {
	ly, err := layoutOf([]extent{batchExtent, lengthExtent, constantExtent(2), constantExtent(1), constantExtent(16)}, 16)
	if err != nil {
		t.Fatal(err)
	}
	if ly.heads != 2 || ly.channels != 16 || !ly.is(batchAxis, rowAxis, headAxis, unitAxis, channelAxis) {
		t.Fatalf("%d heads of %d channels, axes %v", ly.heads, ly.channels, ly.axes)
	}
	plain, err := layoutOf([]extent{batchExtent, lengthExtent, constantExtent(2), constantExtent(16)}, 16)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		at := func(name string, n int64) int64 { return rapid.Int64Range(0, n-1).Draw(t, name) }
		b, r, h, c := at("batch", 3), at("row", 5), at("head", 2), at("channel", 16)
		if got, want := ly.index([]int64{3, 5, 2, 1, 16}, b, h, r, c), plain.index([]int64{3, 5, 2, 16}, b, h, r, c); got != want {
			t.Fatalf("the element is at %d, %d was expected", got, want)
		}
	})
	// In front of the length it may hold anything else's place; a second size above one is no unit.
	for _, dims := range [][]extent{
		{batchExtent, constantExtent(1), lengthExtent, constantExtent(2), constantExtent(16)},
		{batchExtent, lengthExtent, constantExtent(2), constantExtent(4), constantExtent(16)},
	} {
		if _, err := layoutOf(dims, 16); err == nil || !strings.Contains(err.Error(), "not batch, heads, length and channels") {
			t.Errorf("%v: the error is %v", dims, err)
		}
	}
}
