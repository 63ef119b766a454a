package signature_test

import (
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/signature"
)

// Two rows of two tokens after a past of one.
func TestFeed(t *testing.T) {
	call := signature.Call{
		Batch: 2, Length: 2,
		IDs: []int64{5, 6, 7, 8}, Positions: []int64{1, 2, 0, 1}, Mask: []int64{1, 1, 1, 0, 1, 1},
	}
	given := call
	given.Documents, given.Pasts = []int64{1, 1, 2, 1, -1, -1}, []int64{1, 0}
	image := call
	image.Positions = []int64{1, 2, 0, 1, 1, 3, 0, 1}
	for axes, positions := range map[int64][]int64{2: image.Positions, 3: {1, 2, 0, 1, 1, 2, 0, 1, 1, 2, 0, 1}} {
		from := call
		if axes == 2 {
			from = image
		}
		values, dims := from.Feed(signature.Input{Role: signature.Positions, Axes: axes})
		if !slices.Equal(values, positions) || !slices.Equal(dims, []int64{axes, 2, 2}) {
			t.Errorf("positions on %d axes: %v %v, want %v", axes, values, dims, positions)
		}
	}
	for _, c := range []struct {
		call         signature.Call
		in           signature.Input
		values, dims []int64
	}{
		{call, signature.Input{Role: signature.Tokens}, call.IDs, []int64{2, 2}},
		{call, signature.Input{Role: signature.Positions}, call.Positions, []int64{2, 2}},
		{call, signature.Input{Role: signature.TokenTypes}, []int64{0, 0, 0, 0}, []int64{2, 2}},
		{call, signature.Input{Role: signature.Padding}, call.Mask, []int64{2, 3}},
		{call, signature.Input{Role: signature.Documents}, []int64{1, 1, 1, 1, 1, 1}, []int64{2, 3}},
		{call, signature.Input{Role: signature.CacheLength}, []int64{1, 1}, []int64{2}},
		{given, signature.Input{Role: signature.Documents}, given.Documents, []int64{2, 3}},
		{given, signature.Input{Role: signature.CacheLength}, given.Pasts, []int64{2}},
		{call, signature.Input{Role: signature.Past}, nil, nil},
	} {
		values, dims := c.call.Feed(c.in)
		if !slices.Equal(values, c.values) || !slices.Equal(dims, c.dims) {
			t.Errorf("role %d: %v %v, want %v %v", c.in.Role, values, dims, c.values, c.dims)
		}
	}
}
