package rewrite

import (
	"context"
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// join makes one encoding of what the query and the key were measured to do,
// and returns the factor on the query beside it.
func (s *sizedSite) join(a *rope.Attention, query, key *matrix) (float64, error) {
	q, k := query.encoding, key.encoding
	if len(q.Frequencies) != len(k.Frequencies) || q.Layout != k.Layout || q.Offset != k.Offset {
		return 0, refuse(s.product, "query and key are rotated differently: %d pairs from channel %d and %d pairs from channel %d",
			len(q.Frequencies), q.Offset, len(k.Frequencies), k.Offset)
	}
	if q.Reach.Trained != k.Reach.Trained {
		return 0, refuse(s.product, "the query turns by other frequencies from %d tokens on, the key from %d", q.Reach.Trained+1, k.Reach.Trained+1)
	}
	for _, both := range [][2][]float64{{q.Frequencies, k.Frequencies}, {q.Reach.Long, k.Reach.Long}} {
		for i, w := range both[1] {
			if math.Abs(w-both[0][i]) > 1e-6*math.Abs(w)+1e-10 {
				return 0, refuse(s.product, "pair %d turns by %g per position in the query and by %g in the key", i, both[0][i], w)
			}
		}
	}
	a.Encoding = k
	scale := query.factor
	partial := 2*len(k.Frequencies) < a.HeadSize
	// Without a cache nobody sees the rotated keys, so what they are multiplied
	// by is part of the scale: exporters split it over query and key.
	stored := s.key.store() != nil
	switch {
	case !partial && stored:
		// A gain on every channel of the query cannot be told from the scale.
		scale = q.EffectiveGain() / k.EffectiveGain()
	case !partial:
		scale, a.Encoding.Gain = q.EffectiveGain()*k.EffectiveGain(), 1
	case math.Abs(q.EffectiveGain()-k.EffectiveGain()) > 16*float32eps*k.EffectiveGain():
		return 0, refuse(s.product, "the rotation multiplies the query by %g and the key by %g", q.EffectiveGain(), k.EffectiveGain())
	case !stored:
		scale *= key.factor
	}
	if stored && math.Abs(key.factor-1) > 16*float32eps {
		return 0, refuse(s.product, "the key is multiplied by %g before it is stored", key.factor)
	}
	if math.Abs(a.Encoding.Gain-1) <= 16*float32eps {
		a.Encoding.Gain = 1
	}
	return scale, nil
}

// rotation measures one branch from its cut to out.
func (l *lifter) rotation(ctx context.Context, b branch, at *onnx.Node, what, out string, from, to layout) (*matrix, *onnx.ValueInfo, error) {
	loaded, refusal := l.open(ctx, at, "the rotation of its "+what, []string{out}, b.given())
	if refusal != nil {
		return nil, nil, refusal
	}
	defer loaded.session.Close()
	r := &rotator{loaded: loaded, cuts: b.cuts(), out: out, in: from, to: to, precision: loaded.piece.precision(), angles: loaded.piece.anglePrecision()}
	switch {
	case l.table.past || len(loaded.piece.inputs) > 0:
	case l.table.fixed.L > 0:
		r.places = l.table.fixed.L
	default:
		t, fed, err := l.byPlace(ctx, at, "the rotation of its "+what, out, b.given())
		if err != nil {
			return nil, nil, err
		}
		defer fed.session.Close()
		r.loaded, r.tables = fed, t
	}
	if condition, err := l.graph.choice(out, b.given()); err != nil || condition != "" {
		var m *matrix
		if err == nil {
			m, err = l.bySides(ctx, at, *r, b.given(), condition)
		}
		if err != nil {
			return nil, nil, refuse(at, "its %s is not rotated by position as a rotary encoding does: %v", what, err)
		}
		return m, nil, nil
	}
	var position *onnx.ValueInfo
	switch inputs := loaded.piece.inputs; {
	case len(inputs) == 1:
		position = inputs[0]
		dims := l.table.inputs[position.Name]
		several := len(dims) == 3 && dims[0].constant() && dims[2] == lengthExtent
		if several && l.sections {
			r.components = dims[0].One
		} else if several {
			return nil, nil, refuse(at, "its %s is turned by the input %q of shape %v, which gives a token several positions (of time, height and width); one was expected", what, position.Name, dims)
		}
		if r.components == 0 && len(dims) > 2 || len(dims) == 0 || dims[len(dims)-1] != lengthExtent {
			return nil, nil, refuse(at, "the rotation of its %s depends on the input %q of shape %v; positions [batch, length] were expected", what, position.Name, dims)
		}
		r.position = position.Name
	case len(inputs) > 1:
		return nil, nil, refuse(at, "the rotation of its %s depends on %d inputs (%q, %q); one was expected", what, len(inputs), inputs[0].Name, inputs[1].Name)
	}
	m, err := r.measure(ctx)
	if err == nil && r.components > 0 {
		err = r.sectioned(ctx, m)
	}
	if err != nil {
		return nil, nil, refuse(at, "its %s is not rotated by position as a rotary encoding does: %v", what, err)
	}
	return m, position, nil
}
