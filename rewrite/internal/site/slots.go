package site

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Caches of fixed size (transformers' StaticCache): past and present are buffers, and a
// Scatter writes the rows of new tokens at places that an input of the call tells. A
// TensorScatter (opset 24) has a place for each row of the batch.

// slotsAt returns the cache update that n is, where n is such a Scatter, or the Transpose
// behind one that stands between two: index_copy along an inner axis is exported so.
func slotsAt(g *graph.Graph, n *onnx.Node) *CacheUpdate {
	if ir.Standard(n, "TensorScatter") && len(n.Inputs) == 3 && isCache(g, n.Inputs[0]) && g.IsData(n.Inputs[1]) && !isCache(g, n.Inputs[1]) && !g.IsData(n.Inputs[2]) {
		return &CacheUpdate{Concat: n, Past: n.Inputs[0], NewRows: n.Inputs[1], Present: n.Outputs[0], Places: n.Inputs[2]}
	}
	scatter := n
	var order []int64
	if ir.Standard(n, "Transpose") {
		scatter, order = g.Producer[n.Inputs[0]], n.Ints("perm")
	}
	if !ir.Standard(scatter, "ScatterND", "ScatterElements") || len(scatter.Inputs) != 3 || !isCache(g, scatter.Inputs[0]) ||
		g.IsData(scatter.Inputs[1]) || !g.IsData(scatter.Inputs[2]) || isCache(g, scatter.Inputs[2]) {
		return nil
	}
	past := scatter.Inputs[0]
	if scatter != n {
		before := g.Producer[past]
		if !ir.Standard(before, "Transpose") || !inverse(before.Ints("perm"), order) {
			return nil
		}
		past = before.Inputs[0]
	}
	return &CacheUpdate{Concat: n, Past: past, NewRows: scatter.Inputs[2], Present: n.Outputs[0], Places: scatter.Inputs[1]}
}

// inverse reports whether two orders of dimensions cancel out.
func inverse(a, b []int64) bool {
	if len(a) == 0 || len(a) != len(b) {
		return false
	}
	for i, x := range a {
		if x < 0 || x >= int64(len(b)) || b[x] != int64(i) {
			return false
		}
	}
	return true
}

// updates returns the site's cache updates by place, nil where its caches grow.
func (s *Site) updates() (list []*CacheUpdate) {
	for _, b := range []Branch{s.Key, s.Value} {
		if c := b.Cache; c != nil && c.Places != "" {
			list = append(list, c)
		}
	}
	return list
}

// readSlots says in t how the sites' caches of fixed size are written. In t a buffer then
// has as many rows as there are tokens, past + length: measurements are of full buffers.
// Where that cannot be said, Slots has the reason.
func readSlots(sites []*Site, t *eval.ShapeTable) {
	var slotted []*Site
	for _, s := range sites {
		if len(s.updates()) > 0 {
			slotted = append(slotted, s)
		}
	}
	if len(slotted) == 0 {
		return
	}
	found, err := findSlots(slotted, sites, t)
	if t.Slots = found; err != nil {
		t.Slots = &eval.Slots{Refused: err}
		return
	}
	if found.Rows == 0 {
		return
	}
	t.Past = true
	for name, dims := range t.Inputs {
		at := len(dims) - 1 // a mask
		if len(dims) == 4 {
			at = 2
		}
		if name != found.Input.Name && len(dims) > 1 {
			t.Inputs[name] = found.Full(dims, at)
		}
	}
	for _, s := range slotted {
		full := map[string]int{s.Scores(): 3, s.SoftmaxInput(): 3, s.Key.Operand: -1, s.Value.Operand: -2}
		for _, c := range s.updates() {
			full[c.Past], full[c.Present] = 2, 2
		}
		for v, at := range full {
			if at < 0 {
				at += len(t.Dims[v])
			}
			t.Dims[v] = found.Full(t.Dims[v], at)
		}
	}
}

// findSlots returns how the slotted ones among all sites write their caches.
func findSlots(slotted, all []*Site, t *eval.ShapeTable) (*eval.Slots, error) {
	var inputs []*onnx.ValueInfo
	var rows []dim.Extent
	for _, s := range slotted {
		for _, c := range s.updates() {
			s.Graph.Upstream([]string{c.Places}, func(v string, n *onnx.Node) []string {
				if n == nil && s.Graph.Classes[v] == graph.PositionClass && !slices.Contains(inputs, s.Graph.Inputs[v]) {
					inputs = append(inputs, s.Graph.Inputs[v])
				}
				if n == nil || ir.Standard(n, "Shape", "Size") {
					return nil
				}
				return ir.Reads(n)
			})
			dims := t.Dims[c.Past]
			if len(dims) != 4 {
				return nil, fmt.Errorf("the cache %q has the shape %v; expected [batch, heads, rows, channels]", short.Name(c.Past), dims)
			}
			if !slices.Contains(rows, dims[2]) {
				rows = append(rows, dims[2])
			}
		}
	}
	switch {
	case len(inputs) != 1:
		return nil, fmt.Errorf("%d inputs say where new keys are written; expected one", len(inputs))
	case len(rows) != 1:
		return nil, fmt.Errorf("its caches have %v and %v rows; expected one size", rows[0], rows[1])
	case t.Static != (dim.Point{}):
		return nil, fmt.Errorf("%s", t.SizesSentence())
	}
	for _, s := range all {
		if len(s.updates()) == 0 && s.Past() {
			return nil, fmt.Errorf("another attention layer's cache grows")
		}
	}
	slots := &eval.Slots{Input: inputs[0]}
	switch rows := rows[0]; {
	case rows == dim.TotalExtent:
	case rows.Constant() && !t.Past:
		slots.Rows = rows.One
	default:
		return nil, fmt.Errorf("its caches have %v rows; expected a number or one open size", rows)
	}
	dims := t.Inputs[slots.Input.Name]
	for i, e := range dims {
		if e != dim.ConstantExtent(1) && (e != dim.LengthExtent || i != len(dims)-1) {
			return nil, fmt.Errorf("the input %q, which says where new keys are written, has the shape %v; expected one place for each token, the same for all rows of a batch", short.Name(slots.Input.Name), dims)
		}
	}
	return slots, nil
}
