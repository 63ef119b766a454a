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

// listSuffix names a value that is made a list, so that it can be returned.
const listSuffix = "/rope-rewrite/list"

// Dims returns how the size of every value inside a piece follows from batch
// and length; a value whose size does not is left out. The boundaries are fed zeros.
func (e *Evaluator) Dims(ctx context.Context, p *Piece) (map[string][]dim.Extent, error) {
	points := dim.SamplePoints(e.Table.Past, e.Table.Source)
	samples, err := e.sampleDims(ctx, p, points)
	if err != nil {
		return nil, err
	}
	out := map[string][]dim.Extent{}
	for v, rows := range samples {
		if fit, ok := dim.FitAll(points, rows); ok {
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
		out[v.Name] = e.Table.settledAll(e.Table.Inputs[v.Name])
	}
	for _, s := range p.Sizes {
		out[s] = []dim.Extent{dim.ConstantExtent(int64(len(e.Table.Sizes[s])))}
	}
	for _, v := range p.Typed {
		out[v.Name] = p.dims[v.Name]
	}
	for _, c := range p.Boundaries {
		out[c] = e.Table.settledAll(e.Table.Dims[c])
	}
	return out, nil
}

// sampleDims runs a piece at points and returns the shapes of the values inside it,
// by value and point.
func (e *Evaluator) sampleDims(ctx context.Context, p *Piece, points []dim.Point) (map[string][][]int64, error) {
	asked, values := askDims(p)
	loaded, err := e.Load(ctx, asked)
	if err != nil {
		return nil, err
	}
	defer loaded.Session.Close()
	samples := map[string][][]int64{}
	for _, pt := range points {
		feeds := map[string]engine.Tensor{}
		for _, c := range p.Boundaries {
			dims := dim.Evaluate(e.Table.Dims[c], e.Table.Within(pt))
			elements, err := bound.Elements(dims)
			if err != nil {
				return nil, err
			}
			feeds[c] = engine.Float32s(make([]float32, elements), dims...)
		}
		for _, v := range p.Typed {
			dims := dim.Evaluate(p.dims[v.Name], e.Table.Within(pt))
			elements, err := bound.Elements(dims)
			if err != nil {
				return nil, err
			}
			if feeds[v.Name], err = engine.Integers(v.Type, make([]int64, elements), dims...); err != nil {
				return nil, err
			}
		}
		results, err := loaded.Run(ctx, e.Table.Within(pt), feeds)
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
	return samples, nil
}

// askDims returns a piece that gives the dimensions of the values inside p instead of
// p's outputs, and these values. Each list of dimensions has a 0 in front, since that
// of a scalar would be empty.
func askDims(p *Piece) (asked *Piece, values []string) {
	q := *p
	q.Nodes = slices.Clone(p.Nodes)
	lead := ir.Int64Tensor("rope-rewrite/lead", []int64{1}, 0)
	q.Consts = append(slices.Clone(p.Consts), lead)
	q.Outputs = nil
	for _, n := range p.Nodes {
		for _, v := range n.Outputs {
			if v == "" {
				continue
			}
			q.Nodes = append(q.Nodes,
				onnx.NewNode("Shape", []string{v}, []string{v + dimsSuffix}),
				onnx.NewNode("Concat", []string{lead.Name, v + dimsSuffix}, []string{v + listSuffix}, onnx.IntAttr("axis", 0)))
			q.Outputs = append(q.Outputs, v+listSuffix)
			values = append(values, v)
		}
	}
	return &q, values
}
