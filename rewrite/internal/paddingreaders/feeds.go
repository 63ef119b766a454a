package paddingreaders

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// sharesRow reports whether one row of padding is given for the whole batch.
func sharesRow(t *eval.ShapeTable, sites []measure.Attention) bool {
	return slices.ContainsFunc(sites, func(a measure.Attention) bool {
		m := a.Measured.Mask
		return m != nil && t.Inputs[m.Name][0].Constant() && t.Inputs[m.Name][0].One == 1 && t.Static.B != 1
	})
}

// feeds returns the inputs of a call: the padding mask, positions that count tokens, random
// hidden states, and small numbers for other integer inputs. Padded tokens of the past
// have keys and values of the given size: an earlier call computed them from outputs like
// those that are replaced.
func (r *paddingTest) feeds(pt dim.Point, mask []int64, size float64) (map[string]engine.Tensor, error) {
	total := pt.L + pt.P
	feeds := map[string]engine.Tensor{}
	for _, v := range r.standIn.inputs {
		extents := r.table.Inputs[v.Name]
		dims := dim.Evaluate(extents, withSource(pt))
		n, err := bound.Elements(dims)
		if err != nil {
			return nil, err
		}
		values := make([]int64, n)
		switch {
		case ir.IsFloat(v.Type):
			if feeds[v.Name], err = r.states(v, dims, pt, mask, size); err != nil {
				return nil, err
			}
			continue
		case r.table.Slotted() && v.Name == r.table.Slots.Input.Name:
			if feeds[v.Name], err = r.table.Places(pt.L, pt.P); err != nil {
				return nil, err
			}
			continue
		case r.isMask(v, pt):
			copy(values, mask)
		case slices.Contains(extents, dim.SourceExtent):
			values = slices.Repeat([]int64{1}, len(values))
		case r.isPosition(v):
			for i := range values {
				b, row := int64(i)/pt.L%pt.B, int64(i)%pt.L
				for j := range pt.P + row {
					values[i] += mask[b*total+j]
				}
			}
		default:
			for i := range values {
				values[i] = r.rng.Int64N(2)
			}
		}
		if feeds[v.Name], err = engine.Integers(v.Type, values, dims...); err != nil {
			return nil, err
		}
	}
	r.count(feeds, pt, mask)
	return feeds, nil
}

// withSource gives a call a few tokens of another text, for models that read one.
func withSource(pt dim.Point) dim.Point {
	pt.S = 6
	return pt
}

// states returns random numbers for a float input.
func (r *paddingTest) states(v *onnx.ValueInfo, dims []int64, pt dim.Point, mask []int64, size float64) (engine.Tensor, error) {
	x := make([]float64, engine.Elements(dims))
	past := -1
	if len(dims) == 4 {
		past = max(slices.Index(r.table.Inputs[v.Name], dim.PastExtent), slices.Index(r.table.Inputs[v.Name], dim.TotalExtent))
	}
	for i := range x {
		x[i] = r.rng.NormFloat64()
		if past > 0 {
			j := int64(i) / engine.Elements(dims[past+1:]) % dims[past]
			b := int64(i) / engine.Elements(dims[1:]) % pt.B
			if mask[b*(pt.L+pt.P)+j] == 0 {
				x[i] *= size
			}
		}
	}
	data, err := ir.FloatTensor("", v.Type, dims, x...).Bytes()
	return engine.Tensor{Type: v.Type, Dims: dims, Data: data}, err
}

// isMask reports whether an input says for each token whether it is padding.
func (r *paddingTest) isMask(v *onnx.ValueInfo, pt dim.Point) bool {
	dims := dim.Evaluate(r.table.Inputs[v.Name], pt)
	if len(dims) != 2 || dims[1] != pt.L+pt.P || r.isPosition(v) {
		return false
	}
	if r.table.Inputs[v.Name][1] == dim.TotalExtent && r.table.Past {
		return true
	}
	return slices.ContainsFunc(r.all, func(a measure.Attention) bool {
		return a.Measured.Mask != nil && a.Measured.Mask.Name == v.Name || slices.ContainsFunc(a.Measured.Others, func(o *onnx.ValueInfo) bool { return o.Name == v.Name })
	})
}

// isPosition reports whether an input holds the positions of an attention.
func (r *paddingTest) isPosition(v *onnx.ValueInfo) bool {
	return slices.ContainsFunc(r.all, func(a measure.Attention) bool {
		return a.Measured.Ids() != nil && a.Measured.Ids().Name == v.Name
	})
}

// count sets the inputs that count the tokens of length-tracked caches.
func (r *paddingTest) count(feeds map[string]engine.Tensor, pt dim.Point, mask []int64) {
	total := pt.L + pt.P
	tokens := make([]int64, pt.B)
	for b := range pt.B {
		for _, x := range mask[b*total : (b+1)*total] {
			tokens[b] += x
		}
	}
	for _, a := range r.all {
		if a.Site.LengthTracked == nil {
			continue
		}
		all := map[string]engine.Tensor{}
		site.Feed((&eval.CacheLengths{Tokens: tokens, Total: total}), a.Site, all)
		for name, t := range all {
			if _, asked := feeds[name]; asked {
				feeds[name] = t
			}
		}
	}
}
