package graph

import (
	"github.com/rope-rewrite/rope-rewrite/rewrite/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Total returns the value behind the total length of a length-tracked cache, without
// casts and reshapes on the way. Other nodes that depend on the number of tokens read
// that value too.
func (g *Graph) Total(c *fused.LengthTrackedCache) string {
	v := c.Total
	for n := g.Producer[v]; ir.Standard(n, "Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"); n = g.Producer[v] {
		v = n.Inputs[0]
	}
	return v
}
