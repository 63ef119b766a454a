package site

import (
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// linear reports whether n's output is linear in its hidden-state inputs, so that it
// may be a part of a rotation. Adding a constant is not linear.
func linear(g *graph.Graph, n *onnx.Node) bool {
	if n == nil {
		return false
	}
	dataInputs := 0
	for _, v := range n.Inputs {
		if g.IsData(v) {
			dataInputs++
		}
	}
	first := len(n.Inputs) > 0 && g.IsData(n.Inputs[0])
	switch {
	case ir.Standard(n, "Identity", "Neg", "Slice", "Split", "Reshape", "Transpose", "Expand", "Gather", "GatherND",
		"Squeeze", "Unsqueeze", "Flatten", "Tile", "Cast", "Pad", "Dropout"):
		return first && dataInputs == 1
	case ir.Standard(n, "Concat", "Add", "Sub"):
		return dataInputs == len(n.Inputs)
	case ir.Standard(n, "Mul"):
		return dataInputs == 1
	case ir.Standard(n, "Div"):
		return first && dataInputs == 1
	case ir.Standard(n, "Where"):
		return len(n.Inputs) == 3 && !g.IsData(n.Inputs[0])
	case ir.Scatters(n): // writes channels into a larger value
		return dataInputs > 0 && !g.IsData(n.Inputs[1])
	case ir.Standard(n, "MatMul"):
		return dataInputs == 1 && !g.WeightProduct(n)
	case ir.Standard(n, "RotaryEmbedding") || n.Domain == "com.microsoft" && n.OpType == "RotaryEmbedding":
		return first && dataInputs == 1
	}
	return false
}

// essential reports whether n must be inside a site: it multiplies by something that
// depends on positions or sizes, or it repeats heads. Heads that are repeated before
// they are cached do not count: the op caches them as they come.
func essential(g *graph.Graph, n *onnx.Node, cached bool) bool {
	switch {
	case ir.Standard(n, "Mul", "Div", "MatMul", "Where"):
		for _, v := range n.Inputs {
			if c := g.Classes[v]; c == graph.PositionClass || c == graph.ShapeClass || g.PerToken(v) {
				return true
			}
		}
	case n.OpType == "RotaryEmbedding", ir.Scatters(n):
		return true
	case ir.Standard(n, "Expand", "Tile"):
		return !cached
	case ir.Standard(n, "GatherND"):
		return !cached && !picksOne(g, n)
	}
	return false
}

// picksOne reports whether a GatherND takes one part of a value, so that it repeats
// nothing: heads of the key out of groups of query, key and value, say.
func picksOne(g *graph.Graph, n *onnx.Node) bool {
	if len(n.Inputs) != 2 || n.Int("batch_dims", 0) != 0 {
		return false
	}
	t := g.Constants[n.Inputs[1]]
	return t != nil && len(t.Dims) > 0 && t.Len() == t.Dims[len(t.Dims)-1]
}

// link is a value that every path from a root back to the hidden states goes through.
type link struct {
	value     string
	essential bool        // between this link and the next nearer one is a node that must be inside the site
	scale     *TokenScale // the factor per token between these two links; nil for most
}

// dominators returns the links of root, nearest first, as far back as all nodes are
// linear. It stops at a cache update. cached says that root is what a cache holds;
// rest, that there is an essential node before the last link.
func dominators(g *graph.Graph, root string, cached bool) (links []link, rest bool) {
	frontier := map[string]bool{root: true}
	crossed := false
	var scale *TokenScale
	for {
		if len(frontier) == 1 {
			var value string
			for v := range frontier {
				value = v
			}
			links = append(links, link{value, crossed, scale})
			crossed, scale = false, tokenScale(g, g.Producer[value])
			if scale != nil { // looked for only where all paths go through one value
				frontier = map[string]bool{scale.Of: true}
				continue
			}
		}
		value, found := "", false
		for v := range frontier {
			n := g.Producer[v]
			if !linear(g, n) || cacheUpdateAt(g, n) != nil {
				continue
			}
			if !found || g.Order[n] > g.Order[g.Producer[value]] {
				value, found = v, true
			}
		}
		if !found {
			return links, crossed
		}
		n := g.Producer[value]
		// All outputs of one Split are left in one step.
		for _, o := range n.Outputs {
			delete(frontier, o)
		}
		crossed = crossed || essential(g, n, cached)
		for _, v := range n.Inputs {
			if g.IsData(v) {
				frontier[v] = true
			}
		}
	}
}

// nearestBoundary returns the link nearest to the root that has no essential node
// before it and is a value of the model, not one inside an expanded fused op; "" where
// there is none. It also returns the factors per token between this link and the root.
func nearestBoundary(g *graph.Graph, links []link) (value string, scales []TokenScale) {
	nearest := 0
	for i, l := range links {
		if l.essential {
			nearest = i
		}
	}
	for i, l := range links {
		if l.scale != nil {
			scales = append(scales, *l.scale)
		}
		if i >= nearest && !g.Internal[l.value] {
			return l.value, scales
		}
	}
	return "", nil
}

// rearrangementsOf returns the values before v that have the same elements in another
// shape or order of dimensions, nearest first.
func rearrangementsOf(g *graph.Graph, v string) (list []string) {
	for {
		n := g.Producer[v]
		if !ir.Standard(n, "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose") || !g.IsData(n.Inputs[0]) {
			return list
		}
		if v = n.Inputs[0]; !g.Internal[v] {
			list = append(list, v)
		}
	}
}

// CacheUpdate is where keys or values go to a cache: a Concat that appends new rows to
// past, or a Scatter that writes them into a cache of fixed size. Without past it is
// the node that gives rotated keys as a graph output.
type CacheUpdate struct {
	Concat  *onnx.Node // the node that gives present: Concat, Scatter or another
	Past    string     // made of graph inputs alone; "" where the model reads no cache
	NewRows string
	Present string
	Places  string // the indices of a Scatter, which writes new rows into a cache of fixed size; "" for others
}

// cacheUpdateAt returns the cache update that n is, nil where it is none.
func cacheUpdateAt(g *graph.Graph, n *onnx.Node) *CacheUpdate {
	if c := slotsAt(g, n); c != nil {
		return c
	}
	if !ir.Standard(n, "Concat") || len(n.Inputs) != 2 {
		return nil
	}
	first, second := isCache(g, n.Inputs[0]), isCache(g, n.Inputs[1])
	if !first || second {
		return nil
	}
	return &CacheUpdate{Concat: n, Past: n.Inputs[0], NewRows: n.Inputs[1], Present: n.Outputs[0]}
}

// isCache reports whether a value is a cache: made of a float graph input, without
// arithmetic.
func isCache(g *graph.Graph, value string) bool {
	if !g.IsData(value) {
		return false
	}
	n := g.Producer[value]
	if n == nil {
		return g.Inputs[value] != nil
	}
	if !ir.Standard(n, "Identity", "Slice", "Split", "Gather", "Squeeze", "Unsqueeze", "Reshape", "Transpose", "Cast") {
		return false
	}
	return isCache(g, n.Inputs[0])
}
