package lower_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
)

// A query [batch, length, heads · channels] of 2 heads becomes [batch, heads, length,
// channels].
func ExampleCanonical() {
	b := &ir.Builder{Stem: "layer_0"}
	layout := dim.Layout{Axes: []dim.Axis{dim.BatchAxis, dim.RowAxis, dim.MergedAxis}, Heads: 2, Channels: 16, Rows: dim.LengthExtent}
	result := lower.Canonical(b, "query", layout, "query")
	for _, n := range b.Nodes {
		fmt.Println(n.OpType, n.Inputs[0], "->", n.Outputs[0])
	}
	fmt.Println("result", result)
	// Output:
	// Reshape query -> layer_0/query_split
	// Transpose layer_0/query_split -> layer_0/query
	// result layer_0/query
}
