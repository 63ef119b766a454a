package plainonnx

import (
	"cmp"
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

// Layer is a site whose own constants are to hold another rotation, or whose own softmax is
// to see other keys.
type Layer struct {
	measure.Attention
	Number    int            // of the layer, for texts
	Want      rope.Attention // what the site is to compute
	Documents string         // graph input with document ids, "" without
	Specs     []rope.Spec    // the methods that led to Want
	Known     rope.Context   // what is known of the model's context, as far as it holds for the site
}

// wantedEncoding returns the encoding that gives the wanted attention by frequencies and
// gain alone. It returns an error where anything else but the mask would have to change.
func (s Layer) wantedEncoding() (rope.Encoding, error) {
	have, want := s.Measured.Attention, s.Want
	e := want.Encoding
	if e.LengthDependent.Trained != 0 {
		want.Cache = have.Cache // see cacheUnrotated
	}
	want.Mask = have.Mask // see maskChange
	if ratio := want.EffectiveScale() / have.EffectiveScale(); ratio != 1 {
		if s.Site.Query.Normed() || s.Site.Key.Normed() {
			return e, errors.New("the method changes the score's scale, which a norm after the rotation undoes")
		}
		if ratio <= 0 || have.Encoding.RotaryDim() != have.HeadSize {
			return e, errors.New("the method changes the score's scale, and a part of the head is not rotated")
		}
		e.Gain = e.EffectiveGain() * math.Sqrt(ratio) // the root, since both query and key have the gain
	}
	if want.Encoding.ExactAngles != have.Encoding.ExactAngles {
		return e, errors.New("its own nodes round angles to float32")
	}
	have.Encoding, have.Scale = rope.Encoding{}, 0
	want.Encoding, want.Scale = rope.Encoding{}, 0
	if !reflect.DeepEqual(have, want) {
		return e, errors.New("the method changes more than frequencies, gain and visible keys")
	}
	return e, nil
}

// Refused returns for each site why its own nodes cannot be changed, nil where they can. It
// changes nothing.
func Refused(m *onnx.Model, sites []Layer) []error {
	t := newRotaryConstants(m)
	list := make([]error, len(sites))
	turning := false // a rotation is to change
	for i, s := range sites {
		c, err := s.changes()
		if err == nil && c.rotation {
			turning = true
			err = t.find(s, c.encoding)
		}
		if err == nil && c.encoding.LengthDependent.Trained != 0 && s.cachesRotated() {
			err = s.checkCache()
		}
		list[i] = err
	}
	if !turning {
		return list
	}
	if err := t.check(); err != nil { // of all sites together: which one it is about is not known
		for i := range list {
			list[i] = cmp.Or(list[i], err)
		}
	}
	return list
}

// changes is what is to change in a site's own nodes.
type changes struct {
	rotation bool
	encoding rope.Encoding // that the rotation is to have
	mask     *maskChange   // nil where the mask stays
}

// changes returns an error where the site's own nodes cannot have the wanted value.
func (s Layer) changes() (c changes, err error) {
	if c.encoding, err = s.wantedEncoding(); err != nil {
		return c, err
	}
	masked := s.Want.Mask != s.Measured.Attention.Mask
	c.rotation = !masked || !reflect.DeepEqual(c.encoding, s.Measured.Attention.Encoding)
	if masked {
		var mask maskChange
		mask, err = s.maskChange()
		c.mask = &mask
	}
	return c, err
}

// Write changes the constants of the sites' rotations and the masks of their softmaxes in
// the model m. Refused says before what it cannot do. It measures the rotations of the changed model and compares them with the
// wanted ones. The nodes that it adds come in no order: the caller calls ir.Order.
//
// A frequency that is to be 0 keeps its old value while the model is measured, since an
// encoding that rotates only some of its channels cannot be measured. It is one more
// number of a constant whose other numbers were seen to be right.
func Write(ctx context.Context, m *onnx.Model, sites []Layer, remeasure Remeasure) error {
	if len(sites) == 0 {
		return nil
	}
	t := newRotaryConstants(m)
	var masks []*maskChange
	for _, s := range sites {
		c, err := s.changes()
		if err == nil && c.rotation {
			err = t.find(s, c.encoding)
		}
		if err != nil {
			return &LayerError{s.Number, err}
		}
		if c.mask != nil {
			masks = append(masks, c.mask)
		}
	}
	if len(t.constants) > 0 {
		if err := t.change(ctx, sites, remeasure); err != nil {
			return err
		}
	}
	for _, c := range masks {
		c.write(m.Graph)
	}
	return nil
}

// change writes the constants: first so that the model can be measured, then as wanted.
func (t *rotaryConstants) change(ctx context.Context, sites []Layer, remeasure Remeasure) error {
	if err := t.check(); err != nil {
		return &LayerError{wholeModel, err}
	}
	t.addGains()
	t.write(measurable)
	for g := range t.model.Graph.AllGraphs() {
		if err := ir.Order(g); err != nil {
			return err
		}
	}
	if err := confirm(ctx, t.model, sites, remeasure); err != nil {
		return err
	}
	t.write(func(r rotaryConstant) rope.Encoding { return r.want })
	return t.writeLengthDependent(sites)
}

// measurable returns the wanted encoding of a constant as it is measured: frequencies that
// are to be 0 have their old values.
func measurable(r rotaryConstant) rope.Encoding {
	e := r.want
	e.LengthDependent = rope.LengthDependent{} // frequencies that depend on the length are written after the measurement
	e.Frequencies = slices.Clone(e.Frequencies)
	for i, omega := range e.Frequencies {
		if omega == 0 {
			e.Frequencies[i] = r.have.Frequencies[i]
		}
	}
	return e
}

// Remeasure measures a model again. It returns what was measured of each attention, by its
// index in the model, and why an attention could not be measured.
type Remeasure func(context.Context, *onnx.Model) (measured map[int]*measure.Measured, why func(int) string, err error)

// LayerError says why a layer cannot be written, or the whole model where Layer is −1.
type LayerError struct {
	Layer int
	Err   error
}

const wholeModel = -1

func (e *LayerError) Error() string { return e.Err.Error() }

func (e *LayerError) Unwrap() error { return e.Err }

// confirm measures the changed model and returns an error where a rotation is not the
// wanted one.
func confirm(ctx context.Context, m *onnx.Model, sites []Layer, remeasure Remeasure) error {
	measured, why, err := remeasure(ctx, m)
	if err != nil {
		return fmt.Errorf("the changed model cannot be measured: %w", err)
	}
	for _, s := range sites {
		got := measured[s.Index]
		if got == nil {
			return fmt.Errorf("layer %d of the changed model cannot be measured: %s", s.Number, why(s.Index))
		}
		if got.RotationOnly && !s.Measured.RotationOnly { // a part of its scale is not measured
			return fmt.Errorf("of layer %d of the changed model only the rotation can be measured: %s", s.Number, why(s.Index))
		}
		want, err := s.wantedEncoding()
		if err != nil {
			return err
		}
		want = measurable(rotaryConstant{have: s.Measured.Attention.Encoding, want: want})
		gain := 1e-5 // relative error with which a gain is measured
		if t := s.Scope.View.Element(s.Site.Key.Boundary); ir.Is16Bit(t) {
			gain = ir.Precision(t).Epsilon()
		}
		if err := sameRotation(got.Attention, s.Measured.Attention.EffectiveScale(), want, got.Unknown, gain); err != nil {
			return fmt.Errorf("layer %d of the changed model %w", s.Number, err)
		}
	}
	return nil
}

// sameRotation compares a measured attention with the encoding that was written and the
// scale that the model has. Where all channels of a head are rotated, the gain of query
// and key may have been measured as a part of the scale, so only their product counts.
func sameRotation(got rope.Attention, scale float64, want rope.Encoding, unknown, gain float64) error {
	const rounding = 1e-6
	have := got.Encoding
	if len(have.Frequencies) != len(want.Frequencies) {
		return fmt.Errorf("rotates %d pairs instead of %d", len(have.Frequencies), len(want.Frequencies))
	}
	for i, w := range want.Frequencies {
		if math.Abs(have.Frequencies[i]-w) > (rounding+unknown)*math.Abs(w) {
			return fmt.Errorf("rotates pair %d by %g instead of %g", i, have.Frequencies[i], w)
		}
	}
	far := func(a, b float64) bool { return math.Abs(a-b) > (gain+2*unknown)*math.Abs(b) }
	gains, wanted := have.EffectiveGain()*have.EffectiveGain(), want.EffectiveGain()*want.EffectiveGain()
	if far(gains*got.EffectiveScale(), wanted*scale) || have.RotaryDim() != got.HeadSize && far(gains, wanted) {
		return fmt.Errorf("has the gain %g and the scale %g instead of %g and %g", have.EffectiveGain(), got.EffectiveScale(), want.EffectiveGain(), scale)
	}
	return nil
}
