package prove

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
)

// crossTrials are those of cross-attention: more and fewer keys than queries, one of either,
// several tiles, every kind of mask of the source, and pasts on which nothing may depend.
var crossTrials = []trial{
	{pt: dim.Point{B: 1, L: 5, S: 9}, magnitude: 1},
	{pt: dim.Point{B: 2, L: 7, P: 4, S: 3}, padding: eval.LeftPadding, magnitude: 1},
	{pt: dim.Point{B: 3, L: 1, P: 9, S: 33}, padding: eval.RightPadding, magnitude: 1},
	{pt: dim.Point{B: 2, L: 33, S: 5}, padding: eval.HolePadding, magnitude: 1},
	{pt: dim.Point{B: 2, L: 70, P: 131, S: 17}, padding: eval.LeftPadding, magnitude: 1},
	{pt: dim.Point{B: 1, L: 1, P: 300, S: 700}, magnitude: 1},
	{pt: dim.Point{B: 1, L: 131, P: 5, S: 140}, padding: eval.RightPadding, magnitude: 3},
	{pt: dim.Point{B: 2, L: 19, P: 6, S: 19}, padding: eval.RandomPadding, magnitude: 0.3},
	{pt: dim.Point{B: 2, L: 6, S: 1}, magnitude: 1},
}

// keepLast shows the last token of rows of which a mask hides all. A source without a token
// says nothing: exporters average what is hidden or give NaN, and the op gives zeros.
func keepLast(mask []int64, total int64) {
	for row := range slices.Chunk(mask, int(total)) {
		if !slices.Contains(row, 1) {
			row[total-1] = 1
		}
	}
}
