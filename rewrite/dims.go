package rewrite

import (
	"context"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

const listSuffix = "/rope-rewrite/list"

// dims returns how the size of every value inside a piece follows from batch
// and length; a value whose size does not is left out. The cuts are fed zeros.
func (l *lifter) dims(ctx context.Context, p *piece) (map[string][]extent, error) {
	asked := *p
	asked.nodes = slices.Clone(p.nodes)
	lead := int64Tensor("rope-rewrite/lead", []int64{1}, 0)
	asked.consts = append(slices.Clone(p.consts), lead)
	asked.outputs = nil
	var values []string
	for _, n := range p.nodes {
		for _, v := range n.Outputs {
			if v == "" {
				continue
			}
			// A leading zero, since a scalar's list of dims would be empty.
			asked.nodes = append(asked.nodes,
				onnx.NewNode("Shape", []string{v}, []string{v + dimsSuffix}),
				onnx.NewNode("Concat", []string{lead.Name, v + dimsSuffix}, []string{v + listSuffix}, onnx.IntAttr("axis", 0)))
			asked.outputs = append(asked.outputs, v+listSuffix)
			values = append(values, v)
		}
	}
	loaded, err := l.load(ctx, &asked)
	if err != nil {
		return nil, err
	}
	defer loaded.session.Close()
	points := samplePoints(l.table.past)
	samples := map[string][][]int64{}
	for _, pt := range points {
		feeds := map[string]engine.Tensor{}
		for _, c := range p.cuts {
			dims := evaluate(l.table.dims[c], l.table.within(pt))
			elements, err := room(dims)
			if err != nil {
				return nil, err
			}
			feeds[c] = engine.Float32s(make([]float32, elements), dims...)
		}
		results, err := loaded.run(ctx, l.table.within(pt), feeds)
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
	out := map[string][]extent{}
	for _, v := range values {
		if fit, ok := fitAll(points, samples[v]); ok {
			out[v] = fit
		}
	}
	for _, t := range p.consts {
		out[t.Name] = []extent{}
		for _, d := range t.Dims {
			out[t.Name] = append(out[t.Name], constantExtent(d))
		}
	}
	for _, v := range p.inputs {
		out[v.Name] = l.table.settledAll(l.table.inputs[v.Name])
	}
	for _, s := range p.sizes {
		out[s] = []extent{constantExtent(int64(len(l.table.sizes[s])))}
	}
	for _, c := range p.cuts {
		out[c] = l.table.settledAll(l.table.dims[c])
	}
	return out, nil
}
