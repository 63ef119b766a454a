package dim_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
)

// A key with its cache is seen at several sizes. Its shape follows from batch,
// length and past, and the shape tells the layout.
func Example() {
	var shapes [][]int64
	points := dim.SamplePoints(true, false)
	for _, pt := range points {
		shapes = append(shapes, []int64{pt.B, 2, pt.P + pt.L, 16})
	}
	extents, ok := dim.FitAll(points, shapes)
	fmt.Println(extents, ok)

	layout, err := dim.LayoutOf(extents, 0)
	fmt.Println(layout.Heads, "heads of", layout.Channels, "channels, rows:", layout.Rows, err)
	fmt.Println(dim.Evaluate(extents, dim.Point{B: 1, L: 3, P: 100}))
	// Output:
	// [batch 2 length + past 16] true
	// 2 heads of 16 channels, rows: length + past <nil>
	// [1 2 103 16]
}
