package plainonnx

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Site is a site whose own constants are to rotate otherwise, or whose own
// softmax is to see other keys.
type Site struct {
	measure.Attention
	Layer     int
	Want      rope.Attention
	Documents string       // the graph input with document ids
	Specs     []rope.Spec  // methods that make it what is wanted
	Known     rope.Context // of the model, as far as it holds for the site
}

// rescaled returns the rotation that gives what is wanted by frequencies and
// gain alone, or says what else would have to change.
func (r Site) rescaled() (rope.Encoding, error) {
	have, want := r.Measured.Attention, r.Want
	e := want.Encoding
	if e.Reach.Trained != 0 {
		want.Cache = have.Cache // see keepRaw
	}
	want.Mask = have.Mask // see hiding
	if ratio := want.EffectiveScale() / have.EffectiveScale(); ratio != 1 {
		if r.Site.Query.Normed() || r.Site.Key.Normed() {
			return e, errors.New("the method changes the score's scale, which a norm behind the rotation takes away where it is written without the op; leave --target onnx out")
		}
		if ratio <= 0 || have.Encoding.RotaryDim() != have.HeadSize {
			return e, errors.New("the method changes the score's scale, which needs the op where a part of the head is not rotated; leave --target onnx out")
		}
		e.Gain = e.EffectiveGain() * math.Sqrt(ratio) // queries and keys have it each
	}
	have.Encoding, have.Scale = rope.Encoding{}, 0
	want.Encoding, want.Scale = rope.Encoding{}, 0
	if !reflect.DeepEqual(have, want) {
		return e, errors.New("only methods that change frequencies, gain and visible keys alone are written without the op; leave --target onnx out for others")
	}
	return e, nil
}

// Write changes the constants of the sites' rotations in the model, and
// measures the result. Pairs that are to stand still are measured turning, as
// they did before: an encoding that turns some of its channels only cannot be
// measured, and their frequency is one more number of the same constant. The
// caller orders the nodes.
func Write(ctx context.Context, m *onnx.Model, sites []Site, again remeasure) error {
	if len(sites) == 0 {
		return nil
	}
	t := newRetabler(m)
	var hidden []hiding
	for _, s := range sites {
		want, err := s.rescaled()
		hides := s.Want.Mask != s.Measured.Attention.Mask
		if err == nil && !(hides && reflect.DeepEqual(want, s.Measured.Attention.Encoding)) {
			err = t.find(s, want)
		}
		if err == nil && hides {
			var h hiding
			h, err = s.hiding()
			hidden = append(hidden, h)
		}
		if err != nil {
			return &LayerError{s.Layer, err}
		}
	}
	if len(t.constants) > 0 {
		if err := t.change(ctx, sites, again); err != nil {
			return err
		}
	}
	for _, h := range hidden {
		h.write(m.Graph)
	}
	return nil
}

// change writes the constants: first such that the model can be measured with
// them, then as they are wanted.
func (t *rotaryConstants) change(ctx context.Context, sites []Site, again remeasure) error {
	err := t.check()
	if err == nil {
		err = t.addGains()
	}
	if err != nil {
		return &LayerError{wholeModel, err}
	}
	t.write(turning)
	for g := range t.model.Graph.AllGraphs() {
		if err := ir.Order(g); err != nil {
			return err
		}
	}
	if err := confirm(ctx, t.model, sites, again); err != nil {
		return err
	}
	t.write(func(r rotary) rope.Encoding { return r.want })
	return t.writeReach(sites)
}

// turning is what a rotation is measured with: pairs that are to stand still
// turn as they did.
func turning(r rotary) rope.Encoding {
	e := r.want
	e.Reach = rope.Reach{} // by the length of each call: written when all else is measured
	e.Frequencies = slices.Clone(e.Frequencies)
	for i, omega := range e.Frequencies {
		if omega == 0 {
			e.Frequencies[i] = r.have.Frequencies[i]
		}
	}
	return e
}

// remeasure measures a model anew. It returns what came of each attention, by
// its place in the graph, and why there is nothing of one.
type remeasure func(context.Context, *onnx.Model) (measured map[int]*measure.Measured, why func(int) string, err error)

// LayerError says that a layer cannot be written, or with wholeModel that the
// model cannot.
type LayerError struct {
	Layer int
	Err   error
}

const wholeModel = -1

func (e *LayerError) Error() string { return e.Err.Error() }

func (e *LayerError) Unwrap() error { return e.Err }

// confirm measures the changed model and says where it is not what was wanted.
func confirm(ctx context.Context, m *onnx.Model, sites []Site, again remeasure) error {
	measured, why, err := again(ctx, m)
	if err != nil {
		return fmt.Errorf("the changed model cannot be measured: %w", err)
	}
	for _, s := range sites {
		got := measured[s.Index]
		if got == nil {
			return fmt.Errorf("layer %d of the changed model cannot be measured: %s", s.Layer, why(s.Index))
		}
		want, err := s.rescaled()
		if err != nil {
			return err
		}
		want = turning(rotary{have: s.Measured.Attention.Encoding, want: want})
		gain := 1e-5 // how well a gain can be measured
		if t := s.Scope.View.Element(s.Site.Key.Boundary); ir.Short(t) {
			gain = ir.Precision(t).Epsilon()
		}
		if err := sameRotation(got.Attention, s.Measured.Attention.EffectiveScale(), want, got.Unknown, gain); err != nil {
			return fmt.Errorf("layer %d of the changed model %w", s.Layer, err)
		}
	}
	return nil
}

// sameRotation compares a measured attention with the rotation that was written
// and the scale that was there. Where all of a head is rotated, the gain of query
// and key may have been measured as a part of the scale.
func sameRotation(got rope.Attention, scale float64, want rope.Encoding, unknown, gain float64) error {
	const rounding = 1e-6
	have := got.Encoding
	if len(have.Frequencies) != len(want.Frequencies) {
		return fmt.Errorf("turns %d pairs, %d were wanted", len(have.Frequencies), len(want.Frequencies))
	}
	for i, w := range want.Frequencies {
		if math.Abs(have.Frequencies[i]-w) > (rounding+unknown)*math.Abs(w) {
			return fmt.Errorf("turns pair %d by %g, %g was wanted", i, have.Frequencies[i], w)
		}
	}
	far := func(a, b float64) bool { return math.Abs(a-b) > (gain+2*unknown)*math.Abs(b) }
	gains, wanted := have.EffectiveGain()*have.EffectiveGain(), want.EffectiveGain()*want.EffectiveGain()
	if far(gains*got.EffectiveScale(), wanted*scale) || have.RotaryDim() != got.HeadSize && far(gains, wanted) {
		return fmt.Errorf("has the gain %g and the scale %g, %g and %g were wanted", have.EffectiveGain(), got.EffectiveScale(), want.EffectiveGain(), scale)
	}
	return nil
}
