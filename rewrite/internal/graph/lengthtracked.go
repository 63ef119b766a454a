package graph

import (
	"github.com/rope-rewrite/rope-rewrite/rewrite/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Total returns the value that a cache's total is a mere cast of: what else the
// model chooses by how many tokens there are reads it as well.
func (g *Graph) Total(c *fused.CountedCache) string {
	v := c.Total
	for n := g.Producer[v]; ir.Standard(n, "Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"); n = g.Producer[v] {
		v = n.Inputs[0]
	}
	return v
}
