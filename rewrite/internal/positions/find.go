package positions

import (
	"context"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Computed is a value of the graph that holds the positions of a call's new tokens.
type Computed struct {
	Value  string
	Type   onnx.DataType
	Dims   []dim.Extent      // a batch or none, then the length, or past and length; all others are 1
	Inputs []*onnx.ValueInfo // the graph inputs that it is computed from
	Mask   *onnx.ValueInfo   // that of them which may be a padding mask; nil where none is
	Ids    *onnx.ValueInfo   // that of them which holds positions; nil where none does
	About
}

// Info is the value as an input of a piece.
func (c *Computed) Info() *onnx.ValueInfo { return &onnx.ValueInfo{Name: c.Value, Type: c.Type} }

// OfAll reports whether it holds the positions of cached tokens too, in front of those of new ones.
func (c *Computed) OfAll() bool { return ofAll(c.Dims) }

func ofAll(dims []dim.Extent) bool { return slices.Contains(dims, dim.TotalExtent) }

// mostCandidates is how many values are evaluated, the nearest to the rotation first.
const mostCandidates = 12

// Find returns the positions by which the nodes between boundaries and out turn tokens, where the
// graph computes them. It returns nil where these are a graph input or the indices of tokens, or
// where no one value holds them. mask is the padding mask, nil where it is not known.
func Find(ctx context.Context, ev *eval.Evaluator, out string, boundaries []string, mask *onnx.ValueInfo) (*Computed, error) {
	if t := ev.Table; t.Slotted() || t.Source || tracksLength(ev.Graph) {
		return nil, nil // indices do not tell what stands where
	}
	list, dims, err := candidates(ctx, ev, out, boundaries)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	r, err := open(ctx, ev, list, dims, mask)
	if err != nil {
		return nil, bisect.OnlyEnded(err)
	}
	defer r.Close()
	c, err := r.choose(ctx)
	if err != nil || c == nil {
		return nil, bisect.OnlyEnded(err)
	}
	r.values = []string{c.Value}
	given, err := r.given(ctx, c)
	if err != nil || given {
		return nil, bisect.OnlyEnded(err)
	}
	if err = r.about(ctx, c); err != nil {
		return nil, bisect.OnlyEnded(err)
	}
	if c.Indices {
		return nil, nil
	}
	return c, nil
}

// tracksLength reports whether a cache of the graph has a length for each row.
func tracksLength(g *graph.Graph) bool {
	for _, c := range g.LengthTracked {
		if c != nil {
			return true
		}
	}
	return false
}

// candidates returns the values that everything passes through which tells tokens apart, and that
// have the shape of positions, the nearest to out first.
func candidates(ctx context.Context, ev *eval.Evaluator, out string, boundaries []string) (list []string, dims map[string][]dim.Extent, err error) {
	passed := dominators(ev.Graph, out, boundaries)
	if len(passed) == 0 || !slices.ContainsFunc(passed, func(v string) bool { return !rearrangesInput(ev.Graph, v) }) {
		return nil, nil, nil
	}
	p, err := eval.Extract(ev.Graph, passed[:1], nil)
	if err != nil {
		return nil, nil, nil
	}
	if dims, err = ev.Dims(ctx, p); err != nil {
		return nil, nil, bisect.OnlyEnded(err)
	}
	for _, v := range passed {
		if ev.Table.Static != (dim.Point{}) {
			dims[v] = ev.Table.Reading(dims[v], ev.Table.RowsAt(dims[v]), dim.LengthExtent)
		}
		if oneForEach(dims[v]) && len(list) < mostCandidates {
			list = append(list, v)
		}
	}
	return list, dims, nil
}

// oneForEach reports whether a value of this shape has one element for each new token, or for each token
// so far, of each row of the batch or of all.
func oneForEach(dims []dim.Extent) bool {
	rows := 0
	for i, d := range dims {
		switch {
		case d == dim.LengthExtent, d == dim.TotalExtent:
			rows++
		case d == dim.BatchExtent && i == 0 && rows == 0:
		case d != dim.ConstantExtent(1):
			return false
		}
	}
	return rows == 1
}

// rearrangesInput reports whether a value is a graph input in another shape or type.
func rearrangesInput(g *graph.Graph, v string) bool {
	for ir.Standard(g.Producer[v], "Cast", "Identity", "Reshape", "Unsqueeze", "Squeeze", "Expand") {
		v = g.Producer[v].Inputs[0]
	}
	return g.Inputs[v] != nil
}

// dominators returns the values between the sources of positions and out that lie on every way, in
// numbers that positions may have, the nearest to out first. The sources are the integer inputs;
// where there are none, the sizes that become numbers.
func dominators(g *graph.Graph, out string, boundaries []string) (list []string) {
	class := graph.PositionClass
	inside := between(g, out, boundaries, "", class)
	if !inside.reaches {
		class = graph.ShapeClass
		if inside = between(g, out, boundaries, "", class); !inside.reaches {
			return nil
		}
	}
	for _, v := range inside.values {
		t := g.Element(v)
		if g.Producer[v] == nil || g.Internal[v] || g.IsData(v) || g.Classes[v] < graph.ShapeClass {
			continue
		}
		if t != onnx.Int64 && t != onnx.Int32 && t != onnx.Float && t != onnx.Double {
			continue
		}
		if !between(g, out, boundaries, v, class).reaches {
			list = append(list, v)
		}
	}
	slices.SortStableFunc(list, func(a, b string) int { return g.Order[g.Producer[b]] - g.Order[g.Producer[a]] })
	return list
}

// ways is what lies between boundaries and a value.
type ways struct {
	values  []string
	reaches bool // a source is among it
}

// between walks from out to boundaries and sources, past one value. What only says where numbers
// go (shapes, ends of slices) is left out, unless it depends on an integer input.
func between(g *graph.Graph, out string, boundaries []string, past string, class graph.Class) (w ways) {
	g.Upstream([]string{out}, func(v string, n *onnx.Node) []string {
		switch {
		case v == past || slices.Contains(boundaries, v) || g.Classes[v] == graph.ConstantClass:
			return nil
		case n == nil:
			w.reaches = w.reaches || class == graph.PositionClass && g.Classes[v] == class
			return nil
		case g.Classes[v] == graph.ShapeClass && ir.Standard(n, "Shape", "Size"):
			w.reaches = w.reaches || class == graph.ShapeClass
			return nil
		}
		w.values = append(w.values, v)
		reads := ir.Reads(n)
		if class == graph.ShapeClass && ir.Standard(n, "Reshape", "Expand", "Slice", "Tile", "Unsqueeze", "Squeeze", "Pad", "Split") {
			return n.Inputs[:1]
		}
		return reads
	})
	return w
}
