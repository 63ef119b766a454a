package eval

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// A decoder may read another text beside its own: the states of an encoder, or the keys and
// values that were made of them. Read as length or past that text's length would be tied to
// that of the decoder's own, and no measurement could tell one from the other. So a reading of
// the inputs is tried once more with a size of its own for such a text, and taken where the
// model runs with it and nothing mixes the two.

// withSource returns the table of such a reading of the inputs, t where there is none.
func (t *ShapeTable) withSource(ctx context.Context, g *graph.Graph, session engine.Session, m *onnx.Model, values, wanted []string) (*ShapeTable, error) {
	for inputs := range sourceRoles(g, t.Inputs) {
		other := &ShapeTable{Inputs: inputs, Sizes: map[string][]dim.Extent{}, Dims: map[string][]dim.Extent{}, Past: usesPast(inputs), Source: true, Refused: t.Refused}
		err := other.sample(ctx, session, m, values, wanted)
		if err != nil && ends(err) {
			return nil, err
		}
		if err == nil && other.apart() {
			return other, nil
		}
	}
	return t, nil
}

// apart reports whether some value follows the length and some the source, and none both.
func (t *ShapeTable) apart() bool {
	length, source := false, false
	for _, dims := range t.Dims {
		for _, e := range dims {
			length = length || e == dim.LengthExtent
			source = source || e == dim.SourceExtent
			if own := e.L != 0 || e.P != 0 || e.BL != 0 || e.BP != 0; own && (e.S != 0 || e.BS != 0) {
				return false
			}
		}
	}
	return length && source
}

// maxSourceMasks bounds how many integer inputs may be masks of the source.
const maxSourceMasks = 4

// sourceRoles yields readings of the inputs' shapes that differ from a given one in what
// follows the source: states that were read to follow the length, and caches that nothing is
// appended to. Masks may follow it with them.
func sourceRoles(g *graph.Graph, inputs map[string][]dim.Extent) iter.Seq[map[string][]dim.Extent] {
	var states, masks []string
	for _, v := range g.Model.Graph.Inputs {
		dims := inputs[v.Name]
		for axis := 1; axis < len(dims); axis++ {
			if v.Shape[axis].Known() {
				continue
			}
			switch s := symbol(v, axis); {
			case ir.IsFloat(v.Type) && len(dims) == 3 && dims[axis] == dim.LengthExtent,
				ir.IsFloat(v.Type) && len(dims) == 4 && dims[axis] == dim.PastExtent && !appended(g, v.Name):
				states = append(states, s)
			case !ir.IsFloat(v.Type) && len(dims) == 2 && !slices.Contains(masks, s):
				masks = append(masks, s)
			}
		}
	}
	masks = slices.DeleteFunc(masks, func(s string) bool { return slices.Contains(states, s) })
	return func(yield func(map[string][]dim.Extent) bool) {
		if len(states) == 0 || len(masks) > maxSourceMasks {
			return
		}
		for chosen := range 1 << len(masks) {
			source := slices.Clone(states)
			for i, s := range masks {
				if chosen>>i&1 == 1 {
					source = append(source, s)
				}
			}
			if read := readAsSource(g, inputs, source); followsLength(read) && !yield(read) {
				return
			}
		}
	}
}

// readAsSource returns the shapes with the source in the place of some symbols.
func readAsSource(g *graph.Graph, inputs map[string][]dim.Extent, symbols []string) map[string][]dim.Extent {
	read := maps.Clone(inputs)
	for _, v := range g.Model.Graph.Inputs {
		dims := slices.Clone(inputs[v.Name])
		for axis := range dims {
			if !v.Shape[axis].Known() && slices.Contains(symbols, symbol(v, axis)) {
				dims[axis] = dim.SourceExtent
			}
		}
		if dims != nil {
			read[v.Name] = dims
		}
	}
	return read
}

// followsLength reports whether an input still follows the length.
func followsLength(inputs map[string][]dim.Extent) bool {
	for _, dims := range inputs {
		if slices.Contains(dims, dim.LengthExtent) {
			return true
		}
	}
	return false
}

// appended reports whether rows are put behind those of a value, or written into it, be its
// dimensions in another order or not.
func appended(g *graph.Graph, value string) bool {
	for _, n := range g.Consumers[value] {
		if ir.Standard(n, "Concat") || ir.Standard(n, "ScatterND", "ScatterElements", "TensorScatter") && n.Inputs[0] == value ||
			ir.Standard(n, "Transpose", "Identity", "Cast", "Reshape") && appended(g, n.Outputs[0]) {
			return true
		}
	}
	return false
}
