package eval

import (
	"context"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Steady checks that what the nodes between boundaries and output do stays the same with
// very many tokens. Only the sizes that they read are computed here: everything else is
// measured with few tokens, since hidden states of 131,072 tokens are large. The error is
// a refusal, which names the node at, and the nodes as what says.
func (e *Evaluator) Steady(ctx context.Context, at *onnx.Node, what, output string, boundaries []string) error {
	if err := e.PlacedAlike(ctx, at, what, output, boundaries); err != nil {
		return err
	}
	factors, arguments := SizeInputs(e.Graph, output, boundaries)
	return e.SteadySizes(ctx, at, what, factors, arguments)
}

// SteadySizes checks that factors are the same at all sizes, and that arguments follow
// from batch, length and past.
func (e *Evaluator) SteadySizes(ctx context.Context, at *onnx.Node, what string, factors, arguments []string) error {
	asked := ir.Unique(append(slices.Clone(factors), arguments...))
	if len(asked) == 0 {
		return nil
	}
	loaded, err := e.LoadFlat(ctx, asked)
	if err != nil {
		return graph.Refuse(at, "%s depends on sizes in a way that cannot be evaluated: %v", what, err)
	}
	defer loaded.Session.Close()
	points := dim.SamplePoints(e.Table.Past, e.Table.Source)
	few := len(points)
	for _, far := range []int64{dim.Longest, 20_011, 4_097} {
		pt := dim.Point{B: 1, L: 1, P: far}
		if !e.Table.Past {
			pt = dim.Point{B: 1, L: far}
		}
		if e.Table.Source {
			pt.S = far + 1
		}
		points = append(points, pt)
	}
	values := map[string][][]float64{}
	for _, pt := range points {
		results, err := loaded.Run(ctx, e.Table.Within(pt), nil)
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
				return graph.Refuse(at, "%s is changed by %q, which is %s with %v and %s with %v; expected one value",
					what, short.Name(name), brief(values[name][0]), points[0], brief(v), points[i])
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
				what, short.Name(name), rows[0], points[0], rows[few-1], points[few-1])
		}
		for i := few; i < len(points); i++ {
			if want := dim.Evaluate(fit, points[i]); !slices.Equal(rows[i], want) {
				return graph.Refuse(at, "%s reads %q, which is %v with %v; expected %v", what, short.Name(name), rows[i], points[i], want)
			}
		}
	}
	return nil
}

// FlatSuffix names a value as LoadFlat gives it: as a list of doubles.
const FlatSuffix = "/rope-rewrite/flat"

// LoadFlat loads the piece that computes values from sizes and from the values in fed.
// Each is given as a list of doubles, because the engine has no tensors without
// dimensions.
func (e *Evaluator) LoadFlat(ctx context.Context, values []string, fed ...*onnx.ValueInfo) (*Loaded, error) {
	var boundaries []string
	for _, v := range fed {
		boundaries = append(boundaries, v.Name)
	}
	p, err := Extract(e.Graph, slices.Clone(values), boundaries)
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
	return e.Load(ctx, p)
}

// brief prints the first elements of a value.
func brief(v []float64) string {
	if len(v) > 4 {
		return fmt.Sprintf("%g and %d more", v[:4], len(v)-4)
	}
	return fmt.Sprintf("%g", v)
}
