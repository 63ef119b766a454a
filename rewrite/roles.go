package rewrite

import (
	"iter"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// inputRoles yields readings of the graph inputs' shapes: which symbolic
// dimension is the batch, the length, the past or their sum. Dimensions of one
// symbol share a reading; nothing is read from what the symbol is called.
// Which reading is right shows when ONNX Runtime runs it.
func inputRoles(g *graph) iter.Seq[map[string][]extent] {
	return func(yield func(map[string][]extent) bool) {
		known := map[string]extent{}
		var open []string
		symbol := func(v *onnx.ValueInfo, axis int) string {
			if p := v.Shape[axis].Param; p != "" {
				return p
			}
			return v.Name + "\x00" + string(rune('0'+axis)) // unnamed: a symbol of its own
		}
		choices := map[string][]extent{}
		for _, v := range g.model.Graph.Inputs {
			if g.inputs[v.Name] == nil {
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
				needed, given := g.dims[v.Name][axis]
				switch {
				case given:
					choices[s] = []extent{constantExtent(needed)}
				case axis == 0 && len(v.Shape) > 1:
					choices[s] = []extent{batchExtent}
				case isFloat(v.Type) && len(v.Shape) == 4:
					choices[s] = []extent{pastExtent}
				case isFloat(v.Type):
					choices[s] = []extent{lengthExtent, pastExtent}
				default:
					if fixed := g.fixedLength(); fixed > 0 { // a mask over the past and as many tokens
						choices[s] = append(choices[s], extent{One: fixed, P: 1})
					}
					choices[s] = append(choices[s], lengthExtent, totalExtent, pastExtent, batchExtent)
				}
				open = append(open, s)
			}
		}
		var assign func(i int) bool
		assign = func(i int) bool {
			if i == len(open) {
				inputs := map[string][]extent{}
				for _, v := range g.model.Graph.Inputs {
					if g.inputs[v.Name] == nil {
						continue
					}
					dims := make([]extent, len(v.Shape))
					for axis, d := range v.Shape {
						dims[axis] = constantExtent(d.Value)
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
