package eval

import (
	"fmt"
	"iter"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// inputRoles yields readings of the graph inputs' shapes: which symbolic
// dimension is the batch, the length, the past or their sum. Dimensions of one
// symbol share a reading; what the symbol is called does not matter. A reading is
// right if ONNX Runtime runs the model with it.
func inputRoles(g *graph.Graph) iter.Seq[map[string][]dim.Extent] {
	return func(yield func(map[string][]dim.Extent) bool) {
		open, choices := openDimensions(g)
		roles := map[string]dim.Extent{} // by symbol
		var assign func(i int) bool
		assign = func(i int) bool {
			if i == len(open) {
				return yield(inputShapes(g, roles))
			}
			for _, e := range choices[open[i]] {
				roles[open[i]] = e
				if !assign(i + 1) {
					return false
				}
			}
			return true
		}
		assign(0)
	}
}

// symbol returns what an open dimension of an input is known by. A dimension without
// a name is a symbol of its own.
func symbol(v *onnx.ValueInfo, axis int) string {
	if p := v.Shape[axis].Param; p != "" {
		return p
	}
	return v.Name + "\x00" + string(rune('0'+axis))
}

// openDimensions returns the symbols in the inputs' shapes, in order of appearance,
// and what each of them may be, the most likely first. A symbol is what the shape says of it that leaves
// least open: a dimension of the batch may stand behind others, too.
func openDimensions(g *graph.Graph) (open []string, choices map[string][]dim.Extent) {
	choices = map[string][]dim.Extent{}
	for _, v := range g.Model.Graph.Inputs {
		if g.Inputs[v.Name] == nil {
			continue
		}
		for axis, d := range v.Shape {
			if d.Known() {
				continue
			}
			s := symbol(v, axis)
			known, seen := choices[s]
			if !seen {
				open = append(open, s)
			}
			if may := mayBe(g, v, axis); !seen || len(may) < len(known) {
				choices[s] = may
			}
		}
	}
	return open, choices
}

// mayBe returns what an open dimension of an input may be, the most likely first.
func mayBe(g *graph.Graph, v *onnx.ValueInfo, axis int) (list []dim.Extent) {
	needed, given := g.Dims[v.Name][axis]
	switch {
	case given:
		return []dim.Extent{dim.ConstantExtent(needed)}
	case axis == 0 && len(v.Shape) > 1:
		return []dim.Extent{dim.BatchExtent}
	case ir.IsFloat(v.Type) && len(v.Shape) >= 3 && scattered(g, v.Name):
		return []dim.Extent{dim.TotalExtent} // a buffer with room for the new tokens
	case ir.IsFloat(v.Type) && len(v.Shape) == 4:
		return []dim.Extent{dim.PastExtent}
	case ir.IsFloat(v.Type):
		return []dim.Extent{dim.LengthExtent, dim.PastExtent}
	}
	if length := g.StaticLength(); length > 0 { // a mask over the past and the static length
		list = append(list, dim.Extent{One: length, P: 1})
	}
	return append(list, dim.LengthExtent, dim.TotalExtent, dim.PastExtent, dim.BatchExtent)
}

// scattered reports whether rows are written into a value, or into it with its dimensions
// in another order.
func scattered(g *graph.Graph, value string) bool {
	for _, n := range g.Consumers[value] {
		if ir.Standard(n, "ScatterND", "ScatterElements", "TensorScatter") && n.Inputs[0] == value || ir.Standard(n, "Transpose", "Identity", "Cast") && scattered(g, n.Outputs[0]) {
			return true
		}
	}
	return false
}

// inputShapes returns the shapes of the graph's inputs with their symbols in the given
// roles.
func inputShapes(g *graph.Graph, roles map[string]dim.Extent) map[string][]dim.Extent {
	inputs := map[string][]dim.Extent{}
	for _, v := range g.Model.Graph.Inputs {
		if g.Inputs[v.Name] == nil {
			continue
		}
		dims := make([]dim.Extent, len(v.Shape))
		for axis, d := range v.Shape {
			dims[axis] = dim.ConstantExtent(d.Value)
			if !d.Known() {
				dims[axis] = roles[symbol(v, axis)]
			}
		}
		inputs[v.Name] = dims
	}
	return inputs
}

// mostRead is how many shapes of inputs a sentence names.
const mostRead = 6

// readAs says what the graph's inputs were taken for: those of one shape together, in the order of the model.
func readAs(g *graph.Graph, inputs map[string][]dim.Extent) string {
	var shapes []string
	of := map[string][]string{}
	for _, v := range g.Model.Graph.Inputs {
		dims, is := inputs[v.Name]
		if !is {
			continue
		}
		var sizes []string
		for _, e := range dims {
			sizes = append(sizes, e.String())
		}
		shape := "[" + strings.Join(sizes, ", ") + "]"
		if of[shape] == nil {
			shapes = append(shapes, shape)
		}
		of[shape] = append(of[shape], fmt.Sprintf("%q", short.Name(v.Name)))
	}
	var list []string
	for _, shape := range shapes[:min(len(shapes), mostRead)] {
		names := of[shape]
		if more := len(names) - 1; more > 2 { // caches
			names = []string{names[0], fmt.Sprintf("%d more", more)}
		}
		list = append(list, strings.Join(names, " and ")+" as "+shape)
	}
	if left := len(shapes) - mostRead; left > 0 {
		list = append(list, fmt.Sprintf("%d other shapes", left))
	}
	return strings.Join(list, ", ")
}
