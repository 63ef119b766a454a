package eval

import (
	"context"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

const listSuffix = "/rope-rewrite/list"

// Dims returns how the size of every value inside a piece follows from batch
// and length; a value whose size does not is left out. The cuts are fed zeros.
func (l *Evaluator) Dims(ctx context.Context, p *Piece) (map[string][]dim.Extent, error) {
	asked := *p
	asked.Nodes = slices.Clone(p.Nodes)
	lead := ir.Int64Tensor("rope-rewrite/lead", []int64{1}, 0)
	asked.Consts = append(slices.Clone(p.Consts), lead)
	asked.Outputs = nil
	var values []string
	for _, n := range p.Nodes {
		for _, v := range n.Outputs {
			if v == "" {
				continue
			}
			// A leading zero, since a scalar's list of dims would be empty.
			asked.Nodes = append(asked.Nodes,
				onnx.NewNode("Shape", []string{v}, []string{v + dimsSuffix}),
				onnx.NewNode("Concat", []string{lead.Name, v + dimsSuffix}, []string{v + listSuffix}, onnx.IntAttr("axis", 0)))
			asked.Outputs = append(asked.Outputs, v+listSuffix)
			values = append(values, v)
		}
	}
	loaded, err := l.Load(ctx, &asked)
	if err != nil {
		return nil, err
	}
	defer loaded.Session.Close()
	points := dim.SamplePoints(l.Table.Past)
	samples := map[string][][]int64{}
	for _, pt := range points {
		feeds := map[string]engine.Tensor{}
		for _, c := range p.Boundaries {
			dims := dim.Evaluate(l.Table.Dims[c], l.Table.Within(pt))
			elements, err := bound.Room(dims)
			if err != nil {
				return nil, err
			}
			feeds[c] = engine.Float32s(make([]float32, elements), dims...)
		}
		results, err := loaded.Run(ctx, l.Table.Within(pt), feeds)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			var row []int64
			for _, x := range results[v+listSuffix].Values()[1:] {
				row = append(row, int64(x))
			}
			samples[v] = append(samples[v], row)
		}
	}
	out := map[string][]dim.Extent{}
	for _, v := range values {
		if fit, ok := dim.FitAll(points, samples[v]); ok {
			out[v] = fit
		}
	}
	for _, t := range p.Consts {
		out[t.Name] = []dim.Extent{}
		for _, d := range t.Dims {
			out[t.Name] = append(out[t.Name], dim.ConstantExtent(d))
		}
	}
	for _, v := range p.Inputs {
		out[v.Name] = l.Table.settledAll(l.Table.Inputs[v.Name])
	}
	for _, s := range p.Sizes {
		out[s] = []dim.Extent{dim.ConstantExtent(int64(len(l.Table.Sizes[s])))}
	}
	for _, c := range p.Boundaries {
		out[c] = l.Table.settledAll(l.Table.Dims[c])
	}
	return out, nil
}
