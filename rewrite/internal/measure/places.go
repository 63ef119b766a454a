package measure

import (
	"context"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// Tokens that are no text have other places than one position each: patches of an image have
// rows and columns. Such a rotation is looked for only to be named in the reason why a site
// is unchanged.

// OtherPlaces says what rotates the query of a core where that is not one position of each
// token, nil where nothing of the kind is seen.
func OtherPlaces(ctx context.Context, eng engine.Engine, g *graph.Graph, c site.Core) error {
	im := imageSizes{ctx, eng, g, mostTables}
	for _, t := range site.Turns(g, c.ScoresMatMul.Inputs[:1]) {
		if input := site.GivenAlone(g, t.By); input != "" {
			return graph.Refuse(t.Node, "its query is multiplied by numbers that the caller gives (the input %q), which look like cosines, angles or places; integer positions, from which the graph computes angles, were expected", input)
		}
		if v := severalPerToken(g, t.By); v != nil {
			return graph.Refuse(t.Node, "its query is rotated by the input %q, which has %d numbers for each token, as rows and columns of an image are given; one position for each, [batch, length], was expected", v.Name, v.Shape[len(v.Shape)-1].Value)
		}
		if im.onGrid(t.By) {
			return graph.Refuse(t.Node, "2-D positions: its query is rotated by the rows and columns of a grid, as the patches of an image are (%q repeats itself in some channels and stays for a row in others); rotation by one position of each token was expected", t.By)
		}
	}
	return nil
}

// severalPerToken returns an integer input that a value is computed from and that has a few
// numbers for each of a number of tokens that is open.
func severalPerToken(g *graph.Graph, value string) (found *onnx.ValueInfo) {
	const most = 4
	g.Upstream([]string{value}, func(v string, n *onnx.Node) []string {
		if n != nil {
			if ir.Standard(n, "Shape", "Size") {
				return nil
			}
			return ir.Reads(n)
		}
		if in := g.Inputs[v]; in != nil && g.Classes[v] == graph.PositionClass && len(in.Shape) > 1 {
			before, last := in.Shape[len(in.Shape)-2], in.Shape[len(in.Shape)-1]
			if !before.Known() && last.Value > 1 && last.Value <= most {
				found = in
			}
		}
		return nil
	})
	return found
}

// The size of an image for which tables are computed. A patch has few rows and columns of it.
const imageHeight, imageWidth = 160, 96

// mostTables bounds how many values are computed for the reason of one site.
const mostTables = 64

// imageSizes computes values that depend on nothing but the size of an image.
type imageSizes struct {
	ctx  context.Context
	eng  engine.Engine
	g    *graph.Graph
	left int // values that may still be computed
}

// onGrid reports whether a table [tokens, channels] is that of a grid: each channel follows the
// row of a token or its column, and there are channels of both kinds.
func (im *imageSizes) onGrid(value string) bool {
	table, err := im.value(value)
	if err != nil {
		return false
	}
	var wide []int64
	for _, d := range table.Dims {
		if d > 1 {
			wide = append(wide, d)
		}
	}
	if len(wide) != 2 {
		return false
	}
	values, tokens := table.Values(), wide[0]
	for columns := int64(2); columns <= tokens/2; columns++ {
		if tokens%columns == 0 && ofGrid(values, tokens, wide[1], columns) {
			return true
		}
	}
	return false
}

func (im *imageSizes) value(value string) (none engine.Tensor, _ error) {
	if im.left--; im.left < 0 {
		return none, fmt.Errorf("it takes more than %d values", mostTables)
	}
	g := im.g
	p, err := eval.Extract(g, []string{value}, nil)
	if err != nil {
		return none, err
	}
	if len(p.Inputs) > 0 {
		return none, fmt.Errorf("it also depends on the input %q", p.Inputs[0].Name)
	}
	table := &eval.ShapeTable{Sizes: map[string][]dim.Extent{}}
	for _, s := range p.Sizes {
		n := g.Producer[s]
		dims := []int64{1, 1, imageHeight, imageWidth}
		switch {
		case !ir.Standard(n, "Shape"):
			return none, fmt.Errorf("it depends on the size %q", s)
		case !g.IsData(n.Inputs[0]):
			of, err := im.value(n.Inputs[0])
			if err != nil {
				return none, err
			}
			dims = of.Dims
		case !image(g, n.Inputs[0]):
			return none, fmt.Errorf("it depends on the size of %q", n.Inputs[0])
		}
		from, to := n.Int("start", 0), n.Int("end", int64(len(dims)))
		if from < 0 || to < from || to > int64(len(dims)) {
			return none, fmt.Errorf("it depends on the size %q", s)
		}
		for _, d := range dims[from:to] {
			table.Sizes[s] = append(table.Sizes[s], dim.ConstantExtent(d))
		}
	}
	const unread = "rope-rewrite/unread" // the binding runs no model without inputs
	p.Typed = append(p.Typed, &onnx.ValueInfo{Name: unread, Type: onnx.Int64})
	loaded, err := (&eval.Loader{Engine: im.eng, Table: table}).Load(im.ctx, p)
	if err != nil {
		return none, err
	}
	defer loaded.Session.Close()
	results, err := loaded.Run(im.ctx, dim.Point{B: 1, L: 1}, map[string]engine.Tensor{unread: engine.Int64s([]int64{0}, 1)})
	return results[value], err
}

// image reports whether a value has four dimensions, as far as the graph says so at once: an input,
// or the output of a Conv over an image.
func image(g *graph.Graph, value string) bool {
	if in := g.Inputs[value]; in != nil {
		return len(in.Shape) == 4
	}
	n := g.Producer[value]
	if !ir.Standard(n, "Conv") {
		return false
	}
	kernel := g.Constants[n.Inputs[1]]
	return kernel != nil && len(kernel.Dims) == 4
}

// ofGrid reports whether each channel of a table follows the row or the column of a token, where
// rows have so many tokens, and some channels the one, some the other.
func ofGrid(values []float64, tokens, channels, columns int64) bool {
	const rounding = 1e-5
	byRow, byColumn := false, false
	for c := range channels {
		row, column, varies := true, true, false
		for i := range tokens {
			x := values[i*channels+c]
			varies = varies || math.Abs(x-values[c]) > rounding
			row = row && math.Abs(x-values[(i-i%columns)*channels+c]) <= rounding
			column = column && math.Abs(x-values[i%columns*channels+c]) <= rounding
		}
		if !row && !column {
			return false
		}
		byRow, byColumn = byRow || row && varies, byColumn || column && varies
	}
	return byRow && byColumn
}
