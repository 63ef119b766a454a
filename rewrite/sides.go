package rewrite

import (
	"context"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// sides returns the values computed from sizes that enter the nodes between
// cuts and output beside the hidden states: factors, which change what is
// computed, and arguments (shapes, bounds of slices), which change where it lies.
func (g *graph) sides(output string, cuts []string) (factors, arguments []string) {
	g.upstream([]string{output}, func(v string, n *onnx.Node) (next []string) {
		if slices.Contains(cuts, v) || !g.isData(v) || n == nil {
			return nil
		}
		places := standard(n, "Reshape", "Expand", "Slice", "Tile", "Unsqueeze", "Squeeze", "Pad", "Split", "Gather", "GatherND")
		for _, in := range n.Inputs {
			made := g.producer[in]
			switch {
			case slices.Contains(cuts, in): // a scale of tokens
			case g.classes[in] != shapeClass:
				next = append(next, in)
			case standard(made, "Shape", "Size"): // what was measured already
			case scatters(n) && in == n.Inputs[1]: // see placedAlike
			case g.uniform(in) != "": // one number, of a size
				arguments = append(arguments, g.uniform(in))
			case places:
				arguments = append(arguments, in)
			default:
				factors = append(factors, in)
			}
		}
		return next
	})
	return unique(factors), unique(arguments)
}

// uniform returns the size of a value that is one number everywhere, "" where it
// is not known to be that.
func (g *graph) uniform(value string) string {
	n := g.producer[value]
	for standard(n, "Transpose", "Identity", "Unsqueeze", "Cast") {
		n = g.producer[n.Inputs[0]]
	}
	if standard(n, "ConstantOfShape") {
		return n.Inputs[0]
	}
	return ""
}

// steady checks that what is done between cuts and output stays the same when
// there are very many tokens: everything else is measured with few, since
// hidden states of 131,072 tokens are large. Only sizes are computed here.
func (l *lifter) steady(ctx context.Context, at *onnx.Node, what, output string, cuts []string) error {
	if err := l.placedAlike(ctx, at, what, output, cuts); err != nil {
		return err
	}
	factors, arguments := l.graph.sides(output, cuts)
	return l.steadySides(ctx, at, what, factors, arguments)
}

// steadySides checks that factors are always the same and that arguments
// follow from batch, length and past.
func (l *lifter) steadySides(ctx context.Context, at *onnx.Node, what string, factors, arguments []string) error {
	asked := unique(append(slices.Clone(factors), arguments...))
	if len(asked) == 0 {
		return nil
	}
	loaded, err := l.loadFlat(ctx, asked)
	if err != nil {
		return refuse(at, "%s depends on sizes in a way that cannot be evaluated: %v", what, err)
	}
	defer loaded.session.Close()
	points := samplePoints(l.table.past)
	few := len(points)
	for _, far := range []int64{longest, 20_011, 4_097} {
		pt := point{B: 1, L: 1, P: far}
		if !l.table.past {
			pt = point{B: 1, L: far}
		}
		points = append(points, pt)
	}
	values := map[string][][]float64{}
	for _, pt := range points {
		results, err := loaded.run(ctx, l.table.within(pt), nil)
		if err != nil {
			return refuse(at, "%s cannot be evaluated with %v: %v", what, pt, err)
		}
		for _, name := range asked {
			values[name] = append(values[name], results[name+flatSuffix].Values())
		}
	}
	for _, name := range factors {
		for i, v := range values[name] {
			if !slices.Equal(v, values[name][0]) {
				return refuse(at, "%s is changed by %q, which is %s with %v and %s with %v; one value was expected",
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
		fit, ok := fitAll(points[:few], rows[:few])
		if !ok {
			return refuse(at, "%s reads %q, which does not follow from batch, length and past: it is %v with %v and %v with %v",
				what, name, rows[0], points[0], rows[few-1], points[few-1])
		}
		for i := few; i < len(points); i++ {
			if want := evaluate(fit, points[i]); !slices.Equal(rows[i], want) {
				return refuse(at, "%s reads %q, which is %v with %v; %v was expected", what, name, rows[i], points[i], want)
			}
		}
	}
	return nil
}

const flatSuffix = "/rope-rewrite/flat"

// loadFlat loads the piece that computes values from sizes alone, each as a
// list: the binding has no tensors without dimensions. Some values may be fed.
func (l *lifter) loadFlat(ctx context.Context, values []string, fed ...*onnx.ValueInfo) (*loaded, error) {
	var cuts []string
	for _, v := range fed {
		cuts = append(cuts, v.Name)
	}
	p, err := l.graph.extract(slices.Clone(values), cuts)
	if err != nil {
		return nil, err
	}
	p.cuts, p.typed = nil, slices.DeleteFunc(slices.Clone(fed), func(v *onnx.ValueInfo) bool { return !p.reads(v.Name) })
	list := int64Tensor(flatSuffix, []int64{1}, -1)
	p.consts = append(p.consts, list)
	for i, v := range values {
		flat := onnx.NewNode("Reshape", []string{v, list.Name}, []string{v + listSuffix})
		p.nodes = append(p.nodes, flat, cast(v+listSuffix, v+flatSuffix, onnx.Double))
		p.outputs[i] = v + flatSuffix
	}
	return l.load(ctx, p)
}

// brief shows a value by its first elements.
func brief(v []float64) string {
	if len(v) > 4 {
		return fmt.Sprintf("%g and %d more", v[:4], len(v)-4)
	}
	return fmt.Sprintf("%g", v)
}
