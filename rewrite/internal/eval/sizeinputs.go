package eval

import (
	"context"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// SizeInputs returns the values computed from sizes that enter the nodes between
// cuts and output beside the hidden states: factors, which change what is
// computed, and arguments (shapes, bounds of slices), which change where it lies.
func SizeInputs(g *graph.Graph, output string, cuts []string) (factors, arguments []string) {
	g.Upstream([]string{output}, func(v string, n *onnx.Node) (next []string) {
		if slices.Contains(cuts, v) || !g.IsData(v) || n == nil {
			return nil
		}
		places := ir.Standard(n, "Reshape", "Expand", "Slice", "Tile", "Unsqueeze", "Squeeze", "Pad", "Split", "Gather", "GatherND")
		for _, in := range n.Inputs {
			made := g.Producer[in]
			switch {
			case slices.Contains(cuts, in): // a scale of tokens
			case g.Classes[in] != graph.ShapeClass:
				next = append(next, in)
			case ir.Standard(made, "Shape", "Size"): // what was measured already
			case ir.Scatters(n) && in == n.Inputs[1]: // see placedAlike
			case g.Uniform(in) != "": // one number, of a size
				arguments = append(arguments, g.Uniform(in))
			case places:
				arguments = append(arguments, in)
			default:
				factors = append(factors, in)
			}
		}
		return next
	})
	return ir.Unique(factors), ir.Unique(arguments)
}

// Steady checks that what is done between cuts and output stays the same when
// there are very many tokens: everything else is measured with few, since
// hidden states of 131,072 tokens are large. Only sizes are computed here.
func (l *Evaluator) Steady(ctx context.Context, at *onnx.Node, what, output string, cuts []string) error {
	if err := l.PlacedAlike(ctx, at, what, output, cuts); err != nil {
		return err
	}
	factors, arguments := SizeInputs(l.Graph, output, cuts)
	return l.SteadySizes(ctx, at, what, factors, arguments)
}

// SteadySizes checks that factors are always the same and that arguments
// follow from batch, length and past.
func (l *Evaluator) SteadySizes(ctx context.Context, at *onnx.Node, what string, factors, arguments []string) error {
	asked := ir.Unique(append(slices.Clone(factors), arguments...))
	if len(asked) == 0 {
		return nil
	}
	loaded, err := l.LoadFlat(ctx, asked)
	if err != nil {
		return graph.Refuse(at, "%s depends on sizes in a way that cannot be evaluated: %v", what, err)
	}
	defer loaded.Session.Close()
	points := dim.SamplePoints(l.Table.Past)
	few := len(points)
	for _, far := range []int64{dim.Longest, 20_011, 4_097} {
		pt := dim.Point{B: 1, L: 1, P: far}
		if !l.Table.Past {
			pt = dim.Point{B: 1, L: far}
		}
		points = append(points, pt)
	}
	values := map[string][][]float64{}
	for _, pt := range points {
		results, err := loaded.Run(ctx, l.Table.Within(pt), nil)
		if err != nil {
			return graph.Refuse(at, "%s cannot be evaluated with %v: %v", what, pt, err)
		}
		for _, name := range asked {
			values[name] = append(values[name], results[name+FlatSuffix].Values())
		}
	}
	for _, name := range factors {
		for i, v := range values[name] {
			if !slices.Equal(v, values[name][0]) {
				return graph.Refuse(at, "%s is changed by %q, which is %s with %v and %s with %v; one value was expected",
					what, name, brief(values[name][0]), points[0], brief(v), points[i])
			}
		}
	}
	for _, name := range arguments {
		var rows [][]int64
		for _, v := range values[name] {
			row := make([]int64, len(v))
			for i, x := range v {
				row[i] = int64(x)
			}
			rows = append(rows, row)
		}
		fit, ok := dim.FitAll(points[:few], rows[:few])
		if !ok {
			return graph.Refuse(at, "%s reads %q, which does not follow from batch, length and past: it is %v with %v and %v with %v",
				what, name, rows[0], points[0], rows[few-1], points[few-1])
		}
		for i := few; i < len(points); i++ {
			if want := dim.Evaluate(fit, points[i]); !slices.Equal(rows[i], want) {
				return graph.Refuse(at, "%s reads %q, which is %v with %v; %v was expected", what, name, rows[i], points[i], want)
			}
		}
	}
	return nil
}

const FlatSuffix = "/rope-rewrite/flat"

// LoadFlat loads the piece that computes values from sizes alone, each as a
// list: the binding has no tensors without dimensions. Some values may be fed.
func (l *Evaluator) LoadFlat(ctx context.Context, values []string, fed ...*onnx.ValueInfo) (*Loaded, error) {
	var cuts []string
	for _, v := range fed {
		cuts = append(cuts, v.Name)
	}
	p, err := Extract(l.Graph, slices.Clone(values), cuts)
	if err != nil {
		return nil, err
	}
	p.Boundaries, p.Typed = nil, slices.DeleteFunc(slices.Clone(fed), func(v *onnx.ValueInfo) bool { return !p.Reads(v.Name) })
	list := ir.Int64Tensor(FlatSuffix, []int64{1}, -1)
	p.Consts = append(p.Consts, list)
	for i, v := range values {
		flat := onnx.NewNode("Reshape", []string{v, list.Name}, []string{v + listSuffix})
		p.Nodes = append(p.Nodes, flat, ir.Cast(v+listSuffix, v+FlatSuffix, onnx.Double))
		p.Outputs[i] = v + FlatSuffix
	}
	return l.Load(ctx, p)
}

// brief shows a value by its first elements.
func brief(v []float64) string {
	if len(v) > 4 {
		return fmt.Sprintf("%g and %d more", v[:4], len(v)-4)
	}
	return fmt.Sprintf("%g", v)
}
