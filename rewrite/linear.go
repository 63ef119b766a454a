package rewrite

import "github.com/rope-rewrite/rope-rewrite/onnx"

// linear reports whether n's output is linear in its one or two data inputs,
// so that a rotation may hide in it. Adding a constant is not linear.
func (g *graph) linear(n *onnx.Node) bool {
	if n == nil {
		return false
	}
	dataInputs := 0
	for _, v := range n.Inputs {
		if g.isData(v) {
			dataInputs++
		}
	}
	first := len(n.Inputs) > 0 && g.isData(n.Inputs[0])
	switch {
	case standard(n, "Identity", "Neg", "Slice", "Split", "Reshape", "Transpose", "Expand", "Gather", "GatherND",
		"Squeeze", "Unsqueeze", "Flatten", "Tile", "Cast", "Pad", "Dropout"):
		return first && dataInputs == 1
	case standard(n, "Concat", "Add", "Sub"):
		return dataInputs == len(n.Inputs)
	case standard(n, "Mul"):
		return dataInputs == 1
	case standard(n, "Div"):
		return first && dataInputs == 1
	case standard(n, "Where"):
		return len(n.Inputs) == 3 && !g.isData(n.Inputs[0])
	case scatters(n): // writes channels into a larger value
		return dataInputs > 0 && !g.isData(n.Inputs[1])
	case standard(n, "MatMul"):
		return dataInputs == 1 && !g.weightProduct(n)
	case standard(n, "RotaryEmbedding") || n.Domain == "com.microsoft" && n.OpType == "RotaryEmbedding":
		return first && dataInputs == 1
	}
	return false
}

// essential reports whether n must stand inside a site: it multiplies by
// something that depends on positions or sizes, or repeats heads. Heads that are
// repeated before they are stored are stored like that, outside the site.
func (g *graph) essential(n *onnx.Node, stored bool) bool {
	switch {
	case standard(n, "Mul", "Div", "MatMul", "Where"):
		for _, v := range n.Inputs {
			if c := g.classes[v]; c == positionClass || c == shapeClass || g.perToken(v) {
				return true
			}
		}
	case n.OpType == "RotaryEmbedding", scatters(n):
		return true
	case standard(n, "Expand", "Tile", "GatherND"):
		return !stored
	}
	return false
}

// link is a value that every path from a root back to the hidden states goes
// through. essential: a node that must stand inside the site lies between it
// and the nearer link.
type link struct {
	value     string
	essential bool
	scale     *tokenScale // what the nearer link multiplies it by; nil for most
}

// dominators returns the links of root, nearest first, as far back as
// everything is linear. It stops at a cache Concat. stored says that root is
// what a cache holds; rest, that an essential node lies before the last link.
func (g *graph) dominators(root string, stored bool) (links []link, rest bool) {
	frontier := map[string]bool{root: true}
	crossed := false
	var scale *tokenScale
	for {
		if len(frontier) == 1 {
			var value string
			for v := range frontier {
				value = v
			}
			links = append(links, link{value, crossed, scale})
			crossed, scale = false, g.tokenScale(g.producer[value])
			if scale != nil { // of what stands beside others it would be none
				frontier = map[string]bool{scale.of: true}
				continue
			}
		}
		value, found := "", false
		for v := range frontier {
			n := g.producer[v]
			if !g.linear(n) || g.cacheConcat(n) != nil {
				continue
			}
			if !found || g.order[n] > g.order[g.producer[value]] {
				value, found = v, true
			}
		}
		if !found {
			return links, crossed
		}
		n := g.producer[value]
		// Several outputs of one Split are one step back.
		for _, o := range n.Outputs {
			delete(frontier, o)
		}
		crossed = crossed || g.essential(n, stored)
		for _, v := range n.Inputs {
			if g.isData(v) {
				frontier[v] = true
			}
		}
	}
}

// nearestCut returns the link nearest to the root with nothing essential
// upstream that is a value of the model, "" when there is none, and the scales
// between it and the root.
func (g *graph) nearestCut(links []link) (value string, scales []tokenScale) {
	cut := 0
	for i, l := range links {
		if l.essential {
			cut = i
		}
	}
	for i, l := range links {
		if l.scale != nil {
			scales = append(scales, *l.scale)
		}
		if i >= cut && !g.internal[l.value] {
			return l.value, scales
		}
	}
	return "", nil
}

// before returns the values that v is a mere rearrangement of, nearest first:
// the same elements under another shape or order of dimensions.
func (g *graph) before(v string) (list []string) {
	for {
		n := g.producer[v]
		if !standard(n, "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose") || !g.isData(n.Inputs[0]) {
			return list
		}
		if v = n.Inputs[0]; !g.internal[v] {
			list = append(list, v)
		}
	}
}

// cache is a Concat that appends new keys or values to those of earlier calls, a
// Scatter that writes them into a cache of fixed size, or, where there are no
// earlier ones, the keys that a call gives away for later ones.
type cache struct {
	concat  *onnx.Node // the node that makes present
	past    string     // reaches nothing but graph inputs; "" where there are no earlier calls
	fresh   string
	present string
	slots   bool // new rows are written over others of a cache of fixed size, at places that the call names
}

func (g *graph) cacheConcat(n *onnx.Node) *cache {
	if standard(n, "ScatterND", "ScatterElements") && len(n.Inputs) == 3 && g.fromInputs(n.Inputs[0]) && !g.isData(n.Inputs[1]) &&
		g.isData(n.Inputs[2]) && !g.fromInputs(n.Inputs[2]) {
		return &cache{concat: n, past: n.Inputs[0], fresh: n.Inputs[2], present: n.Outputs[0], slots: true}
	}
	if !standard(n, "Concat") || len(n.Inputs) != 2 {
		return nil
	}
	first, second := g.fromInputs(n.Inputs[0]), g.fromInputs(n.Inputs[1])
	if !first || second {
		return nil
	}
	return &cache{concat: n, past: n.Inputs[0], fresh: n.Inputs[1], present: n.Outputs[0]}
}

// fromInputs reports whether a data value is made of float graph inputs alone,
// without arithmetic: a cache.
func (g *graph) fromInputs(value string) bool {
	if !g.isData(value) {
		return false
	}
	n := g.producer[value]
	if n == nil {
		return g.inputs[value] != nil
	}
	if !standard(n, "Identity", "Slice", "Split", "Gather", "Squeeze", "Unsqueeze", "Reshape", "Transpose", "Cast") {
		return false
	}
	return g.fromInputs(n.Inputs[0])
}
