package measure

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
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
			return graph.Refuse(t.Node, "its query is multiplied by numbers that the caller gives (the input %q), which look like cosines, angles or places; expected integer positions, from which the graph computes angles", short.Name(input))
		}
		if v := severalPerToken(g, t.By); v != nil {
			return graph.Refuse(t.Node, "its query is rotated by the input %q, which has %d numbers for each token, as rows and columns of an image are given; expected one position for each, [batch, length]", short.Name(v.Name), v.Shape[len(v.Shape)-1].Value)
		}
		if im.onGrid(t.By) {
			return graph.Refuse(t.Node, "2-D positions: its query is rotated by the rows and columns of a grid, as the patches of an image are (each channel of %q follows the one or the other); expected rotation by one position of each token", short.Name(t.By))
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

// mostPatches bounds the tables that are looked at.
const mostPatches = 16_384

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
	if len(wide) != 2 || wide[0] > mostPatches {
		return false
	}
	return ofGrid(table.Values(), wide[0], wide[1])
}

// value computes a value.
func (im *imageSizes) value(value string) (none engine.Tensor, _ error) {
	if im.left--; im.left < 0 {
		return none, fmt.Errorf("it needs more than %d values, the limit", mostTables)
	}
	p, err := im.piece(value)
	if err != nil {
		return none, err
	}
	table := &eval.ShapeTable{Sizes: map[string][]dim.Extent{}}
	for _, s := range p.Sizes {
		if table.Sizes[s], err = im.size(s); err != nil {
			return none, err
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

// piece is what computes a value, from sizes alone.
func (im *imageSizes) piece(value string) (*eval.Piece, error) {
	g, p, needed := im.g, &eval.Piece{Graph: im.g, Outputs: []string{value}}, map[*onnx.Node]bool{}
	var wrong error
	g.Upstream(p.Outputs, func(v string, n *onnx.Node) []string {
		switch {
		case g.Constants[v] != nil:
			t := g.Constants[v].Clone()
			t.Name = v
			p.Consts = append(p.Consts, t)
		case n == nil:
			wrong = cmp.Or(wrong, fmt.Errorf("it also depends on the input %q", short.Name(v)))
		case ir.Standard(n, "Shape", "Size") && g.Classes[v] != graph.ConstantClass:
			p.Sizes = append(p.Sizes, v)
		default:
			wrong = cmp.Or(wrong, g.Evaluable(n))
			needed[n] = true
			return ir.Reads(n)
		}
		return nil
	})
	for _, n := range g.Nodes {
		if needed[n] {
			p.Nodes = append(p.Nodes, n)
		}
	}
	return p, wrong
}

// size is what a Shape or Size gives for an image.
func (im *imageSizes) size(value string) (list []dim.Extent, err error) {
	n := im.g.Producer[value]
	dims := []int64{1, 1, imageHeight, imageWidth}
	if !image(im.g, n.Inputs[0]) {
		if im.g.IsData(n.Inputs[0]) {
			return nil, fmt.Errorf("it depends on the size of %q", short.Name(n.Inputs[0]))
		}
		of, err := im.value(n.Inputs[0])
		if err != nil {
			return nil, err
		}
		dims = of.Dims
	}
	if ir.Standard(n, "Size") {
		return []dim.Extent{dim.ConstantExtent(engine.Elements(dims))}, nil
	}
	from, to := n.Int("start", 0), n.Int("end", int64(len(dims)))
	if from < 0 || to < from || to > int64(len(dims)) {
		return nil, fmt.Errorf("it depends on the size %q", short.Name(value))
	}
	for _, d := range dims[from:to] {
		list = append(list, dim.ConstantExtent(d))
	}
	return list, nil
}

// image reports whether a value has four dimensions, as far as the graph says so at once: an input,
// or the output of a Conv over an image.
func image(g *graph.Graph, value string) bool {
	for ir.Standard(g.Producer[value], "Cast", "Identity") {
		value = g.Producer[value].Inputs[0]
	}
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

// ofGrid reports whether each channel of a table follows one of two places of a token, its row
// and its column say, of which each pair belongs to one token.
func ofGrid(values []float64, tokens, channels int64) bool {
	axes := make([][]int, 2) // of each token, which of the equal numbers of a channel it has
	var counts [2]int
	for i := range axes {
		for c := range channels {
			class, n := classes(values, tokens, channels, c)
			if n > counts[i] && n < int(tokens) && (i == 0 || !follows(class, axes[0])) {
				axes[i], counts[i] = class, n
			}
		}
	}
	if counts[0] < 2 || counts[1] < 2 || counts[0]*counts[1] != int(tokens) {
		return false
	}
	pairs := map[[2]int]bool{}
	for i := range tokens {
		pairs[[2]int{axes[0][i], axes[1][i]}] = true
	}
	for c := range channels {
		if class, _ := classes(values, tokens, channels, c); !follows(class, axes[0]) && !follows(class, axes[1]) {
			return false
		}
	}
	return len(pairs) == int(tokens)
}

// classes numbers the tokens by the value of one channel, equal values alike, and returns how many
// there are.
func classes(values []float64, tokens, channels, channel int64) (class []int, count int) {
	const rounding = 1e-5
	order := make([]int64, tokens)
	for i := range order {
		order[i] = int64(i)
	}
	at := func(i int64) float64 { return values[i*channels+channel] }
	slices.SortFunc(order, func(a, b int64) int { return cmp.Compare(at(a), at(b)) })
	class = make([]int, tokens)
	for k, i := range order {
		if k > 0 && !(at(i)-at(order[k-1]) <= rounding) {
			count++
		}
		class[i] = count
	}
	return class, count + 1
}

// follows reports whether tokens of one class of an axis are of one class.
func follows(class, axis []int) bool {
	of := map[int]int{}
	for i, a := range axis {
		if known, seen := of[a]; seen && known != class[i] {
			return false
		}
		of[a] = class[i]
	}
	return true
}
