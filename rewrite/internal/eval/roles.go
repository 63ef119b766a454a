package eval

import (
	"iter"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// inputRoles yields readings of the graph inputs' shapes: which symbolic
// dimension is the batch, the length, the past or their sum. Dimensions of one
// symbol share a reading; nothing is read from what the symbol is called.
// Which reading is right shows when ONNX Runtime runs it.
func inputRoles(g *graph.Graph) iter.Seq[map[string][]dim.Extent] {
	return func(yield func(map[string][]dim.Extent) bool) {
		known := map[string]dim.Extent{}
		var open []string
		symbol := func(v *onnx.ValueInfo, axis int) string {
			if p := v.Shape[axis].Param; p != "" {
				return p
			}
			return v.Name + "\x00" + string(rune('0'+axis)) // unnamed: a symbol of its own
		}
		choices := map[string][]dim.Extent{}
		for _, v := range g.Model.Graph.Inputs {
			if g.Inputs[v.Name] == nil {
				continue
			}
			for axis, d := range v.Shape {
				if d.Known() {
					continue
				}
				s := symbol(v, axis)
				if _, done := choices[s]; done {
					continue
				}
				needed, given := g.Dims[v.Name][axis]
				switch {
				case given:
					choices[s] = []dim.Extent{dim.ConstantExtent(needed)}
				case axis == 0 && len(v.Shape) > 1:
					choices[s] = []dim.Extent{dim.BatchExtent}
				case ir.IsFloat(v.Type) && len(v.Shape) == 4:
					choices[s] = []dim.Extent{dim.PastExtent}
				case ir.IsFloat(v.Type):
					choices[s] = []dim.Extent{dim.LengthExtent, dim.PastExtent}
				default:
					if fixed := g.StaticLength(); fixed > 0 { // a mask over the past and as many tokens
						choices[s] = append(choices[s], dim.Extent{One: fixed, P: 1})
					}
					choices[s] = append(choices[s], dim.LengthExtent, dim.TotalExtent, dim.PastExtent, dim.BatchExtent)
				}
				open = append(open, s)
			}
		}
		var assign func(i int) bool
		assign = func(i int) bool {
			if i == len(open) {
				inputs := map[string][]dim.Extent{}
				for _, v := range g.Model.Graph.Inputs {
					if g.Inputs[v.Name] == nil {
						continue
					}
					dims := make([]dim.Extent, len(v.Shape))
					for axis, d := range v.Shape {
						dims[axis] = dim.ConstantExtent(d.Value)
						if !d.Known() {
							dims[axis] = known[symbol(v, axis)]
						}
					}
					inputs[v.Name] = dims
				}
				return yield(inputs)
			}
			for _, e := range choices[open[i]] {
				known[open[i]] = e
				if !assign(i + 1) {
					return false
				}
			}
			return true
		}
		assign(0)
	}
}
