package rewrite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Target says what sites become.
type Target string

const (
	// Ops replaces a site by the fused op. It is the default.
	Ops Target = "ops"
	// PlainONNX changes constants of the model's own rotation, and hides keys
	// before its softmax, so that the result runs without the op library. It
	// serves methods that change frequencies, gain and visibility alone.
	PlainONNX Target = "onnx"
)

// check refuses a target that is not known.
func (t Target) check() error {
	if t != "" && t != Ops && t != PlainONNX {
		return fmt.Errorf("unknown target %q; ops or onnx was expected", t)
	}
	return nil
}

// retabled is a site whose own constants are to rotate otherwise, or whose own
// softmax is to see other keys.
type retabled struct {
	analysed
	layer     int
	want      rope.Attention
	documents string       // the graph input with document ids
	specs     []rope.Spec  // methods that make it what is wanted
	known     rope.Context // of the model, as far as it holds for the site
}

// rescaled returns the rotation that gives what is wanted by frequencies and
// gain alone, or says what else would have to change.
func (r retabled) rescaled() (rope.Encoding, error) {
	have, want := r.lifted.attention, r.want
	e := want.Encoding
	if e.Reach.Trained != 0 {
		want.Cache = have.Cache // see keepRaw
	}
	want.Mask = have.Mask // see hiding
	if ratio := want.EffectiveScale() / have.EffectiveScale(); ratio != 1 {
		if r.site.query.normed() || r.site.key.normed() {
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

// retable changes the constants of the sites' rotations in the model, and
// measures the result. Pairs that are to stand still are measured turning, as
// they did before: an encoding that turns some of its channels only cannot be
// measured, and their frequency is one more number of the same constant. The
// caller orders the nodes.
func retable(ctx context.Context, m *onnx.Model, sites []retabled, again measureAgain) error {
	if len(sites) == 0 {
		return nil
	}
	t := newRetabler(m)
	var hidden []hiding
	for _, s := range sites {
		want, err := s.rescaled()
		hides := s.want.Mask != s.lifted.attention.Mask
		if err == nil && !(hides && reflect.DeepEqual(want, s.lifted.attention.Encoding)) {
			err = t.find(s, want)
		}
		if err == nil && hides {
			var h hiding
			h, err = s.hiding()
			hidden = append(hidden, h)
		}
		if err != nil {
			return &layerError{s.layer, err}
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
func (t *retabler) change(ctx context.Context, sites []retabled, again measureAgain) error {
	err := t.check()
	if err == nil {
		err = t.addGains()
	}
	if err != nil {
		return &layerError{wholeModel, err}
	}
	t.write(turning)
	for g := range t.model.Graph.AllGraphs() {
		if err := order(g); err != nil {
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

// measureAgain measures a model anew. It returns what came of each attention, by
// its place in the graph, and why there is nothing of one.
type measureAgain func(context.Context, *onnx.Model) (measured map[int]*lifted, why func(int) string, err error)

// layerError says that a layer cannot be written, or with wholeModel that the
// model cannot.
type layerError struct {
	layer int
	err   error
}

const wholeModel = -1

func (e *layerError) Error() string { return e.err.Error() }
func (e *layerError) Unwrap() error { return e.err }

// confirm measures the changed model and says where it is not what was wanted.
func confirm(ctx context.Context, m *onnx.Model, sites []retabled, again measureAgain) error {
	measured, why, err := again(ctx, m)
	if err != nil {
		return fmt.Errorf("the changed model cannot be measured: %w", err)
	}
	for _, s := range sites {
		got := measured[s.index]
		if got == nil {
			return fmt.Errorf("layer %d of the changed model cannot be measured: %s", s.layer, why(s.index))
		}
		want, err := s.rescaled()
		if err != nil {
			return err
		}
		want = turning(rotary{have: s.lifted.attention.Encoding, want: want})
		gain := 1e-5 // how well a gain can be measured
		if t := s.scope.view.element(s.site.key.cut); short(t) {
			gain = precision(t).Epsilon()
		}
		if err := sameRotation(got.attention, s.lifted.attention.EffectiveScale(), want, got.unknown, gain); err != nil {
			return fmt.Errorf("layer %d of the changed model %w", s.layer, err)
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
